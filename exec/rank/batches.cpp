#include "exec/rank/batches.h"

#include <algorithm>
#include <stdexcept>

namespace slipway::exec {
namespace {

BatchState state_of(const Progress& done) { return {done.batch, done.steps, static_cast<double>(done.samples), 0}; }

int steps_left(const Bundle& bundle, const Progress& now) { return bundle.run.steps - static_cast<int>(now.steps); }

bool can_grow(const Bundle& bundle, std::int64_t batch) { return grows(bundle) && batch < bundle.batches.rungs.back(); }

}  // namespace

GradientNorms norms_of(const TaskGraph& graph, double parts_squared, double sum_squared) {
  GradientNorms norms;
  norms.workers = gradient_samples(graph);
  const auto workers = static_cast<double>(norms.workers);
  norms.sum_of_squares = workers * workers * parts_squared;  // a part is the mean of its share / workers
  norms.square_of_mean = sum_squared;
  return norms;
}

// A training at the largest batch keeps it.
bool is_tested(const Bundle& bundle, const Progress& done) {
  return bundle.batches.rule == BatchRule::norm_test && can_grow(bundle, done.batch) &&
         done.steps % bundle.batches.test_every == 0;
}

std::int64_t first_batch(const Bundle& bundle, const Progress& begin) {
  if (!grows(bundle)) return bundle.graph.step.global_batch;
  const std::int64_t before = begin.batch > 0 ? rung_of(bundle.batches.rungs, static_cast<double>(begin.batch)) : 0;
  if (bundle.batches.rule == BatchRule::norm_test) return std::max(before, bundle.batches.rungs.front());
  return next_batch(bundle.batches, state_of({begin.steps, begin.samples, before}));
}

std::int64_t batch_after(const Bundle& bundle, const Progress& done, const std::optional<GradientNorms>& norms) {
  if (!grows(bundle)) return done.batch;
  if (bundle.batches.rule != BatchRule::norm_test) return next_batch(bundle.batches, state_of(done));
  if (!is_tested(bundle, done)) return done.batch;
  try {
    return next_batch(bundle.batches, state_of(done), norms.value());
  } catch (const std::invalid_argument& error) {
    if (done.steps >= bundle.run.steps) return done.batch;  // only a continued training needs it
    throw std::runtime_error("the norm test after step " + std::to_string(done.steps) + ": " + error.what() +
                             "; has the training diverged? lower run.optimizer.lr");
  }
}

StepPrograms::StepPrograms(const Bundle& bundle, const Progress& begin) : all(programs_of(bundle)) {
  const int window = bundle.graph.window, beyond = steps_left(bundle, begin) % window;
  if (beyond == 0) return;
  last = cut_after(bundle.graph, beyond);
  all.push_back(&*last);
}

StepSpan span_from(const Bundle& bundle, const Progress& now) {
  StepSpan span{program_of(bundle, now.batch), 0};
  const int left = steps_left(bundle, now), window = bundle.graph.window;
  if (left > 0 && left < window) return {static_cast<int>(programs_of(bundle).size()), 1};
  if (!can_grow(bundle, now.batch)) return {span.program, left / window};
  for (Progress at = now; at.steps < bundle.run.steps; ++span.steps) {
    if (span.steps > 0 && (is_tested(bundle, at) || batch_after(bundle, at, {}) != now.batch)) break;
    ++at.steps;
    at.samples += now.batch;
  }
  return span;
}

}  // namespace slipway::exec
