// A step that can be priced again under other constants, by the critical path of its replay.
//
//   Scenario ──lower, replay──► critical path ──constants──► seconds, slopes           (schedules/time/critical_path.h)
//
// Guarded by tests/scenarios/priced_run_test.cpp: the path sums to the replay; slopes are those of replays.
#pragma once

#include "models/fit/pooled_fit.h"
#include "scenarios/language/scenario.h"
#include "schedules/time/critical_path.h"

namespace slipway::scenarios {

class PricedStep {
 public:
  explicit PricedStep(Scenario scenario) : scenario_(std::move(scenario)) {}
  // Replays the step, without contention, and keeps its path. Throws std::invalid_argument where the cluster cannot
  // price it.
  double replay(const ConstantsOn& constants);
  // As the scenario's cluster prices it.
  double replay();
  // Seconds by the path of the last replay.
  double seconds(const ConstantsOn& constants) const;
  // The same on a cluster with other machines or links, whose constants are its own.
  double seconds(const Cluster& cluster) const;
  // d ln seconds / d ln c there, of each constant on this machine.
  std::vector<double> slopes(const ConstantsOn& constants, const std::string& machine) const;

 private:
  Scenario with(const ConstantsOn& constants) const;
  double replay(Scenario scenario);
  Scenario scenario_;
  TaskGraph works_;  // without tasks: works, operators, communicators
  std::vector<PathTerm> terms_;
};

}  // namespace slipway::scenarios
