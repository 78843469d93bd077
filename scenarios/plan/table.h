// The table of `slipway plan` (private to search*): a row per layout, as wide as the reader's terminal.
//
//   wider than `columns`? ──► what all rows have in common goes below the table, the least needed first
//                         ──► then figures that --json has as well are left out, and named
//
// Guarded by tests/scenarios/search_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/plan/search.h"

namespace slipway::scenarios {

// `columns`: characters of a line; 0: as many as it takes.
std::string table_of(const Scenario& scenario, const std::vector<PricedLayout>& rows, int columns);

}  // namespace slipway::scenarios
