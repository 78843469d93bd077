// What the executor cannot run yet, in one place: `slipway execute` asks before it lowers and starts anything, the
// rank program when it has read a bundle that somebody else started it with. Plain C++, no LibTorch.
// Guarded by tests/command_execute_test.cpp and tests/execute_failure_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "schedules/bundle.h"

namespace slipway {

// Each with what to use instead; empty: it can.
inline std::vector<std::string> not_executable(const Run& run, bool batch_grows) {
  std::vector<std::string> reasons;
  const LearningRateSchedule& rate = run.optimizer.lr_schedule;
  if (batch_grows && rate.decay != DecayStyle::constant && rate.decay_samples == 0)
    reasons.emplace_back("the learning rate decays to the end of a training whose batch grows, which is not known beforehand in "
                         "samples; set run.optimizer.lr_decay_samples");
  if (run.optimizer.name != "adamw") {
    reasons.push_back("run.optimizer.name is " + run.optimizer.name + ": only adamw is executed; use it");
  }
  if (run.data.empty()) {
    reasons.emplace_back(
        "run.data is not set: name a text file or Megatron token files to train on, for example with --set run.data=FILE");
  }
  return reasons;
}

inline std::vector<std::string> not_executable(const Bundle& bundle) {
  std::vector<std::string> reasons = not_executable(bundle.run, grows(bundle));
  if (bundle.graph.window > 1)
    reasons.emplace_back("the bundle holds a window of several steps with work in the bubbles, which is simulated "
                         "only; set schedule.fill to none");
  return reasons;
}

}  // namespace slipway
