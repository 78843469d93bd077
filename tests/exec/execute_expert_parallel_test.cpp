// Experts on ranks of their own: tokens travel to them, and every layout trains like one process. Virtual ranks in this
// process; losses of eight steps agree to 1e-10 relative, gradients of the first step to 1e-12 of the global gradient norm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "exec/operators/parameters.h"
#include "schedules/step/expert_place.h"
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

constexpr int few_steps = 8;  // of a run; there are many layouts

Step with_experts(const Model& model, const Degrees& degrees, int expert, int expert_tensor = 0) {
  Step input = with_layout(model, degrees);
  input.layout.expert = expert;
  input.layout.expert_tensor = expert_tensor;
  input.clip_norm = 0.5;
  return input;
}

// As in DeepSeek-V3: shared experts, sigmoid scores, groups of experts.
Model tiny_shared(int layers) {
  Model model = tiny_mixtral(layers);
  model.name = "tiny-shared";
  Block& block = model.runs[1].block;
  block.experts = 8, block.experts_per_token = 3, block.expert_groups = 4, block.groups_per_token = 2;
  block.shared_ffn = 32, block.scores = RouterScores::sigmoid, block.score_scale = 1.5;
  return model;
}

// ---- Places and shards -------------------------------------------------------------------------------

// The numbering of schedules/step/layout.h, by loops.
TEST(ExpertPlace, IsThatOfTheFoldedNumbering) {
  Layout layout;
  layout.tensor = 2, layout.data = 4, layout.context = 2, layout.pipeline = 2;
  layout.expert = 4, layout.expert_tensor = 2;
  int rank = 0;
  for (int pipeline = 0; pipeline < 2; ++pipeline)
    for (int replica = 0; replica < 2; ++replica)
      for (int expert = 0; expert < 4; ++expert)
        for (int cut = 0; cut < 2; ++cut)
          EXPECT_EQ(expert_place_of(layout, rank++), (ExpertPlace{replica, expert, 4, cut, 2}));
}

TEST(ExpertShards, TileEveryMatrixOnce) {
  const Model model = tiny_mixtral(1);
  for (const Parameter& parameter : parameters_of(model, 1)) {
    if (parameter.experts == 0) continue;
    std::vector<int> held(static_cast<std::size_t>(elements_of(parameter)), 0);
    for (int expert = 0; expert < 2; ++expert) {
      for (int cut = 0; cut < 2; ++cut) {
        const Shard shard = expert_shard(parameter, {0, expert, 2, cut, 2});
        const bool by_columns = parameter.shard_dim == 1;
        for (const Piece& piece : shard.pieces)
          for (std::int64_t i = piece.begin; i < piece.end; ++i)
            for (std::int64_t j = shard.across.begin; j < shard.across.end; ++j)
              ++held[static_cast<std::size_t>(by_columns ? j * parameter.shape[1] + i : i * parameter.shape[1] + j)];
      }
    }
    EXPECT_EQ(std::count(held.begin(), held.end(), 1), elements_of(parameter)) << parameter.name;
  }
}

// ---- Layouts -----------------------------------------------------------------------------------------

TEST(ExpertParallel, TimesEveryOtherDegreeGivesTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (const int tensor : {1, 2})
    for (const int pipeline : {1, 2})
      for (const int context : {1, 2, 4})
        for (const int data : {1, 2, 4, 8})
          for (const int expert : {2, 4})
            for (const int cut : {1, 2}) {
              const int members = tensor * context * data;
              if (cut > tensor || members % (expert * cut) != 0 || members * pipeline > 8) continue;
              const int zero = static_cast<int>(inputs.size() % 4);
              inputs.push_back(with_experts(tiny_mixtral(2, true),
                                            {.tensor = tensor,
                                             .pipeline = pipeline,
                                             .data = data,
                                             .context = context,
                                             .zero = zero,
                                             .sequence_parallel = tensor > 1},
                                            expert, cut));
            }
  std::cout << inputs.size() << " layouts of expert parallelism with every ZeRO stage, each against one process\n";
  RecordProperty("layouts", static_cast<int>(inputs.size()));
  EXPECT_GE(inputs.size(), 40u);
  expect_layouts_equal_one_process(inputs, few_steps, 1e-10);
}

// Cut finer than attention, and coarser; no rank divides experts, and tokens travel all the same.
TEST(ExpertParallel, WithExpertsCutByOtherDegreesThanAttentionGivesTheResultsOfOneProcess) {
  const Model model = tiny_mixtral(2, true);
  const Degrees whole{.tensor = 2, .data = 2, .zero = 1, .sequence_parallel = true};
  expect_layouts_equal_one_process(
      {with_experts(model, whole, 1, 1), with_experts(model, whole, 1, 4),
       with_experts(model, {.data = 4, .zero = 1}, 2, 2), with_experts(model, {.pipeline = 2, .data = 4}, 1, 4)},
      few_steps, 1e-10);
}

// Beside shared experts, with sigmoid scores and groups of experts; recomputed, in every kind of schedule.
TEST(ExpertParallel, InEverySchedulePassGivesTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    inputs.push_back(
        with_experts(tiny_shared(2), {.tensor = 2, .data = 2, .zero = 1, .sequence_parallel = true}, 4, 1));
    inputs.back().recompute = recompute;
    inputs.push_back(with_experts(tiny_shared(2), {.pipeline = 2, .data = 2, .context = 2, .zero = 1}, 4));
    inputs.back().recompute = recompute;
    inputs.push_back(with_experts(tiny_shared(2), {.tensor = 2, .data = 4, .sequence_parallel = true}, 2));
    inputs.back().recompute = recompute;
  }
  for (const std::string schedule :
       {"gpipe", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe-v", "chimera", "terapipe"}) {
    const bool chunks = schedule == "interleaved-1f1b" || schedule == "zb-v" || schedule == "dualpipe-v";
    inputs.push_back(with_experts(tiny_shared(4), {.pipeline = 2, .data = 2, .zero = 1}, 2));
    inputs.back().schedule = schedule;
    if (chunks) inputs.back().layout.chunks = 2;
    if (schedule == "terapipe") inputs.back().slices = 2;
    inputs.push_back(
        with_experts(tiny_shared(4), {.tensor = 2, .pipeline = 2, .zero = 1, .sequence_parallel = true}, 2, 1));
    inputs.back().schedule = schedule;
    if (chunks) inputs.back().layout.chunks = 2;
    if (schedule == "terapipe") inputs.back().slices = 2;
  }
  expect_layouts_equal_one_process(inputs, few_steps, 1e-10);
}

// Layers without experts among those with them.
TEST(ExpertParallel, InSomeLayersOnlyGivesTheResultsOfOneProcess) {
  expect_layouts_equal_one_process({with_experts(tiny_dense_first(), {.pipeline = 2, .data = 4, .zero = 1}, 4)},
                                   few_steps, 1e-10);
}

// The loss that balances experts is of a whole micro-batch, and the bias moves by the load of the whole step, wherever
// their tokens are.
TEST(ExpertParallel, BalancedByALossAndABiasGivesTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (Model model : {tiny_mixtral(2), tiny_shared(2)}) {
    model.name += "-balanced";
    model.runs[1].block.router_bias = true;
    const auto add = [&](const Degrees& degrees, int expert, int cut = 0) {
      inputs.push_back(with_experts(model, degrees, expert, cut));
      inputs.back().routing.balancing_loss = 0.5;
      inputs.back().optimizer.router_bias_speed = 0.02;
    };
    add({.data = 4, .zero = 1}, 4);
    add({.tensor = 2, .pipeline = 2, .data = 2, .zero = 1, .sequence_parallel = true}, 4, 1);
    add({.tensor = 2, .context = 2, .sequence_parallel = true}, 2);
    inputs.back().recompute = Recompute::full;
    add({.tensor = 2, .context = 2, .zero = 1}, 1);  // no rows travel: every tensor rank routes the same tokens
    add({.tensor = 2, .data = 2, .zero = 2, .sequence_parallel = true}, 1);
    add({.pipeline = 2, .data = 2, .zero = 3}, 1);
    add({.pipeline = 2, .data = 2, .zero = 1}, 2);
    inputs.back().schedule = "zb-h1";
  }
  expect_layouts_equal_one_process(inputs, few_steps, 1e-10);
}

// The global micro-batch: four sequences in a row are balanced together, whether one rank has them, four ranks, or four
// ranks of eight. One process has micro-batches of four.
TEST(ExpertParallel, BalancedOverTheGlobalMicroBatchGivesTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  Model model = tiny_mixtral(2);
  model.name += "-global";
  const auto add = [&](const Degrees& degrees, int micro_batch, int expert, int cut = 0) -> Step& {
    inputs.push_back(with_experts(model, degrees, expert, cut));
    inputs.back().micro_batch = micro_batch;
    inputs.back().routing.balancing_loss = 0.5;
    inputs.back().routing.balancing_sequences = 4;
    return inputs.back();
  };
  for (const int expert : {2, 4}) {
    add({.data = 4, .zero = 1}, 1, expert);
    add({.data = 8, .zero = 2}, 1, expert);
    add({.data = 4, .context = 2, .zero = 3}, 1, expert);
    add({.pipeline = 2, .data = 4, .zero = 1}, 1, expert);
    add({.tensor = 2, .data = 4, .sequence_parallel = true}, 1, expert, 1);
    add({.tensor = 2, .data = 2, .context = 2, .sequence_parallel = true}, 2, expert, 1);
    add({.tensor = 2, .pipeline = 2, .data = 2, .zero = 1, .sequence_parallel = true}, 2, expert, 1);
    add({.tensor = 2, .data = 2, .sequence_parallel = true}, 4, expert, 1);     // all on one rank
    add({.tensor = 2, .context = 2, .sequence_parallel = true}, 8, expert, 1);  // two parts of a micro-batch
    add({.pipeline = 2, .data = 4}, 1, expert).recompute = Recompute::full;
    add({.pipeline = 2, .data = 4}, 1, expert).schedule = "zb-h1";
  }
  add({.pipeline = 2, .data = 2}, 2, 2).schedule = "chimera";
  add({.tensor = 2, .data = 4, .zero = 3}, 1, 1);  // no rows travel: every tensor rank routes the same tokens
  add({.tensor = 2, .data = 2, .context = 2, .zero = 2, .sequence_parallel = true}, 2, 1);
  expect_layouts_equal_one_process(inputs, few_steps, 1e-10);
}

// The turns go by a token's place in its sequence, wherever that place is.
TEST(ExpertParallel, WithForcedRoutingGivesTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (Model model : {tiny_mixtral(2), tiny_shared(2)}) {
    model.name += "-forced";
    if (model.runs[1].block.experts == 8) model.runs[1].block.experts_per_token = 4;  // whole rounds in every part
    const std::size_t first = inputs.size();
    inputs.push_back(with_experts(model, {.data = 4, .zero = 1}, 4));
    inputs.push_back(with_experts(model, {.tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = true}, 4, 1));
    inputs.push_back(with_experts(model, {.tensor = 2, .context = 2, .sequence_parallel = true}, 2, 1));
    inputs.push_back(with_experts(model, {.data = 2, .context = 2, .zero = 3}, 2));
    inputs.push_back(with_experts(model, {.pipeline = 2, .data = 2}, 2));
    inputs.back().schedule = "terapipe", inputs.back().slices = 2;
    for (std::size_t i = first; i < inputs.size(); ++i) inputs[i].routing.forced = true;
  }
  expect_layouts_equal_one_process(inputs, few_steps, 1e-10);
}

// What is balanced together changes the training.
TEST(ExpertParallel, BalancedOverMoreSequencesIsAnotherTraining) {
  Step step = with_experts(tiny_mixtral(2), {.data = 2}, 2);
  step.routing.balancing_loss = 0.5;
  const double own = train(step, 3).losses.back();
  step.routing.balancing_sequences = 2;
  EXPECT_GT(std::abs(train(step, 3).losses.back() - own), 1e-7 * own);
}

// ZeRO 2 and 3 with experts that one rank has alone, or that several divide, in split backwards and with recomputation.
TEST(ExpertParallel, WithShardedGradientsAndWeightsGivesTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (const int zero : {2, 3}) {
    inputs.push_back(with_experts(tiny_shared(2), {.data = 4, .zero = zero}, 4));  // alone
    inputs.push_back(with_experts(tiny_shared(2), {.data = 4, .zero = zero}, 2));
    // Experts have two holders, everything else has one.
    Model four_heads = tiny_shared(2);
    four_heads.name = "tiny-shared-four-heads", four_heads.runs[1].block.kv_heads = 4;
    inputs.push_back(with_experts(four_heads, {.tensor = 4, .zero = zero, .sequence_parallel = true}, 2, 1));
    inputs.push_back(with_experts(tiny_dense_first(), {.pipeline = 2, .data = 4, .zero = zero}, 2));
    for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
      inputs.push_back(
          with_experts(tiny_shared(2), {.tensor = 2, .data = 4, .zero = zero, .sequence_parallel = true}, 2, 2));
      inputs.back().recompute = recompute;
    }
    for (const std::string schedule : {"interleaved-1f1b", "zb-h1", "zb-v", "terapipe"}) {
      inputs.push_back(with_experts(tiny_shared(4), {.pipeline = 2, .data = 4, .zero = zero}, 2));
      inputs.back().schedule = schedule;
      if (schedule == "interleaved-1f1b" || schedule == "zb-v") inputs.back().layout.chunks = 2;
      if (schedule == "terapipe") inputs.back().slices = 2;
    }
  }
  expect_layouts_equal_one_process(inputs, few_steps, 1e-10);
}

// The rows of a sequence that a rank routes compete with each other only: one process, which routes sequence after
// sequence, drops the same.
TEST(ExpertParallel, WithACapacityDropsWhatOneProcessDrops) {
  Model model = tiny_mixtral(2);
  model.name += "-capacity";
  std::vector<Step> inputs;
  for (const int expert : {1, 2, 4}) {
    inputs.push_back(with_experts(model, {.data = 4, .zero = 1}, expert));
    inputs.push_back(with_experts(model, {.pipeline = 2, .data = 4}, expert, 1));
  }
  inputs.push_back(with_experts(model, {.tensor = 2, .pipeline = 2, .data = 2}, 1));
  for (Step& input : inputs) input.routing.capacity = 0.8;
  expect_layouts_equal_one_process(inputs, few_steps, 1e-10);
}

}  // namespace
}  // namespace slipway::test
