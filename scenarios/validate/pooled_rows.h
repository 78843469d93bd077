// Published runs as rows of a pooled fit: each is a scenario of its trainer's facts on its machine, replayed, and priced
// again under other constants by its critical path.
//
//   PublishedRow ──► Scenario ──lower, replay──► critical path ──► seconds, slopes      (schedules/time/critical_path.h)
//                       ▲ constants of (trainer, machine)
//
// Guarded by tests/scenarios/pooled_rows_test.cpp.
#pragma once

#include "models/fit/pooled_fit.h"
#include "scenarios/language/scenario.h"
#include "scenarios/tables/published_row.h"
#include "schedules/time/critical_path.h"

namespace slipway::scenarios {

// The run as its trainer makes it, with the constants of the book. Throws std::invalid_argument with the reason where
// that cannot be.
Scenario scenario_of_run(const PublishedRow& row);

// One run that can be priced under any constants.
class PricedRun {
 public:
  explicit PricedRun(const PublishedRow& row);
  // Replays the step, and keeps its path.
  double replay(const StepConstants& constants);
  // By the path of the last replay. `slopes`: d ln step / d ln c of each constant, where not null.
  double seconds(const StepConstants& constants, std::vector<double>* slopes) const;
  const PooledRow& row() const { return row_; }

 private:
  Cluster trained_by(const StepConstants& constants) const;
  double sum(const StepConstants& constants) const;
  PooledRow row_;
  Scenario scenario_;
  TaskGraph works_;  // without tasks: works, operators, communicators
  std::vector<PathTerm> terms_;
};

}  // namespace slipway::scenarios
