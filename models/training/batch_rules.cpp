#include "models/training/batch_rules.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace slipway::models {

namespace {

constexpr double rounding = 1e-4;  // of sums of squares in float32

void check(const GradientNorms& norms) {
  if (norms.workers < 2)
    throw std::invalid_argument("the norm test compares the gradients of at least 2 data parallel workers, not of " +
                                std::to_string(norms.workers));
  const bool finite = std::isfinite(norms.sum_of_squares) && std::isfinite(norms.square_of_mean);
  if (!finite || norms.sum_of_squares < 0 || norms.square_of_mean < 0)
    throw std::invalid_argument("squared gradient norms must be finite and not negative");
  if (static_cast<double>(norms.workers) * norms.square_of_mean > norms.sum_of_squares * (1 + rounding))
    throw std::invalid_argument(
        "the mean of the workers' gradients is longer than they allow: these norms are not of one step");
}

void check_eta(double eta) {
  if (!(eta > 0)) throw std::invalid_argument("the norm test needs an eta above 0");
}

}  // namespace

double gradient_variance(const GradientNorms& norms) {
  check(norms);
  const auto workers = static_cast<double>(norms.workers);
  return std::max(0.0, norms.sum_of_squares - workers * norms.square_of_mean) / (workers * (workers - 1));
}

bool passes_norm_test(const GradientNorms& norms, double eta) {
  check_eta(eta);
  return gradient_variance(norms) <= eta * eta * norms.square_of_mean;
}

double batch_by_norm_test(std::int64_t batch, const GradientNorms& norms, double eta) {
  if (passes_norm_test(norms, eta)) return static_cast<double>(batch);
  if (norms.square_of_mean == 0) return std::numeric_limits<double>::infinity();
  return std::ceil(static_cast<double>(batch) * gradient_variance(norms) / (eta * eta * norms.square_of_mean));
}

GradientNorms expected_norms(double batch, double noise_scale, std::int64_t workers) {
  const double noise = noise_scale / batch;  // of the mean; a worker's share is a J-th of the batch
  const auto count = static_cast<double>(workers);
  return {workers, count * (1 + count * noise), 1 + noise};
}

double batch_content_with(double noise_scale, double eta) { return std::max(0.0, noise_scale * (1 / (eta * eta) - 1)); }

namespace {

double by_line(const BatchSchedule& schedule, double samples) {
  if (!(schedule.warmup > 0)) throw std::invalid_argument("a linear warm-up needs the samples that it takes");
  const auto first = static_cast<double>(schedule.rungs.front()), last = static_cast<double>(schedule.rungs.back());
  return first + (last - first) * std::min(1.0, samples / schedule.warmup);
}

double by_stages(const BatchSchedule& schedule, double samples) {
  if (schedule.stages.empty()) throw std::invalid_argument("a warm-up by stages needs stages");
  auto wanted = static_cast<double>(schedule.rungs.front());
  for (const BatchStage& stage : schedule.stages)
    if (stage.from <= samples) wanted = static_cast<double>(stage.batch);
  return wanted;
}

// `state.batch` was the batch of the step before, whose gradient is tested.
double by_test(const BatchSchedule& schedule, const BatchState& state, const std::function<GradientNorms()>& norms) {
  if (schedule.test_every < 1) throw std::invalid_argument("the norm test needs at least a step between two tests");
  if (state.steps == 0 || state.steps % schedule.test_every != 0) return static_cast<double>(state.batch);
  return batch_by_norm_test(state.batch, norms(), schedule.eta);
}

double wanted(const BatchSchedule& schedule, const BatchState& state, const std::function<GradientNorms()>& norms) {
  switch (schedule.rule) {
    case BatchRule::constant:
      break;
    case BatchRule::linear:
      return by_line(schedule, state.samples);
    case BatchRule::stages:
      return by_stages(schedule, state.samples);
    case BatchRule::norm_test:
      return by_test(schedule, state, norms);
  }
  return static_cast<double>(schedule.rungs.front());
}

}  // namespace

std::int64_t rung_of(const std::vector<std::int64_t>& rungs, double wanted) {
  if (rungs.empty()) throw std::invalid_argument("a batch plan needs at least one batch");
  const auto found = std::lower_bound(rungs.begin(), rungs.end(), wanted,
                                      [](std::int64_t rung, double than) { return static_cast<double>(rung) < than; });
  return found == rungs.end() ? rungs.back() : *found;
}

namespace {

std::int64_t next_of(const BatchSchedule& schedule, const BatchState& state,
                     const std::function<GradientNorms()>& norms) {
  if (schedule.rungs.empty()) throw std::invalid_argument("a batch plan needs at least one batch");
  return std::max(state.batch, rung_of(schedule.rungs, wanted(schedule, state, norms)));
}

}  // namespace

std::int64_t next_batch(const BatchSchedule& schedule, const BatchState& state) {
  return next_of(schedule, state,
                 [&] { return expected_norms(static_cast<double>(state.batch), state.noise_scale, schedule.workers); });
}

std::int64_t next_batch(const BatchSchedule& schedule, const BatchState& state, const GradientNorms& measured) {
  return next_of(schedule, state, [&] { return measured; });
}

}  // namespace slipway::models
