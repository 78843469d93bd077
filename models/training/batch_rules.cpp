#include "models/training/batch_rules.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace slipway::models {

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

std::int64_t next_of(const BatchSchedule& schedule, const BatchState& state,
                     const std::function<GradientNorms()>& norms) {
  if (schedule.rungs.empty()) throw std::invalid_argument("a batch plan needs at least one batch");
  return std::max(state.batch, rung_of(schedule.rungs, wanted(schedule, state, norms)));
}

}  // namespace

std::int64_t rung_of(const std::vector<std::int64_t>& rungs, double wanted) {
  if (rungs.empty()) throw std::invalid_argument("a batch plan needs at least one batch");
  const auto found = std::lower_bound(rungs.begin(), rungs.end(), wanted,
                                      [](std::int64_t rung, double than) { return static_cast<double>(rung) < than; });
  return found == rungs.end() ? rungs.back() : *found;
}

std::int64_t next_batch(const BatchSchedule& schedule, const BatchState& state) {
  return next_of(schedule, state,
                 [&] { return expected_norms(static_cast<double>(state.batch), state.noise_scale, schedule.workers); });
}

std::int64_t next_batch(const BatchSchedule& schedule, const BatchState& state, const GradientNorms& measured) {
  return next_of(schedule, state, [&] { return measured; });
}

}  // namespace slipway::models
