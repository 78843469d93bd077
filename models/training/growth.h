// A training with a batch rule, step by step: its batches and its loss.
//
//   before each step   noise scale ◄── loss ◄── noiseless steps so far       (models/training/loss_dynamics.h)
//                      batch       ◄── rule, noise scale, samples so far     (models/training/batch_rules.h)
//   the step           samples += batch,  noiseless steps += 1/(1 + noise/batch)
//
// Expectations only: nothing is drawn at random, so a schedule has one course. The duration of steps is not part of it.
// Guarded by tests/models/growth_test.cpp: with a constant batch and noise the course is McCandlish's hyperbola; a
// batch by the norm test ends at the closed form's value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "models/training/batch_rules.h"
#include "models/training/loss_dynamics.h"

namespace slipway::models {

// Consecutive steps of one batch.
struct BatchSpan {
  std::int64_t batch = 0, steps = 0;
  double from_samples = 0, from_loss = 0;
};
// The training done at some moment.
struct Milestone {
  std::int64_t steps = 0;
  double samples = 0, loss = 0;
};
struct Course {
  std::vector<BatchSpan> spans;  // ascending batches
  Milestone end;
  std::optional<Milestone> target;  // the first step's end at which the loss is not above the target
  bool whole = true;                // false: cut at most_steps, before its end
};

struct CourseEnd {
  double samples = 0;      // ends with the step that reaches them; 0: no such end
  double target_loss = 0;  // 0: none
  std::int64_t most_steps = 50'000'000;
};

// Runs until `samples`, or until the target if these are 0. `sequence`: tokens of a sample. `progress` may be empty; it
// is called now and then with the share that is done. Throws std::invalid_argument without an end (neither samples nor
// a target above the floor).
Course course_of(const BatchSchedule& schedule, const LossDynamics& dynamics, double sequence, const CourseEnd& end,
                 const std::function<void(double done_share)>& progress = {});

// Σ steps·step_s(batch) up to `steps`.
double seconds_of(const Course& course, std::int64_t steps, const std::function<double(std::int64_t batch)>& step_s);

}  // namespace slipway::models
