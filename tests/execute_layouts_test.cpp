// Any layout trains like one process: all products of tensor {1, 2, 2 with sequence parallel}, pipeline
// {1, 2, 4}, data {1, 2}, chunks {1, 2} and ZeRO {0, 1} up to 8 ranks, as virtual ranks in this process.
// Losses of 20 steps to 1e-9 relative, gradients of the first step to 1e-12 of the global gradient norm.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "exec/executable.h"
#include "exec/virtual_ranks.h"
#include "schedules/graph/checks.h"
#include "schedules/graph/lowering.h"
#include "tests/same_training.h"
#include "tests/tiny_runs.h"

namespace slipway {
namespace {

constexpr int steps = 20;

Trained train(const LoweringInput& input, int run_steps = steps) {
  at::set_num_threads(1);
  const Bundle bundle = tiny_bundle(input);
  for (const Violation& violation : check_graph(bundle.graph))
    ADD_FAILURE() << describe(bundle.graph, violation);
  VirtualRanks ranks(bundle, at::kCPU);
  static int folders = 0;
  const std::string folder = temporary_folder().path("layout" + std::to_string(folders++));
  ranks.dump_gradients_of_step(0, folder);
  std::vector<double> losses;
  for (int step = 0; step < run_steps; ++step) {
    ranks.run_step(step);
    losses.push_back(ranks.take_loss(step));
  }
  return trained(std::move(losses), folder, rank_count(input.layout));
}

// One process on the same model, kept for the layouts that share it.
const Trained& one_process(LoweringInput input) {
  static std::map<std::string, Trained> known;
  input.layout = Layout{};
  input.schedule = "1f1b";
  input.slices = 1;
  input.shape.sequence = input.model.sequence;
  input.recompute = Recompute::none;
  const std::string key = input.model.name + std::to_string(layer_count(input.model)) +
                          std::to_string(blocks_of(input.model).back().tied) +
                          std::to_string(input.clip_norm);
  const auto [at, is_new] = known.try_emplace(key);
  if (is_new) {
    at->second = train(input);
    EXPECT_LE(at->second.losses.back(), 0.9 * at->second.losses.front())
        << "the loss hardly falls: a weak test";
  }
  return at->second;
}

LoweringInput with_layout(const Model& model, int tensor, int pipeline, int data, int chunks, int zero,
                          bool sequence_parallel) {
  LoweringInput input = tiny_input(model);
  input.layout.tensor = tensor;
  input.layout.pipeline = pipeline;
  input.layout.data = data;
  input.layout.chunks = chunks;
  input.layout.zero = zero;
  input.layout.sequence_parallel = sequence_parallel;
  if (chunks > 1) input.schedule = "interleaved-1f1b";
  return input;
}

std::string describe_layout(const LoweringInput& input) {
  const Layout& l = input.layout;
  return "tensor " + std::to_string(l.tensor) + (l.sequence_parallel ? " (sequence parallel)" : "") +
         ", pipeline " + std::to_string(l.pipeline) + ", data " + std::to_string(l.data) + ", chunks " +
         std::to_string(l.chunks) + ", ZeRO " + std::to_string(l.zero);
}

// A layer per stage, two at least: few models, so that one process is trained once for many layouts.
Model llama_for(int stages, bool tied) { return tiny_llama(std::max(stages, 2), tied); }

void expect_layout_equals_one_process(LoweringInput input) {
  SCOPED_TRACE(describe_layout(input));
  const Trained& one = one_process(input);
  try {
    expect_same_training(one, train(input));
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

class EveryLayout : public testing::TestWithParam<std::tuple<int, int, int>> {};

TEST_P(EveryLayout, GivesTheLossesAndGradientsOfOneProcess) {
  const auto [tensor, pipeline, data] = GetParam();
  if (tensor * pipeline * data > 8) GTEST_SKIP() << "more than 8 ranks";
  for (const int chunks : {1, 2}) {
    for (const int zero : {0, 1}) {
      for (const bool sequence_parallel : {false, true}) {
        if (sequence_parallel && tensor == 1) continue;
        LoweringInput input = with_layout(llama_for(pipeline * chunks, true), tensor, pipeline, data,
                                          chunks, zero, sequence_parallel);
        input.clip_norm = 0.5;
        expect_layout_equals_one_process(input);
      }
    }
  }
}

// Beside that matrix: what it leaves out, on layouts in which everything is cut.
LoweringInput all_cut(const Model& model, int zero = 1) {
  return with_layout(model, 2, 2, 2, 1, zero, true);
}

TEST(OtherRuns, AnUntiedHeadWithoutClippingGivesTheResultsOfOneProcess) {
  expect_layout_equals_one_process(all_cut(llama_for(2, false)));
  expect_layout_equals_one_process(with_layout(llama_for(4, false), 2, 4, 1, 1, 0, false));
}

TEST(OtherRuns, ATiedHeadWithoutClippingGivesTheResultsOfOneProcess) {
  expect_layout_equals_one_process(all_cut(llama_for(2, true), 0));
}

TEST(OtherRuns, FullRecomputationChangesNothing) {
  for (const bool cut : {false, true}) {
    LoweringInput input =
        cut ? all_cut(llama_for(2, true)) : with_layout(llama_for(2, true), 1, 1, 1, 1, 0, false);
    input.recompute = Recompute::full;
    input.clip_norm = 0.5;
    expect_layout_equals_one_process(input);
  }
}

TEST(OtherRuns, SelectiveRecomputationAndGPipeChangeNothing) {
  LoweringInput input = with_layout(llama_for(2, true), 2, 2, 1, 1, 0, false);
  input.recompute = Recompute::selective;
  input.schedule = "gpipe";
  input.clip_norm = 0.5;
  expect_layout_equals_one_process(input);
}

TEST(OtherRuns, GptAndBertGiveTheResultsOfOneProcess) {
  for (const Model& model : {tiny_gpt(2), tiny_gpt(2, false), tiny_bert(2)}) {
    for (const bool sequence_parallel : {false, true}) {
      LoweringInput input = all_cut(model);
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
    LoweringInput input = all_cut(llama_for(2, true));
    input.layout.sequence_parallel = sequence_parallel;
    input.clip_norm = 0.5;
    const ActionLists actions = split_backward(schedule_named("1f1b")->actions({2, 1, 4, 1}));
    input.actions = &actions;
    expect_layout_equals_one_process(input);
  }
}

// Every schedule at two products of degrees: p = 2 alone, and p = 4 (or p = 2 with tensor = data = 2, sequence
// parallel and ZeRO 1) with eight ranks.
LoweringInput with_schedule(const Schedule& schedule, LoweringInput input) {
  input.schedule = schedule.name;
  input.layout.chunks = schedule.default_chunks;
  input.slices = schedule.default_slices;
  input.shape.sequence = input.model.sequence / input.slices;
  input.clip_norm = 0.5;
  return input;
}

class EverySchedule : public testing::TestWithParam<Schedule> {};

TEST_P(EverySchedule, GivesTheLossesAndGradientsOfOneProcess) {
  const Schedule& schedule = GetParam();
  const Model model = llama_for(4, true);
  expect_layout_equals_one_process(with_schedule(schedule, with_layout(model, 1, 2, 1, 1, 0, false)));
  expect_layout_equals_one_process(with_schedule(schedule, with_layout(model, 2, 2, 2, 1, 1, true)));
}

TEST_P(EverySchedule, OnFourRanksOfAnUntiedGptGivesTheLossesAndGradientsOfOneProcess) {
  LoweringInput input = with_schedule(GetParam(), with_layout(tiny_gpt(8, false), 1, 4, 2, 1, 0, false));
  expect_layout_equals_one_process(input);
  input.layout.zero = 1;
  expect_layout_equals_one_process(input);
}

INSTANTIATE_TEST_SUITE_P(ByName, EverySchedule, testing::ValuesIn(all_schedules()), [](const auto& info) {
  std::string name = info.param.name;
  std::erase(name, '-');
  return name;
});

TEST(OtherRuns, Float32LayoutsFollowOneProcessWithinRoundOff) {
  LoweringInput input = all_cut(llama_for(2, true));
  input.shape.dtype = input.gradient_dtype = Dtype::float32;
  const Trained many = train(input);
  input.layout = Layout{};
  const Trained one = train(input);
  for (std::size_t step = 0; step < one.losses.size(); ++step)
    EXPECT_NEAR(many.losses[step], one.losses[step], 2e-5 * one.losses[step]) << "step " << step;
}

TEST(OtherRuns, Bfloat16WithFloat32MasterWeightsLearnsLikeFloat64) {
  LoweringInput input = all_cut(llama_for(2, true));
  const Trained exact = train(input);
  input.shape.dtype = Dtype::bfloat16;
  input.gradient_dtype = Dtype::float32;
  const Trained rough = train(input);
  for (std::size_t step = 0; step < exact.losses.size(); ++step)
    EXPECT_NEAR(rough.losses[step], exact.losses[step], 2e-2 * exact.losses[step]) << "step " << step;
}

TEST(OtherRuns, ASecondRunGivesTheSameBits) {
  const LoweringInput input = all_cut(llama_for(2, true));
  EXPECT_EQ(train(input, 5).losses, train(input, 5).losses);
}

TEST(OtherRuns, WhatCannotBeExecutedYetIsRefusedByName) {
  for (const char* key : {"layout.zero", "layout.context", "run.optimizer.name"}) {
    LoweringInput input =
        with_layout(llama_for(2, false), 1, 1, 2, 1, key == std::string("layout.zero") ? 2 : 0, false);
    if (key == std::string("layout.context")) input.layout.context = 2;
    Bundle bundle = tiny_bundle(input);
    if (key == std::string("run.optimizer.name")) bundle.run.optimizer.name = "lamb";
    const std::vector<std::string> reasons = not_executable(bundle);
    ASSERT_EQ(reasons.size(), 1U) << key;
    EXPECT_TRUE(reasons.front().starts_with(key)) << reasons.front();
  }
}

INSTANTIATE_TEST_SUITE_P(TensorPipelineData, EveryLayout,
                         testing::Combine(testing::Values(1, 2), testing::Values(1, 2, 4),
                                          testing::Values(1, 2)),
                         [](const auto& info) {
                           return "tensor" + std::to_string(std::get<0>(info.param)) + "pipeline" +
                                  std::to_string(std::get<1>(info.param)) + "data" +
                                  std::to_string(std::get<2>(info.param));
                         });

}  // namespace
}  // namespace slipway
