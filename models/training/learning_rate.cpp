#include "models/training/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace slipway::models {
namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

double learning_rate(double highest, const LearningRateSchedule& schedule, std::int64_t samples_before_step,
                     std::int64_t samples_of_step) {
  const std::int64_t warmup = schedule.warmup_samples;
  if (samples_before_step < warmup) return highest * ratio(samples_before_step + samples_of_step, warmup);
  if (schedule.decay == DecayStyle::constant) return highest;
  if (samples_before_step >= schedule.decay_samples) return schedule.least;
  const double x = ratio(samples_before_step - warmup, schedule.decay_samples - warmup);
  const double share = schedule.decay == DecayStyle::linear ? x : (1 - std::cos(std::numbers::pi * x)) / 2;
  return std::lerp(highest, schedule.least, share);  // exact at both ends
}

}  // namespace slipway::models
