// Experts that drop rows where context and sequence parallelism cut sequences. A rank's tokens compete with each other
// only, so the truth is plain functional code that drops per group of positions, under torch's autograd and AdamW.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/layout_runs.h"
#include "tests/support/reference_training.h"

namespace slipway::test {
namespace {

constexpr int few_steps = 6;

// The positions that each rank of a replica routes: a causal sequence is cut into 2C pieces, of which a context rank has
// the c-th from the front and from the back; where tokens travel, each tensor rank routes its part of those.
std::vector<at::Tensor> groups_of(const Step& step) {
  const std::int64_t s = step.model->sequence, contexts = step.layout.context;
  std::vector<at::Tensor> groups;
  for (std::int64_t c = 0; c < contexts; ++c) {
    const std::int64_t piece = s / (2 * contexts);
    const at::Tensor own =
        at::cat({at::arange(c * piece, (c + 1) * piece), at::arange(s - (c + 1) * piece, s - c * piece)});
    for (const at::Tensor& part : own.chunk(dispatches_tokens(step) ? step.layout.tensor : 1)) groups.push_back(part);
  }
  return groups;
}

Trained train_reference(const Step& step) {
  const Bundle bundle = tiny_bundle(step);
  Weights weights = whole_weights(step.model, bundle.run.seed);
  ReferenceModel reference(step.model, weights);
  reference.balancing = step.routing.balancing_loss, reference.capacity = step.routing.capacity;
  reference.routed_together = groups_of(step);
  torch::optim::AdamW optimizer = reference_optimizer(weights, bundle.graph.step.optimizer);
  TokenData data(bundle.run.data, step.model, bundle.run.seed);
  Trained result;
  const std::int64_t micro_batches = step.global_batch / step.micro_batch;
  for (int k = 0; k < few_steps; ++k) {
    optimizer.zero_grad();
    double sum = 0;
    for (std::int64_t m = 0; m < micro_batches; ++m) {
      const at::Tensor loss =
          reference.loss(data.batch(k * step.global_batch + m * step.micro_batch, step.micro_batch, at::kCPU));
      sum += loss.item<double>();
      ((loss + reference.take_balancing_loss()) / micro_batches).backward();
    }
    result.losses.push_back(sum / static_cast<double>(micro_batches));
    if (k == 0)
      for (const auto& [name, weight] : weights) {
        const at::Tensor flat = weight.grad().flatten().contiguous();
        WholeGradient& whole = result.gradients[name];
        whole.values.assign(flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel());
        result.gradient_norm += flat.square().sum().item<double>();
      }
    clip(weights, step.clip_norm);
    optimizer.step();
  }
  result.gradient_norm = std::sqrt(result.gradient_norm);
  return result;
}

Step with_capacity(const Degrees& degrees, int expert, int cut, int micro_batch = 1) {
  Step step = with_layout(tiny_mixtral(2), degrees);
  step.layout.expert = expert, step.layout.expert_tensor = cut;
  step.micro_batch = micro_batch;
  step.clip_norm = 0.5;
  step.routing.capacity = 0.8;
  step.routing.balancing_loss = 0.2;
  return step;
}

TEST(ExpertCapacity, UnderContextAndSequenceParallelismDropsWhatCodeThatDropsPerGroupDrops) {
  std::vector<Step> steps;
  for (const int expert : {1, 2, 4}) {
    const int whole = expert == 1 ? 0 : 1;
    steps.push_back(with_capacity({.data = 2, .context = 2, .zero = 1}, expert, 0));
    steps.push_back(with_capacity({.tensor = 2, .data = 2, .sequence_parallel = true}, expert, whole));
    steps.push_back(with_capacity({.tensor = 2, .context = 2, .zero = 2, .sequence_parallel = true}, expert, whole));
    steps.push_back(with_capacity({.pipeline = 2, .data = 2, .context = 2, .zero = 3}, expert, 0));
    steps.push_back(
        with_capacity({.tensor = 2, .pipeline = 2, .context = 2, .sequence_parallel = true}, expert, whole, 2));
  }
  steps.push_back(with_capacity({.tensor = 2, .context = 2, .sequence_parallel = true}, 2, 2));  // cut and divided
  steps.push_back(with_capacity({.data = 1, .context = 4}, 4, 0));
  for (const Step& step : steps) {
    SCOPED_TRACE(describe_layout(step));
    expect_same_training(train_reference(step), train(step, few_steps), 1e-10);
  }
}

// The truth depends on the groups: else the test above would prove nothing.
TEST(ExpertCapacity, DropsOtherRowsWhereOtherTokensCompete) {
  const Trained whole = train_reference(with_capacity({.data = 2}, 1, 0));
  const Trained cut = train_reference(with_capacity({.data = 1, .context = 2}, 1, 0));
  EXPECT_GT(std::abs(whole.losses.front() - cut.losses.front()), 1e-6 * whole.losses.front());
}

}  // namespace
}  // namespace slipway::test
