// One process against an independent implementation: plain functional code on whole tensors, differentiated by torch's
// own autograd and updated by torch::optim::AdamW. And the parts, each against a truth of its own.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <array>

#include "schedules/lower/lowering.h"
#include "tests/support/gradient_files.h"
#include "tests/support/reference_training.h"
#include "tests/support/tiny_runs.h"
#include "tests/virtual_ranks/virtual_ranks.h"

namespace slipway::test {
namespace {

void expect_same_gradients(const Weights& weights, const std::string& folder, double norm) {
  const auto dumped = read_gradients(folder, 1);
  double squares = 0;
  for (const auto& [name, weight] : weights) {
    const auto found = dumped.find(name);
    ASSERT_NE(found, dumped.end()) << name;
    const at::Tensor values = at::tensor(found->second.values, at::kDouble).view(weight.sizes());
    squares += (values - weight.grad()).square().sum().item<double>();
  }
  EXPECT_LE(std::sqrt(squares), 1e-12 * norm);
}

constexpr int compared_steps = 5;
using Rates = std::array<double, compared_steps>;  // shares of the highest rate

// `rates`: the schedule's, set by hand.
void compare_with_reference(const Model& model, double clip_norm, Recompute recompute = Recompute::none,
                            const LearningRateSchedule& schedule = {}, const Rates& rates = {1, 1, 1, 1, 1}) {
  at::set_num_threads(1);
  Step input = tiny_input(model);
  input.clip_norm = clip_norm;
  input.recompute = recompute;
  input.global_batch = 4;
  input.micro_batch = 2;
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = compared_steps;
  bundle.graph.step.optimizer.lr_schedule = schedule;
  VirtualRanks ours(bundle, at::kCPU);
  const std::string folder = temporary_folder().path(model.name);
  ours.dump_gradients_of_step(0, folder);

  Weights weights = whole_weights(model, bundle.run.seed);
  ReferenceModel reference(model, weights);
  torch::optim::AdamW optimizer = reference_optimizer(weights, bundle.graph.step.optimizer);
  TokenData data(bundle.run.data, model, bundle.run.seed);
  for (int step = 0; step < compared_steps; ++step) {
    ours.run_step(step);
    optimizer.zero_grad();
    const at::Tensor loss = reference.loss(data.batch(step * input.global_batch, input.global_batch, at::kCPU));
    loss.backward();
    EXPECT_NEAR(ours.take_loss(step), loss.item<double>(), 1e-11 * loss.item<double>()) << "step " << step;
    if (step == 0) {
      const double norm = clip(weights, 0);
      EXPECT_GT(norm, 0.1);
      expect_same_gradients(weights, folder, norm);
    }
    clip(weights, clip_norm);
    for (auto& group : optimizer.param_groups()) group.options().set_lr(bundle.graph.step.optimizer.lr * rates[step]);
    optimizer.step();
  }
}

TEST(OneProcess, LlamaEqualsPlainFunctionalCodeUnderTorchAutogradAndAdamW) {
  compare_with_reference(tiny_llama(2, false), 0.0);
}
TEST(OneProcess, TiedAndClippedLlamaEqualsPlainFunctionalCode) { compare_with_reference(tiny_llama(2, true), 0.3); }
TEST(OneProcess, RecomputedLlamaEqualsPlainFunctionalCode) {
  compare_with_reference(tiny_llama(2, false), 0.0, Recompute::full);
}
// Heads wider than hidden / heads, like Qwen3's; recomputed the second time.
TEST(OneProcess, LlamaWithNormsOfQueryAndKeyEqualsPlainFunctionalCode) {
  compare_with_reference(tiny_qwen3(2), 0.3);
  compare_with_reference(tiny_qwen3(2), 0.0, Recompute::full);
}
// The reference runs every expert on every token, the executor each token's own.
TEST(OneProcess, LlamaWithExpertsEqualsPlainFunctionalCode) {
  compare_with_reference(tiny_mixtral(2), 0.3);
  compare_with_reference(tiny_mixtral(2), 0.0, Recompute::full);
}
// Steps of 4 sequences; the decay ends at a given point, or at the end of the training: 5 steps.
TEST(OneProcess, WarmedUpAndDecayingLlamaEqualsAdamWWithItsRatesSetByHand) {
  compare_with_reference(tiny_llama(2, true), 0.3, Recompute::none,
                         {.warmup_samples = 8, .decay = DecayStyle::cosine, .least = 0.1 * 5e-3},
                         {0.5, 1, 1, 0.775, 0.325});
  compare_with_reference(tiny_llama(2, false), 0.0, Recompute::none,
                         {.warmup_samples = 6, .decay = DecayStyle::linear, .decay_samples = 16},
                         {4.0 / 6, 1, 0.8, 0.4, 0});
}
TEST(OneProcess, GptEqualsPlainFunctionalCode) { compare_with_reference(tiny_gpt(2), 1.0); }
TEST(OneProcess, BertEqualsPlainFunctionalCode) { compare_with_reference(tiny_bert(2), 1.0); }

// Routers that a loss and a bias balance, and that drop rows: micro-batch after micro-batch, as the rules are of one.
void compare_router_with_reference(const Model& model, const Routing& routing, double bias_speed, Recompute recompute) {
  at::set_num_threads(1);
  Step input = tiny_input(model);
  input.clip_norm = 0.3;
  input.recompute = recompute;
  input.global_batch = 4;
  input.micro_batch = 2;
  input.routing = routing;
  Bundle bundle = tiny_bundle(input);
  bundle.graph.step.optimizer.router_bias_speed = bias_speed;
  VirtualRanks ours(bundle, at::kCPU);
  const std::string folder = temporary_folder().path(model.name);
  ours.dump_gradients_of_step(0, folder);

  Weights weights = whole_weights(model, bundle.run.seed);
  ReferenceModel reference(model, weights);
  reference.balancing = routing.balancing_loss, reference.capacity = routing.capacity;
  for (std::int64_t layer = 0; bias_speed > 0 && layer < layer_count(model); ++layer)
    reference.biases["layers." + std::to_string(layer) + "."] = at::zeros({model.runs[1].block.experts}, at::kDouble);
  torch::optim::AdamW optimizer = reference_optimizer(weights, bundle.graph.step.optimizer);
  TokenData data(bundle.run.data, model, bundle.run.seed);
  for (int step = 0; step < compared_steps; ++step) {
    ours.run_step(step);
    optimizer.zero_grad();
    double losses = 0;
    const std::int64_t together = balanced_sequences(routing, input.micro_batch), parts = 4 / together;
    for (std::int64_t part = 0; part < parts; ++part) {
      const at::Tensor loss = reference.loss(data.batch(step * 4 + part * together, together, at::kCPU)) / parts;
      losses += loss.item<double>();
      (loss + reference.take_balancing_loss() / parts).backward();
    }
    EXPECT_NEAR(ours.take_loss(step), losses, 1e-11 * losses) << "step " << step;
    if (step == 0) expect_same_gradients(weights, folder, clip(weights, 0));
    clip(weights, 0.3);
    optimizer.step();
    for (const auto& [prefix, chosen] : reference.take_choices())
      if (bias_speed > 0) reference.biases.at(prefix) += bias_speed * (chosen.to(at::kDouble).mean() - chosen).sign();
  }
}

TEST(OneProcess, ExpertsThatALossBalancesHaveTheGradientsOfItsFormula) {
  for (const Recompute recompute : {Recompute::none, Recompute::full})
    compare_router_with_reference(tiny_mixtral(2), {.balancing_loss = 0.5}, 0, recompute);
}
// A micro-batch is of two sequences; the reference counts one after the other.
TEST(OneProcess, ExpertsThatALossBalancesInEachSequenceHaveTheGradientsOfItsFormula) {
  for (const Recompute recompute : {Recompute::none, Recompute::full})
    compare_router_with_reference(tiny_mixtral(2), {.balancing_loss = 0.5, .balancing_sequences = 1}, 0, recompute);
}
TEST(OneProcess, ExpertsWithACapacityDropTheLastTokensOfEach) {
  for (const Recompute recompute : {Recompute::none, Recompute::full})
    compare_router_with_reference(tiny_mixtral(2), {.balancing_loss = 0.1, .capacity = 0.7}, 0, recompute);
}
TEST(OneProcess, ARoutersBiasMovesAgainstTheLoadOfEachStep) {
  Model model = tiny_mixtral(2);
  model.runs[1].block.router_bias = true;
  for (const Recompute recompute : {Recompute::none, Recompute::full})
    compare_router_with_reference(model, {}, 0.05, recompute);
}

}  // namespace
}  // namespace slipway::test
