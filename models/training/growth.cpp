#include "models/training/growth.h"

#include <algorithm>
#include <stdexcept>

namespace slipway::models {

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
