// A published run as its trainer makes it: a scenario that can be priced under any constants (scenarios/step/priced_step.h).
//
//   PublishedRow ──► Scenario of its trainer ──► PricedStep
//
// Guarded by tests/scenarios/priced_run_test.cpp.
#pragma once

#include "models/fit/pooled_fit.h"
#include "scenarios/step/priced_step.h"
#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

// The run's nodes, as many of a node's GPUs as it has. Throws std::invalid_argument where its GPUs do not fill them.
NodeGroup nodes_of(const PublishedRow& row);
// The run as its trainer makes it; what the table does not say are the trainer's habits. Throws std::invalid_argument
// with the reason where that cannot be.
Scenario scenario_of(const PublishedRow& row);

// One published run that can be priced under any constants.
class PricedRun : public PricedStep {
 public:
  explicit PricedRun(const PublishedRow& row);
  const PooledRow& row() const { return row_; }

 private:
  PooledRow row_;
};

}  // namespace slipway::scenarios
