// What the products of degrees and the schedules leave out: untied heads, other models, recomputation, split backwards,
// other dtypes. Each runs on layouts in which everything is cut, against one process.
#include <optional>

#include "exec/files/data.h"
#include "exec/run/executable.h"
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

TEST(OtherRuns, AnUntiedHeadWithoutClippingGivesTheResultsOfOneProcess) {
  expect_layout_equals_one_process(all_cut(llama_for(2, false)));
  expect_layout_equals_one_process(with_layout(llama_for(4, false), {.tensor = 2, .pipeline = 4}));
}

TEST(OtherRuns, ATiedHeadWithoutClippingGivesTheResultsOfOneProcess) {
  expect_layout_equals_one_process(all_cut(llama_for(2, true), 0));
}

// Slices of embedding and head that do not match, positions, biases and masked targets, cut over the sequence too.
TEST(OtherRuns, ContextAndShardedWeightsOfOtherModelsGiveTheResultsOfOneProcess) {
  for (const Model& model : {tiny_gpt(2), tiny_gpt(2, false), tiny_bert(2)}) {
    for (const int zero : {0, 2, 3}) {
      expect_layout_equals_one_process(
          with_layout(model, {.tensor = 2, .pipeline = 2, .context = 2, .zero = zero, .sequence_parallel = zero != 2}));
    }
  }
}

// Biases as in Qwen2: sharded with the projections' rows, three parts in one vector.
TEST(OtherRuns, BiasesOfQueryKeyAndValueGiveTheResultsOfOneProcess) {
  Model model = tiny_llama(4, false);
  model.name = "tiny-qwen";
  model.runs[1].block.qkv_bias = true;
  Step split = with_layout(model, {.pipeline = 4});
  split.schedule = "zb-h1";
  expect_layouts_equal_one_process(
      {with_layout(model, {.tensor = 2, .pipeline = 2, .data = 2, .zero = 1, .sequence_parallel = true}),
       with_layout(model, {.tensor = 2, .data = 2, .zero = 3}), with_layout(model, {.pipeline = 2, .context = 2}),
       split});
}

// A rank has its own heads' part of their weights' gradient, which is summed also without sequence parallelism.
TEST(OtherRuns, NormsOfQueryAndKeyGiveTheResultsOfOneProcess) {
  const Model model = tiny_qwen3(4);
  std::vector<Step> inputs;
  for (const int zero : {0, 1, 2, 3})
    inputs.push_back(
        with_layout(model, {.tensor = 2, .pipeline = 2, .data = 2, .zero = zero, .sequence_parallel = zero % 2 == 1}));
  for (const ContextExchange exchange : {ContextExchange::all_gather, ContextExchange::ring}) {
    inputs.push_back(with_layout(model, {.tensor = 2, .pipeline = 2, .context = 2, .zero = 2}));
    inputs.back().layout.context_exchange = exchange;
  }
  for (const char* schedule : {"zb-h1", "zb-v", "chimera", "terapipe"}) {
    inputs.push_back(with_layout(model, {.tensor = 2, .pipeline = 2}));
    inputs.back().schedule = schedule;
  }
  inputs[inputs.size() - 3].layout.chunks = 2;
  inputs.back().slices = 2;
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    inputs.push_back(with_layout(model, {.tensor = 2, .data = 2, .zero = 3}));
    inputs.back().recompute = recompute;
    inputs.back().clip_norm = 0.5;
  }
  expect_layouts_equal_one_process(inputs);
}

TEST(OtherRuns, NormsOfQueryAndKeyWithBiasesOfThemGiveTheResultsOfOneProcess) {
  Model model = tiny_qwen3(2, false);
  model.name = "tiny-biased-qwen3";
  model.runs[1].block.qkv_bias = true;
  expect_layout_equals_one_process(with_layout(model, {.tensor = 2, .data = 2, .zero = 1}));
}

TEST(OtherRuns, FullRecomputationChangesNothingWhereWeightsAreGathered) {
  for (const int context : {1, 2}) {
    Step input = with_layout(llama_for(2, true),
                             {.tensor = 2, .pipeline = 2, .data = 3 - context, .context = context, .zero = 3});
    input.recompute = Recompute::full;
    expect_layout_equals_one_process(input);
  }
}

TEST(OtherRuns, FullRecomputationChangesNothing) {
  for (const bool cut : {false, true}) {
    Step input = cut ? all_cut(llama_for(2, true)) : with_layout(llama_for(2, true), {});
    input.recompute = Recompute::full;
    input.clip_norm = 0.5;
    expect_layout_equals_one_process(input);
  }
}

TEST(OtherRuns, SelectiveRecomputationAndGPipeChangeNothing) {
  Step input = with_layout(llama_for(2, true), {.tensor = 2, .pipeline = 2});
  input.recompute = Recompute::selective;
  input.schedule = "gpipe";
  input.clip_norm = 0.5;
  expect_layout_equals_one_process(input);
}

TEST(OtherRuns, GptAndBertGiveTheResultsOfOneProcess) {
  for (const Model& model : {tiny_gpt(2), tiny_gpt(2, false), tiny_bert(2)}) {
    for (const bool sequence_parallel : {false, true}) {
      Step input = all_cut(model);
      input.layout.sequence_parallel = sequence_parallel;
      input.clip_norm = 0.5;
      expect_layout_equals_one_process(input);
    }
  }
}

// 1F1B with every backward split: W of a micro-batch runs right after the next I of its stage.
ActionLists split_backward(const ActionLists& lists) {
  ActionLists split(lists.size());
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    std::optional<Action> waiting;
    for (Action action : lists[rank]) {
      if (action.pass == Pass::backward) action.pass = Pass::input_grad;
      split[rank].push_back(action);
      if (action.pass != Pass::input_grad) continue;
      if (waiting) split[rank].push_back(*waiting);
      waiting = action;
      waiting->pass = Pass::weight_grad;
    }
    split[rank].push_back(*waiting);
  }
  return split;
}

TEST(OtherRuns, SplittingTheBackwardIntoInputAndWeightGradientsChangesNothing) {
  for (const bool sequence_parallel : {false, true}) {
    Step input = all_cut(llama_for(2, true));
    input.layout.sequence_parallel = sequence_parallel;
    input.clip_norm = 0.5;
    input.actions = std::make_shared<const ActionLists>(split_backward(schedule_named("1f1b")->actions({2, 1, 4, 1})));
    expect_layout_equals_one_process(input);
  }
}

TEST(OtherRuns, Float32LayoutsFollowOneProcessWithinRoundOff) {
  expect_float32_follows_one_process(all_cut(llama_for(2, true)));
}

TEST(OtherRuns, Bfloat16WithFloat32MasterWeightsLearnsLikeFloat64) {
  Step input = all_cut(llama_for(2, true));
  const Trained exact = train(input);
  input.dtype = Dtype::bfloat16;
  input.gradient_dtype = Dtype::float32;
  const Trained rough = train(input);
  for (std::size_t step = 0; step < exact.losses.size(); ++step)
    EXPECT_NEAR(rough.losses[step], exact.losses[step], 2e-2 * exact.losses[step]) << "step " << step;
}

TEST(OtherRuns, ASecondRunGivesTheSameBits) {
  const Step input = all_cut(llama_for(2, true));
  EXPECT_EQ(train(input, 5).losses, train(input, 5).losses);
}

TEST(OtherRuns, WhatCannotBeExecutedYetIsRefusedByName) {
  Bundle bundle = tiny_bundle(with_layout(llama_for(2, false), {}));
  EXPECT_TRUE(not_executable(bundle).empty());
  bundle.graph.step.optimizer.name = "lamb";
  const std::vector<Refusal> reasons = not_executable(bundle);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons.front().key, "run.optimizer.name");
}

TEST(OtherRuns, ModelsForPredictionsAreRefusedByTheKeyOfWhatIsNotComputed) {
  const auto key_of = [](auto change) {
    Step step = with_layout(llama_for(2, false), {});
    Model model = *step.model;
    change(model);
    step.model = model;
    exec::Run run;
    run.data = "text";
    const std::vector<Refusal> reasons = not_executable(step, run, false);
    EXPECT_EQ(reasons.size(), 1U);
    return reasons.empty() ? std::string() : reasons.front().key;
  };
  const auto layer = [](Model& model) -> models::Block& { return model.runs[1].block; };
  EXPECT_EQ(key_of([&](Model& m) { layer(m).kv_latent = 8; }), "model.kv_latent");
  EXPECT_EQ(key_of([&](Model& m) { layer(m).window = 4; }), "model.window");
  EXPECT_EQ(key_of([&](Model& m) { layer(m).sinks = true; }), "model.sinks");
  EXPECT_EQ(key_of([&](Model& m) { layer(m).mlp = models::Mlp::relu; }), "model.mlp");
  EXPECT_EQ(key_of([&](Model& m) { layer(m).parallel = models::Parallel::two_norms; }), "model.parallel");
  EXPECT_EQ(key_of([](Model& m) { m.runs.back().block.predicted_tokens = 1; }), "model.predicted_tokens");
  EXPECT_EQ(key_of([](Model& m) { m.only_predicted = {"rope_scaling"}; }), "model");
}

}  // namespace
}  // namespace slipway::test
