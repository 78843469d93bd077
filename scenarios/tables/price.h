// The prediction of a run that somebody measured: step time, memory, verdict; or why there is none.
//
//   row ──► StepWork ──► TimeModel::seconds(constants of the row's trainer on its machine)   step_s
//       └─► Step ──► StageTerms ──► shared constants, facts of the trainer                   odds, fits, fits_cautious
//
// Nothing measured in the row enters its price.
// Guarded by tests/scenarios/price_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "models/memory/memory_odds.h"
#include "models/trainers/stack.h"
#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

struct RowPrice {
  double step_s = 0;  // 0: cannot be priced
  double mfu = 0;
  std::string cannot;         // why
  std::string borrowed_from;  // machine whose constants it is, where the trainer was never fitted on the row's
  std::optional<MemoryPrice> memory;
  std::string cannot_memory;
};

// The figures of a row that its formula needs; throws std::invalid_argument with the reason why there are none.
StepWork work_of(const PublishedRow& row);
// The constants with which a row is priced by default: of its machine, or where its trainer was never fitted there,
// of the machine that is most alike (peak, memory bandwidth). Throws std::invalid_argument for an unknown trainer or
// machine.
const StackTime& time_constants_of(const PublishedRow& row);
// Throws std::invalid_argument when there is no such profile.
const Machine& machine_of(const PublishedRow& row);
double peak_flops_of(const PublishedRow& row);

RowPrice price(const PublishedRow& row);

}  // namespace slipway::scenarios
