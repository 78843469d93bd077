// The learning rate of a step: a linear warm-up, then constant, or down along a line or half a cosine.
//
//   highest ┤      ╭─╮
//           │    ╱     ╲                 n = samples trained before the step, b = samples of the step
//     least ┤  ╱         ╰────────
//         0 ┼╱─────┬─────┬──────── n     W = warmup_samples, D = decay_samples
//                  W     D
//
//   n < W:  highest · min(1, (n + b)/W)          the step itself counts: the first has a rate
//   n ≥ W:  highest                              constant
//           highest + (least − highest)·share    x = min(1, (n − W)/(D − W))
//           share = x                            linear
//                   (1 − cos πx)/2               cosine: Loshchilov 2017, "SGDR", eq. 5, without restarts
//
// So neither the first step nor the last one before D is lost to a rate of 0 or `least`: the step that ends the warm-up
// and the one after it have the highest rate. Lengths count samples (sequences), not steps, so a training that
// continues with another batch keeps its schedule. The rate itself is not rescaled with the batch (Lau et al. 2024).
//
// Guarded by tests/models/learning_rate_test.cpp; in training by tests/exec/execute_numerics_test.cpp,
// tests/exec/execute_learning_rate_test.cpp and tests/scenarios/resume_command_test.cpp.
#pragma once

#include <cstdint>

#include "models/model/names.h"

namespace slipway::models {

enum class DecayStyle : std::uint8_t { constant, linear, cosine };
inline constexpr std::array decay_names{Named{DecayStyle::constant, "constant"}, Named{DecayStyle::linear, "linear"},
                                        Named{DecayStyle::cosine, "cosine"}};
constexpr const char* name_of(DecayStyle style) { return name_in(decay_names, style); }  // as scenarios write it

struct LearningRateSchedule {
  std::int64_t warmup_samples = 0;
  DecayStyle decay = DecayStyle::constant;
  // From the training's first sample on, warm-up included; 0 = to the end of the training.
  std::int64_t decay_samples = 0;
  double least = 0;
  bool is_constant() const { return warmup_samples == 0 && decay == DecayStyle::constant; }
};

// The rate of a step of `samples_of_step` after `samples_before_step` of the training. `highest`: the rate that the
// warm-up leads to. The function does not know the end of the training: a schedule that decays must set decay_samples.
// A decay that ends within the warm-up is over after it.
double learning_rate(double highest, const LearningRateSchedule& schedule, std::int64_t samples_before_step,
                     std::int64_t samples_of_step);

}  // namespace slipway::models
