// A stack profile: what a trainer makes of the hardware. A machine profile holds physics; a stack holds kernels,
// overlap, collectives and habits, as constants of a formula of step time, and facts about memory.
//
//   models/trainers/nanotron.yaml:   time:
//                                    h100-80gb:
//                                      gemm_efficiency: {value: 0.68, prior: 0.70, spread: 0.15, source: ...}
//                                  memory:
//                                    loss: {value: plain, source: ...}
//
// `value` was fitted to published runs, starting from `prior`, a book value of which one is sure to about
// `spread` (of its logarithm; absent: not fitted). Constants hold for one cluster: bandwidths and latencies of
// other clusters differ, so each machine has a set of its own.
// A trainer's formula is one file, models/trainers/time_<trainer>.cpp, and explains what is particular about it.
// Guarded by tests/models/trainer_time_test.cpp (formulas by hand) and tests/models/trainers_test.cpp (files).
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/memory/memory_constants.h"
#include "models/trainers/step_work.h"

namespace slipway::models {

struct TimeParameter {
  std::string_view name, unit, meaning;
};

// The parts of a step by a formula, for engines that lay the step out themselves (stack_pace.h). Seconds;
// of one micro-batch unless the comment names another amount.
struct StepParts {
  // Kernels and host of one layer. Recomputation of whole layers is not included (an engine runs their forward pass
  // again), that of attention alone is the backward pass's.
  double layer_forward = 0, layer_backward = 0;
  // Its collectives, forward and backward together; 0: by the fabric (groups that leave the node, where the
  // formula knows nothing of that).
  double layer_tensor = 0, layer_context = 0;
  double head = 0;            // both directions, with its collectives
  double transfer = 0;        // one message between two stages
  double reduction = 0;       // per step: gradients and weights over the data-parallel group; or
  double data_bandwidth = 0;  // bytes/s on that group's ring, where they move per micro-batch
  double fixed = 0;           // per step
};

// `constants`: one for each parameter, in their order.
struct TimeModel {
  std::string_view trainer;
  std::span<const TimeParameter> parameters;
  double (*seconds)(const StepWork& work, std::span<const double> constants);  // of one step
  StepParts (*parts)(const StepWork& work, std::span<const double> constants);
  // Features of such a run that the formula does not price; none: it prices all.
  std::vector<const char*> (*outside)(const StepWork& work);
  bool overlaps_reduction = false;  // else `reduction` follows the last backward pass, what hides of it taken off
};

// nullptr for a trainer without one.
const TimeModel* time_model_of(std::string_view trainer);
std::span<const TimeModel> time_models();

struct StackConstant {
  double value = 0, prior = 0, spread = 0;
  std::string source;
};

// Constants of one trainer on one cluster, in the order of its model's parameters.
struct StackTime {
  std::string machine;  // machine profile
  double scale = 0.03;  // residual (of the logarithm) beyond which a run pulls linearly in a refit
  std::vector<StackConstant> constants;
};

struct Stack {
  std::string trainer;
  const TimeModel* model = nullptr;  // nullptr: no formula of step time, times is empty
  std::vector<StackTime> times;
  MemoryFacts memory;  // the constants are those of all trainers (models/memory/pooled_memory.h)
};
const StackTime* time_on(const Stack& stack, std::string_view machine);  // nullptr: never fitted there
std::vector<double> values_of(const StackTime& time);

}  // namespace slipway::models
