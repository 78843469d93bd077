// The prediction of a run that somebody measured: step time, memory, verdict; or why there is none.
//
//   row ──► Scenario of its trainer, replayed with the built-in constants (priced_run.h)   step_s
//       └─► Step ──► StageTerms ──► shared constants, facts of the trainer                 odds, fits, fits_cautious
//
// Nothing measured in the row enters its price, but the built-in constants were fitted to the tables in the program.
// Guarded by tests/scenarios/price_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "models/machine/machine.h"
#include "models/memory/memory_odds.h"
#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

struct RowPrice {
  double step_s = 0;  // 0: cannot be priced
  double mfu = 0;
  std::string cannot;  // why
  std::optional<MemoryPrice> memory;
  std::string cannot_memory;
};

// Throws std::invalid_argument when there is no such profile.
const Machine& machine_of(const PublishedRow& row);
double peak_flops_of(const PublishedRow& row);

RowPrice price(const PublishedRow& row);

}  // namespace slipway::scenarios
