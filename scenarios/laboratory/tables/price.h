// The prediction of a published run: step time, memory, verdict; or the reason why it has none.
//
//   row ──► its scenario ──replayed with the built-in constants──► step_s
//                └──counted_memory──► StageTerms ──shared constants, facts of the trainer──► odds, fits, fits_cautious
//
// Time and memory are of one step, with one split of layers. Nothing measured in the row enters its price, but the
// built-in constants were fitted to the tables in the program. A fit to measured peaks may know the run's own all-reduce
// test, which shows in which environment it ran (MemoryRun::usual).
// Guarded by tests/scenarios/price_test.cpp and tests/scenarios/memory_refit_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "models/machine/machine.h"
#include "models/memory/memory_odds.h"
#include "scenarios/laboratory/tables/published_row.h"

namespace slipway::scenarios {

struct RowPrice {
  double step_s = 0;  // 0: cannot be priced
  double mfu = 0;
  std::string cannot;  // why
  std::optional<MemoryPrice> memory;
  std::string cannot_memory;
};

// Both require a row with a scenario.
const Machine& machine_of(const PublishedRow& row);
double peak_flops_of(const PublishedRow& row);

RowPrice price(const PublishedRow& row);

// The bytes that its stages keep, its GPU, and its measured memory. Throws std::invalid_argument with the reason why
// there is none.
MemoryRun memory_run_of(const PublishedRow& row);

}  // namespace slipway::scenarios
