// Executed held-out micro-batches in the bubbles: their loss is that of plain functional code with the weights of the
// window's beginning, wherever the items lie. The training equals that without them to the last bit.
#include <gmock/gmock.h>
#include <torch/optim/adamw.h>

#include "exec/rank/evaluation.h"
#include "exec/run/executable.h"
#include "tests/support/evaluation_runs.h"
#include "tests/support/layout_runs.h"
#include "tests/support/reference_model.h"
#include "tests/virtual_ranks/virtual_ranks.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Curves {
  std::vector<double> losses, evaluations;
};
Curves run_windows(const Bundle& bundle, int windows) {
  at::set_num_threads(1);
  VirtualRanks ranks(bundle, at::kCPU);
  Curves curves;
  for (int window = 0; window < windows; ++window) {
    ranks.run_step(window);
    for (int step = 0; step < bundle.graph.window; ++step)
      curves.losses.push_back(ranks.take_loss(window * bundle.graph.window + step));
    const std::optional<double> evaluation = ranks.take_evaluation(window);
    EXPECT_TRUE(evaluation.has_value());
    curves.evaluations.push_back(evaluation.value_or(0));
  }
  return curves;
}

// One process that trains by torch's own autograd and AdamW, and evaluates the held-out samples before each window.
std::vector<double> reference_evaluations(const Bundle& bundle, int windows) {
  const TaskGraph& graph = bundle.graph;
  Weights weights = whole_weights(graph.step.model, bundle.run.seed);
  ReferenceModel reference(graph.step.model, weights);
  std::vector<at::Tensor> matrices, vectors;
  for (auto& [name, weight] : weights) (weight.dim() == 2 ? matrices : vectors).push_back(weight);
  const Optimizer& o = bundle.graph.step.optimizer;
  const auto options = [&](double decay) {
    return std::make_unique<torch::optim::AdamWOptions>(
        torch::optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).eps(o.epsilon).weight_decay(decay));
  };
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(matrices, options(o.weight_decay));
  groups.emplace_back(vectors, options(0.0));
  torch::optim::AdamW optimizer(std::move(groups), torch::optim::AdamWOptions(o.lr));
  TokenData training(bundle.run.data, graph.step.model, bundle.run.seed),
      held_out(bundle.run.evaluation_data, graph.step.model, bundle.run.seed);
  std::vector<double> evaluations;
  for (int step = 0; step < windows * graph.window; ++step) {
    if (step % graph.window == 0) {
      at::NoGradGuard no_grad;
      const std::int64_t samples =
          std::int64_t{graph.step.layout.data} * held_out_micro_batches * graph.step.micro_batch;
      evaluations.push_back(reference.loss(held_out.batch(0, samples, at::kCPU)).item<double>());
    }
    optimizer.zero_grad();
    reference.loss(training.batch(step * graph.step.global_batch, graph.step.global_batch, at::kCPU)).backward();
    optimizer.step();
  }
  return evaluations;
}

std::vector<Step> pipelines() {
  std::vector<Step> inputs;
  const auto add = [&](const char* schedule, const Degrees& degrees, const Model& model) {
    inputs.push_back(with_layout(model, degrees));
    inputs.back().schedule = schedule;
    inputs.back().layout.chunks = degrees.chunks;
  };
  add("1f1b", {.pipeline = 4}, tiny_llama(4, false));
  add("gpipe", {.pipeline = 2, .data = 2}, tiny_llama(4, true));
  add("interleaved-1f1b", {.pipeline = 2, .chunks = 2}, tiny_llama(4, false));
  add("zb-h1", {.pipeline = 4}, tiny_gpt(4));
  add("zb-v", {.pipeline = 2, .chunks = 2}, tiny_llama(4, false));
  add("zb-v", {.pipeline = 2, .chunks = 2}, tiny_llama(4, true));  // embedding and head are one tensor
  add("chimera", {.pipeline = 2}, tiny_bert(2));
  add("1f1b", {.pipeline = 2}, tiny_mixtral(2));
  return inputs;
}

// Items that fit into the bubbles of a step, and items so long that they take several steps or lie behind the window.
TEST(ExecutedEvaluation, IsTheLossOfPlainCodeWithTheWeightsOfTheWindowsBeginning) {
  for (const Step& input : pipelines()) {
    for (const double item_s : {0.3, 2.5}) {
      const Bundle bundle = evaluating(input, item_s);
      SCOPED_TRACE(input.schedule + ", window " + std::to_string(bundle.graph.window));
      constexpr int windows = 3;
      const Curves curves = run_windows(bundle, windows);
      const std::vector<double> expected = reference_evaluations(bundle, windows);
      for (int window = 0; window < windows; ++window) EXPECT_NEAR(curves.evaluations[window], expected[window], 1e-10);
      EXPECT_LT(curves.evaluations.back(), curves.evaluations.front()) << "it learns something";
    }
  }
}

TEST(ExecutedEvaluation, ChangesNoBitOfTheTraining) {
  for (const Step& input : pipelines()) {
    const Bundle bundle = evaluating(input, 2.5);
    Bundle plain = tiny_bundle(input);
    at::set_num_threads(1);
    VirtualRanks ranks(plain, at::kCPU);
    const Curves curves = run_windows(bundle, 2);
    for (int step = 0; step < static_cast<int>(curves.losses.size()); ++step) {
      ranks.run_step(step);
      EXPECT_EQ(ranks.take_loss(step), curves.losses[step]) << input.schedule << " " << step;
    }
  }
}

// A rank may be a window ahead of the lane that sends what it made before.
TEST(ExecutedEvaluation, KeepsTheResidualsOfTwoWindowsApart) {
  const Bundle bundle = evaluating(with_layout(tiny_llama(2, false), {.pipeline = 2}), 0.3);
  const Buckets buckets(bundle, 0, at::kCPU);
  Evaluation evaluation(bundle, 0, buckets, at::kCPU);
  evaluation.put_residual({.window = 4, .stage = 1, .micro_batch = 0}, at::full({1}, 4.0));
  evaluation.put_residual({.window = 5, .stage = 1, .micro_batch = 0}, at::full({1}, 5.0));
  EXPECT_EQ(evaluation.take_residual({.window = 4, .stage = 1, .micro_batch = 0}).item<double>(), 4);
  EXPECT_EQ(evaluation.take_residual({.window = 5, .stage = 1, .micro_batch = 0}).item<double>(), 5);
}

TEST(ExecutedEvaluation, SaysWhenSomeHeldOutSamplesCountSeveralTimes) {
  Bundle bundle = evaluating(with_layout(tiny_llama(2, false), {.pipeline = 2}), 0.3);
  const Buckets buckets(bundle, 0, at::kCPU);
  EXPECT_EQ(Evaluation(bundle, 0, buckets, at::kCPU).note(), "");
  const std::string path = temporary_folder().path("two-samples.txt");
  std::ofstream(path) << std::string(static_cast<std::size_t>(2 * bundle.graph.step.model->sequence + 1), 'a');
  bundle.run.evaluation_data = path;
  const std::int64_t samples = held_out_micro_batches * bundle.graph.step.micro_batch;
  ASSERT_GT(samples, 2);
  EXPECT_THAT(Evaluation(bundle, 0, buckets, at::kCPU).note(),
              AllOf(HasSubstr("has 2 samples of "), HasSubstr("each window evaluates " + std::to_string(samples)),
                    HasSubstr("schedule.evaluation_micro_batches to at most " +
                              std::to_string(2 / bundle.graph.step.micro_batch))));
}

TEST(ExecutedEvaluation, IsRefusedWithTheReasonWhereItCannotBe) {
  const auto reasons = [](auto change) {
    Bundle bundle = evaluating(with_layout(tiny_llama(2, false), {.pipeline = 2}), 0.3);
    change(bundle);
    std::vector<std::string> texts;
    for (const Refusal& refusal : not_executable(bundle)) texts.push_back(text_of(refusal));
    return texts;
  };
  EXPECT_THAT(reasons([](Bundle&) {}), testing::IsEmpty());
  EXPECT_THAT(reasons([](Bundle& b) { b.run.evaluation_data.clear(); }),
              ElementsAre(HasSubstr("run.evaluation_data: it is not set")));
  EXPECT_THAT(reasons([](Bundle& b) { b.graph.step.layout.zero = 1; }), ElementsAre(HasSubstr("set layout.zero to 0")));
  EXPECT_THAT(reasons([](Bundle& b) { b.graph.step.slices = 2; }), ElementsAre(HasSubstr("passes whole sequences")));
}

}  // namespace
}  // namespace slipway::test
