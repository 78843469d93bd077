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

std::string schedule_text(const Step& choice);  // "1f1b", "of a CSV"

// `columns`: characters per line; 0: no limit.
std::string table_of(const Scenario& scenario, const std::vector<PricedLayout>& rows, int columns);

}  // namespace slipway::scenarios
