// The table of `slipway plan` (private to search*): a row per layout, as wide as the reader's terminal.
//
//   wider than `columns`? ──► settings that all rows share go below the table, the least needed first
//                         ──► then columns that --json also has are left out, and named
//
// Guarded by tests/scenarios/search_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/plan/search.h"

namespace slipway::scenarios {

// `columns`: characters per line; 0: no limit.
std::string table_of(const Scenario& scenario, const std::vector<PricedLayout>& rows, int columns);

}  // namespace slipway::scenarios
