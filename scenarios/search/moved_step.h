// A step that can be replayed again with rates moved (rates.h): lowered and ordered once.
//
//   Scenario ──lower, order──► graph ──┬─ prices of the scenario's cluster ──► replay ──► seconds, critical path
//                                      └─ moved prices ──► replay in the same order ──► seconds
//
// Ranks run in the order that was made for the machine as its profile says, however fast it really is. Bubble work stays
// where it was placed, and its seconds move.
// Guarded by tests/scenarios/explain_rates_test.cpp: as replays of scenarios with other profiles.
#pragma once

#include <vector>

#include "models/machine/priced_cluster.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/search/rates.h"
#include "schedules/time/durations.h"

namespace slipway::scenarios {

// As durations_of with the hosts' issue, with what is moved. Requires the graph's order, and no bubble work.
Durations durations_of(const TaskGraph& graph, const Moved& moved);

class MovedStep {
 public:
  // Throws std::invalid_argument where the cluster cannot price it.
  explicit MovedStep(const Scenario& scenario);
  const Scenario& scenario() const { return prepared_.front().scenario; }
  const PricedCluster& cluster() const { return prepared_.front().cluster; }
  double seconds() const { return seconds_; }
  double seconds(const Moved& moved);
  // Parts of the replayed step's time, on its critical path and on a mean rank.
  TimeParts path() const { return path_; }
  TimeParts ranks() const { return ranks_; }
  // The speed at which this rate alone makes the step take `target_s`. Unset where no speed from 1/100 to 100 does.
  std::optional<double> speed_for(const Rate& rate, double target_s);
  // The same of all GPUs of one pipeline rank.
  std::optional<double> speed_of_stage_for(int pipeline_rank, double target_s);
  // Seconds of the step where they have this speed.
  double seconds_with_stage(int pipeline_rank, double speed);

 private:
  PreparedStep with_patience(const Scenario& scenario, int patience);
  Durations durations(const PreparedStep& step, const Moved& moved) const;
  std::optional<double> solve(const std::function<Moved(double speed)>& moved, double target_s);
  std::vector<PreparedStep> prepared_;                // with more and more micro-batches, the last one with all of them
  std::optional<PreparedStep> unfilled_;              // with bubble work: the step without it
  std::size_t first_attempt_ = 0, last_attempt_ = 0;  // in prepared_: where seconds() begins, and where it ended
  double seconds_ = 0;
  TimeParts path_, ranks_;
};

}  // namespace slipway::scenarios
