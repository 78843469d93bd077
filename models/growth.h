// A training with a batch rule, step by step: which batch when, and what the loss is.
//
//   before each step   noise scale ◄── loss ◄── noiseless steps so far       (models/loss_dynamics.h)
//                      batch       ◄── rule, noise scale, samples so far     (models/batch_rules.h)
//   the step           samples += batch,  noiseless steps += 1/(1 + noise/batch)
//
// Expectations only: nothing is drawn, so the course of a plan is one. How long a step takes is not asked
// here. Guarded by tests/growth_test.cpp: with a constant batch and noise the course is McCandlish's
// hyperbola; a batch by the norm test ends where the closed form says.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "models/batch_rules.h"
#include "models/loss_dynamics.h"

namespace slipway {

// Consecutive steps of one batch.
struct BatchSpan {
  std::int64_t batch = 0, steps = 0;
  double from_samples = 0, from_loss = 0;
};
// What a training has behind it at some moment.
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
  double samples = 0;      // at the end of the step that reaches them; 0: not until then
  double target_loss = 0;  // 0: none
  std::int64_t most_steps = 50'000'000;
};

// Until `samples`, and where these are 0 until the target. `sequence`: tokens of a sample. `progress`,
// which may be empty, is called now and then with the share that is done. Throws std::invalid_argument
// without an end (neither samples nor a target above the floor).
Course course_of(const BatchPlan& plan, const LossDynamics& dynamics, double sequence, const CourseEnd& end,
                 const std::function<void(double done_share)>& progress = {});

// Σ steps·step_s(batch) up to `steps`.
double seconds_of(const Course& course, std::int64_t steps,
                  const std::function<double(std::int64_t batch)>& step_s);

}  // namespace slipway
