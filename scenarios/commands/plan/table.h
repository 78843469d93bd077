// A row of `slipway plan`, its keys and columns, and the table: a row per layout, as wide as the reader's terminal.
//
//   wider than `columns`? ──► settings that all rows share go below the table, the least needed first
//                         ──► then columns that --json also has are left out, and named
//
// Guarded by tests/scenarios/search_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/predict/description.h"
#include "scenarios/search/search.h"

namespace slipway::scenarios {

struct PlanRow {
  const Scenario& scenario;
  const PricedLayout& priced;
  const PricedLayout* next = nullptr;  // it wins over this row; none: the last row, or not needed
};
const Description<PlanRow>& plan_row_keys();

// `columns`: characters per line; 0: no limit.
std::string table_of(const Scenario& scenario, const std::vector<PricedLayout>& rows, int columns);
std::string search_text(const Scenario& scenario, const SearchResult& result, const SearchOptions& options);
// The reason why `row` beats `next`, in a phrase: the largest gain, and the losses that it outweighs.
std::string why(const PricedLayout& row, const PricedLayout& next);

}  // namespace slipway::scenarios
