// A step that can be priced again under other constants, by the critical path of its replay.
//
//   Scenario ──prepare──► graph ──replay──► critical path ──constants──► seconds, slopes   (schedules/time/critical_path.h)
//
// A prepared step is replayed as it is: its graph is there and need not be lowered again.
// Guarded by tests/scenarios/priced_run_test.cpp: the path sums to the replay; slopes are those of replays.
#pragma once

#include "models/fit/pooled_fit.h"
#include "models/machine/priced_cluster.h"
#include "scenarios/language/scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "schedules/time/critical_path.h"

namespace slipway::scenarios {

class PricedStep {
 public:
  explicit PricedStep(Scenario scenario) : scenario_(std::move(scenario)) {}
  // Replayed already, as `prepared` is priced.
  explicit PricedStep(const PreparedStep& prepared);
  // Replays the step, without contention, and keeps its path. Throws std::invalid_argument where the cluster cannot
  // price it.
  double replay(const ConstantsOn& constants);
  // As the scenario's cluster prices it.
  double replay();
  // Seconds by the path of the last replay.
  double seconds(const ConstantsOn& constants) const;
  // The same on a cluster with other machines or links, whose constants are its own.
  double seconds(const PricedCluster& cluster) const;
  // d ln seconds / d ln c there, of each constant on this machine.
  std::vector<double> slopes(const ConstantsOn& constants, const std::string& machine) const;

 private:
  PricedCluster with(const ConstantsOn& constants) const;
  double replay(const Scenario& scenario);
  double keep(const PreparedStep& prepared, const Timeline& replayed, const PeriodicTimeline* periodic);
  Scenario scenario_;
  TaskGraph works_;  // without tasks: works, operators, communicators
  std::vector<PathTerm> terms_;
};

}  // namespace slipway::scenarios
