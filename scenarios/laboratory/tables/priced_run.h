// A published run that can be priced under any constants (scenarios/predict/priced_step.h).
//
//   PublishedRow ──► its scenario ──► PricedStep
//
// Guarded by tests/scenarios/priced_run_test.cpp.
#pragma once

#include "models/fit/pooled_fit.h"
#include "scenarios/laboratory/tables/published_row.h"
#include "scenarios/predict/priced_step.h"

namespace slipway::scenarios {

// Named by the run in words. Throws std::invalid_argument with the reason where the row has none.
Scenario scenario_of(const PublishedRow& row);

class PricedRun : public PricedStep {
 public:
  explicit PricedRun(const PublishedRow& row);
  const PooledRow& row() const { return row_; }

 private:
  PooledRow row_;
};

}  // namespace slipway::scenarios
