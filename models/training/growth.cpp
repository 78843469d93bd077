#include "models/training/growth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace slipway::models {

void check_dynamics(const LossDynamics& d) {
  const bool positive = d.start > 0 && d.offset > 0 && d.exponent > 0 && d.noise_tokens > 0 && d.noise_loss > 0;
  const bool finite = std::isfinite(d.start) && std::isfinite(d.offset) && std::isfinite(d.exponent) &&
                      std::isfinite(d.noise_tokens) && std::isfinite(d.noise_loss) && std::isfinite(d.noise_exponent);
  if (!positive || !finite || !(d.floor >= 0 && d.floor < d.start) || !(d.noise_exponent >= 0))
    throw std::invalid_argument(
        "a loss falls from its start to a floor below, with an offset, an exponent and a noise scale above "
        "0");
}

double loss_after(const LossDynamics& d, double noiseless_steps) {
  return d.floor + (d.start - d.floor) * std::exp(-d.exponent * std::log1p(noiseless_steps / d.offset));
}

double noiseless_steps_to(const LossDynamics& d, double loss) {
  if (loss >= d.start) return 0;
  if (loss <= d.floor) return std::numeric_limits<double>::infinity();
  return d.offset * std::expm1(-std::log((loss - d.floor) / (d.start - d.floor)) / d.exponent);
}

double noise_scale_at(const LossDynamics& d, double loss) {
  return d.noise_tokens * std::pow(d.noise_loss / loss, d.noise_exponent);
}

double tokens_per_noiseless_step(const LossDynamics& d, double batch_tokens, double loss) {
  return batch_tokens + noise_scale_at(d, loss);
}

// ∫ (batch + B) dS by Simpson's rule over v = ln(1 + S/offset), in which the loss is an exponential.
double tokens_to(const LossDynamics& d, double batch_tokens, double loss) {
  const double noiseless = noiseless_steps_to(d, loss);
  if (!std::isfinite(noiseless)) return noiseless;
  constexpr int pieces = 2000;
  const double width = std::log1p(noiseless / d.offset) / pieces;
  double sum = 0;
  for (int i = 0; i <= pieces; ++i) {
    const double weight = i == 0 || i == pieces ? 1 : i % 2 == 1 ? 4 : 2, v = width * i;
    const double there = d.floor + (d.start - d.floor) * std::exp(-d.exponent * v);
    sum += weight * std::exp(v) * tokens_per_noiseless_step(d, batch_tokens, there);
  }
  return d.offset * sum * width / 3;
}

// Tokens to a loss are the offset times an integral that does not contain the offset.
LossDynamics with_noise(LossDynamics d, double scale_tokens, double batch_tokens, double loss) {
  const double measured = tokens_to(d, batch_tokens, loss);
  d.noise_tokens = scale_tokens;
  d.offset *= measured / tokens_to(d, batch_tokens, loss);
  return d;
}

double progress_of_step(double batch, double noise_scale) { return batch / (batch + noise_scale); }

namespace {

void check(const LossDynamics& dynamics, double sequence, const CourseEnd& end) {
  check_dynamics(dynamics);
  if (!(sequence > 0)) throw std::invalid_argument("a sequence has at least a token");
  if (end.samples > 0) return;
  if (!(end.target_loss > dynamics.floor))
    throw std::invalid_argument("a training needs an end: samples, or a target loss above the floor");
}

struct State {
  double noiseless = 0;
  Milestone now;
  std::int64_t batch = 0;
};

bool goes_on(const State& state, const CourseEnd& end) {
  return end.samples > 0 ? state.now.samples < end.samples : state.now.loss > end.target_loss;
}

void step(const BatchSchedule& schedule, const LossDynamics& dynamics, double sequence, State& state, Course& course) {
  const double noise = noise_scale_at(dynamics, state.now.loss) / sequence;
  state.batch = next_batch(schedule, {state.batch, state.now.steps, state.now.samples, noise});
  if (course.spans.empty() || course.spans.back().batch != state.batch)
    course.spans.push_back({state.batch, 0, state.now.samples, state.now.loss});
  ++course.spans.back().steps;
  ++state.now.steps;
  state.now.samples += static_cast<double>(state.batch);
  state.noiseless += progress_of_step(static_cast<double>(state.batch), noise);
  state.now.loss = loss_after(dynamics, state.noiseless);
}

double done_share(const State& state, const LossDynamics& dynamics, const CourseEnd& end) {
  return end.samples > 0 ? state.now.samples / end.samples
                         : state.noiseless / noiseless_steps_to(dynamics, end.target_loss);
}

}  // namespace

Course course_of(const BatchSchedule& schedule, const LossDynamics& dynamics, double sequence, const CourseEnd& end,
                 const std::function<void(double)>& progress) {
  check(dynamics, sequence, end);
  if (schedule.rungs.empty()) throw std::invalid_argument("a batch plan needs at least one batch");
  Course course;
  State state{0, {0, 0, dynamics.start}, schedule.rungs.front()};
  const auto note_target = [&] {
    if (!course.target && end.target_loss > 0 && state.now.loss <= end.target_loss) course.target = state.now;
  };
  note_target();
  constexpr std::int64_t steps_between_reports = 100'000;
  while (goes_on(state, end)) {
    if (state.now.steps >= end.most_steps) {
      course.whole = false;
      break;
    }
    step(schedule, dynamics, sequence, state, course);
    note_target();
    if (progress && state.now.steps % steps_between_reports == 0) progress(done_share(state, dynamics, end));
  }
  course.end = state.now;
  return course;
}

double seconds_of(const Course& course, std::int64_t steps, const std::function<double(std::int64_t)>& step_s) {
  double seconds = 0;
  for (const BatchSpan& span : course.spans) {
    const std::int64_t counted = std::min(span.steps, steps);
    seconds += static_cast<double>(counted) * step_s(span.batch);
    steps -= counted;
  }
  return seconds;
}

}  // namespace slipway::models
