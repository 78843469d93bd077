#include "models/batch_rules.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace slipway {
namespace {

double by_line(const BatchPlan& plan, double samples) {
  if (!(plan.warmup > 0)) throw std::invalid_argument("a linear warm-up needs the samples that it takes");
  const auto first = static_cast<double>(plan.rungs.front()), last = static_cast<double>(plan.rungs.back());
  return first + (last - first) * std::min(1.0, samples / plan.warmup);
}

double by_stages(const BatchPlan& plan, double samples) {
  if (plan.stages.empty()) throw std::invalid_argument("a warm-up by stages needs stages");
  auto wanted = static_cast<double>(plan.rungs.front());
  for (const BatchStage& stage : plan.stages)
    if (stage.from <= samples) wanted = static_cast<double>(stage.batch);
  return wanted;
}

// The step before was of this batch, and its gradient is what is tested.
double by_test(const BatchPlan& plan, const BatchState& state, const std::function<GradientNorms()>& norms) {
  if (plan.test_every < 1)
    throw std::invalid_argument("the norm test needs at least a step between two tests");
  if (state.steps == 0 || state.steps % plan.test_every != 0) return static_cast<double>(state.batch);
  return batch_by_norm_test(state.batch, norms(), plan.eta);
}

double wanted(const BatchPlan& plan, const BatchState& state, const std::function<GradientNorms()>& norms) {
  switch (plan.rule) {
    case BatchRule::constant:
      break;
    case BatchRule::linear:
      return by_line(plan, state.samples);
    case BatchRule::stages:
      return by_stages(plan, state.samples);
    case BatchRule::norm_test:
      return by_test(plan, state, norms);
  }
  return static_cast<double>(plan.rungs.front());
}

}  // namespace

std::int64_t rung_of(const std::vector<std::int64_t>& rungs, double wanted) {
  if (rungs.empty()) throw std::invalid_argument("a batch needs a rung to stand on");
  const auto found =
      std::lower_bound(rungs.begin(), rungs.end(), wanted,
                       [](std::int64_t rung, double than) { return static_cast<double>(rung) < than; });
  return found == rungs.end() ? rungs.back() : *found;
}

namespace {

std::int64_t next_of(const BatchPlan& plan, const BatchState& state, const std::function<GradientNorms()>& norms) {
  if (plan.rungs.empty()) throw std::invalid_argument("a batch needs a rung to stand on");
  return std::max(state.batch, rung_of(plan.rungs, wanted(plan, state, norms)));
}

}  // namespace

std::int64_t next_batch(const BatchPlan& plan, const BatchState& state) {
  return next_of(plan, state,
                 [&] { return expected_norms(static_cast<double>(state.batch), state.noise_scale, plan.workers); });
}

std::int64_t next_batch(const BatchPlan& plan, const BatchState& state, const GradientNorms& measured) {
  return next_of(plan, state, [&] { return measured; });
}

}  // namespace slipway
