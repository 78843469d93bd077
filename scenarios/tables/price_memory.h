// A published row as a run of known memory: its stages in closed form, its GPU, and what was measured of
// it.
//
//   row ──► MemoryInput, layers of each stage as its trainer splits them ──► StageTerms ──► price_memory()
//
// Nothing measured enters a prediction. A fit to measured peaks may know the run's own all-reduce test, which shows
// in which environment it ran (MemoryRun::usual).
// Guarded by tests/scenarios/price_test.cpp and tests/scenarios/memory_refit_test.cpp.
#pragma once

#include "models/memory/memory_price.h"
#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

// Throws std::invalid_argument with the reason why there is none.
MemoryRun memory_run_of(const PublishedRow& row);
// The constants of the row's trainer on its machine or, where it was never fitted there, on another. Without a profile,
// those of the book.
MemoryConstants memory_constants_of(const PublishedRow& row);

}  // namespace slipway::scenarios
