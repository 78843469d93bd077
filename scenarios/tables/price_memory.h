// A published row as a run of known memory: what its stages keep, its GPU, and what was measured of it.
//
//   row ──► Step, layers of each stage as its trainer splits them ──counted_memory──► StageTerms ──► price_memory()
//
// Nothing measured enters a prediction. A fit to measured peaks may know the run's own all-reduce test, which shows
// in which environment it ran (MemoryRun::usual).
// Guarded by tests/scenarios/price_test.cpp and tests/scenarios/memory_refit_test.cpp.
#pragma once

#include "models/memory/memory_odds.h"
#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

// Throws std::invalid_argument with the reason why there is none.
MemoryRun memory_run_of(const PublishedRow& row);
// The shared constants with the deviations of the row's trainer, and its facts.
MemoryConstants memory_constants_of(const PublishedRow& row);

}  // namespace slipway::scenarios
