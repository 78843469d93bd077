// Executed mixtures of experts: rows and products against dense code on all experts, and every way to cut a model with
// experts against one process.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "exec/operators/experts.h"
#include "exec/operators/grouped_linear.h"
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

Block routing(std::int64_t experts_per_token) {
  Block block;
  block.experts_per_token = experts_per_token;
  return block;
}

// ---- Rows --------------------------------------------------------------------------------------------

TEST(ExpertRows, AreTheTokensOfEachExpertInTheirOrderAndSumUpByTheSoftmaxOverTheChosen) {
  at::manual_seed(3);
  const std::int64_t tokens = 11, experts = 5, each = 3;
  const at::Tensor logits = at::randn({tokens, experts}, at::kDouble), x = at::randn({tokens, 4}, at::kDouble);
  const ExpertRows rows = rows_for_experts(logits, routing(each));
  const at::Tensor sorted = to_experts(x, rows);
  ASSERT_EQ(sorted.size(0), tokens * each);
  EXPECT_EQ(rows.ends[experts - 1].item<int>(), tokens * each);
  // By hand, token after token: the experts with the `each` largest logits.
  at::Tensor expected = at::zeros_like(x);
  std::int64_t row = 0;
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    for (std::int64_t token = 0; token < tokens; ++token) {
      if (logits[token].gt(logits[token][expert]).sum().item<std::int64_t>() >= each) continue;
      EXPECT_TRUE(at::equal(sorted[row++], x[token])) << expert << token;
    }
    EXPECT_EQ(rows.ends[expert].item<int>(), row) << expert;
  }
  // Experts that multiply by their number + 1.
  at::Tensor y = sorted.clone();
  for (std::int64_t expert = 0, first = 0; expert < experts; ++expert) {
    const std::int64_t end = rows.ends[expert].item<int>();
    y.narrow(0, first, end - first).mul_(static_cast<double>(expert + 1));
    first = end;
  }
  for (std::int64_t token = 0; token < tokens; ++token) {
    const auto [best, index] = logits[token].topk(each);
    const at::Tensor share = best.softmax(0);
    for (std::int64_t i = 0; i < each; ++i) expected[token] += share[i] * x[token] * (index[i].item<double>() + 1);
  }
  EXPECT_LE((from_experts(y, rows) - expected).abs().max().item<double>(), 1e-14);
}

TEST(ExpertRows, HaveTheGradientsThatFiniteDifferencesGive) {
  at::manual_seed(4);
  const std::int64_t tokens = 5, experts = 4, each = 2;
  const at::Tensor weight = at::randn({tokens, 3}, at::kDouble);
  const auto value = [&](const at::Tensor& logits, const at::Tensor& x) {
    const ExpertRows rows = rows_for_experts(logits, routing(each));
    return (from_experts(to_experts(x, rows).square(), rows) * weight).sum();
  };
  const at::Tensor logits = at::randn({tokens, experts}, at::kDouble).requires_grad_(true);
  const at::Tensor x = at::randn({tokens, 3}, at::kDouble).requires_grad_(true);
  value(logits, x).backward();
  constexpr double step = 1e-6;
  for (const at::Tensor& of : {logits, x}) {
    const at::Tensor slope = at::empty_like(of.detach());
    for (std::int64_t i = 0; i < of.numel(); ++i) {
      at::Tensor there = of.detach().clone(), back = there.clone();
      there.view({-1})[i] += step, back.view({-1})[i] -= step;
      const at::Tensor &l = logits.detach(), &t = x.detach();
      const bool router = of.is_same(logits);
      slope.view({-1})[i] = (router ? value(there, t) - value(back, t) : value(l, there) - value(l, back)) / (2 * step);
    }
    EXPECT_LE((of.grad() - slope).abs().max().item<double>(), 1e-8);
  }
}

// DeepSeek-V3's router, token after token with loops (DeepSeek-AI 2024, equations 12 to 16 and section 2.1.2).
TEST(ExpertRows, OfGroupsAndSigmoidsWeighTheBestExpertsOfTheBestGroups) {
  at::manual_seed(6);
  Block block = routing(3);
  block.experts = 12, block.expert_groups = 4, block.groups_per_token = 2;
  block.scores = RouterScores::sigmoid, block.score_scale = 2.5;
  const at::Tensor logits = at::randn({9, 12}, at::kDouble);
  for (const bool normalised : {true, false}) {
    block.normalises_scores = normalised;
    const ExpertRows rows = rows_for_experts(logits, block);
    const at::Tensor expert_of_row = at::searchsorted(rows.ends, at::arange(27, at::kInt), false, /*right=*/true);
    for (std::int64_t token = 0; token < 9; ++token) {
      std::vector<double> score(12);
      for (int e = 0; e < 12; ++e) score[e] = 1 / (1 + std::exp(-logits[token][e].item<double>()));
      std::vector<std::pair<double, int>> groups;
      for (int g = 0; g < 4; ++g) {
        std::vector<double> own(score.begin() + g * 3, score.begin() + g * 3 + 3);
        std::sort(own.rbegin(), own.rend());
        groups.emplace_back(-(own[0] + own[1]), g);
      }
      std::sort(groups.begin(), groups.end());
      std::vector<std::pair<double, int>> allowed;
      for (int e = 0; e < 12; ++e)
        if (e / 3 == groups[0].second || e / 3 == groups[1].second) allowed.emplace_back(-score[e], e);
      std::sort(allowed.begin(), allowed.end());
      const double sum = -(allowed[0].first + allowed[1].first + allowed[2].first);
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(expert_of_row[rows.place[token * 3 + i].item<int>()].item<int>(), allowed[i].second) << token << i;
        EXPECT_NEAR(rows.weights[token][i].item<double>(), -allowed[i].first * 2.5 / (normalised ? sum : 1), 1e-14);
      }
    }
  }
}

// Two sequences of six tokens, which come position after position; five experts, two of them for a token.
TEST(ExpertRows, ThatAreForcedGoToExpertsInTurnAndAreWeighedByTheRouter) {
  at::manual_seed(7);
  const std::int64_t samples = 2, tokens = 12, experts = 4, each = 2;
  const at::Tensor logits = at::randn({tokens, experts}, at::kDouble);
  Routing forced;
  forced.forced = true;
  const ExpertRows rows = rows_for_experts(logits, routing(each), forced, {}, samples);
  std::vector<std::int64_t> loads(experts);
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t first = token / samples * each % experts, second = (first + 1) % experts;
    const double total = std::exp(logits[token][first].item<double>()) + std::exp(logits[token][second].item<double>());
    EXPECT_NEAR(rows.weights[token][0].item<double>(), std::exp(logits[token][first].item<double>()) / total, 1e-14);
    ++loads[static_cast<std::size_t>(first)], ++loads[static_cast<std::size_t>(second)];
  }
  std::int64_t end = 0;
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    EXPECT_EQ(loads[static_cast<std::size_t>(expert)], tokens * each / experts);
    EXPECT_EQ(rows.ends[expert].item<std::int64_t>(), end += tokens * each / experts);
  }
}

TEST(ExpertRows, OfASoftmaxOverAllExpertsKeepTheirShares) {
  at::manual_seed(7);
  Block block = routing(2);
  block.normalises_scores = false;
  const at::Tensor logits = at::randn({6, 5}, at::kDouble);
  const at::Tensor largest = std::get<0>(logits.softmax(1).sort(1, /*descending=*/true)).narrow(1, 0, 2);
  EXPECT_TRUE(at::allclose(rows_for_experts(logits, block).weights, largest, 1e-14));
}

// ---- Products ----------------------------------------------------------------------------------------

TEST(GroupedLinear, GivesEachExpertsRowsItsProductAndGradientsAtOnceOrLater) {
  at::manual_seed(5);
  const std::int64_t experts = 3, in = 4, out = 2;
  const at::Tensor ends = at::tensor({3, 3, 8}, at::kInt);  // the second has no rows
  const at::Tensor x = at::randn({8, in}, at::kDouble), dy = at::randn({8, out}, at::kDouble);
  ShardedParameter weight;
  weight.weight = at::randn({experts * out, in}, at::kDouble);
  for (const bool later : {false, true}) {
    weight.gradient = at::ones({experts * out, in}, at::kDouble);
    WeightGradientQueue queue;
    queue.deferred = later;
    const at::Tensor input = x.clone().requires_grad_(true);
    const at::Tensor y = grouped_linear(input, ends, weight, queue);
    y.backward(dy);
    if (later) {
      EXPECT_TRUE(at::equal(weight.gradient, at::ones({experts * out, in}, at::kDouble))) << "not before run()";
      queue.run();
    }
    for (const auto& [expert, first, rows] : {std::array<std::int64_t, 3>{0, 0, 3}, {1, 3, 0}, {2, 3, 5}}) {
      const at::Tensor matrix = weight.weight.narrow(0, expert * out, out), own = x.narrow(0, first, rows);
      const at::Tensor own_dy = dy.narrow(0, first, rows);
      EXPECT_TRUE(at::allclose(y.narrow(0, first, rows), own.matmul(matrix.t()), 1e-13));
      EXPECT_TRUE(at::allclose(input.grad().narrow(0, first, rows), own_dy.matmul(matrix), 1e-13));
      EXPECT_TRUE(at::allclose(weight.gradient.narrow(0, expert * out, out), own_dy.t().matmul(own) + 1, 1e-13));
    }
  }
}

// ---- Layouts -----------------------------------------------------------------------------------------

// A tensor rank has a part of every expert, so it has a part of the router's gradient.
TEST(Experts, CutByEveryDegreeGiveTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (const int zero : {0, 1, 2, 3})
    inputs.push_back(
        with_layout(tiny_mixtral(4, true),
                    {.tensor = 2, .pipeline = 2, .data = 2, .zero = zero, .sequence_parallel = zero % 2 == 1}));
  for (const ContextExchange exchange : {ContextExchange::all_gather, ContextExchange::ring}) {
    inputs.push_back(with_layout(tiny_mixtral(4, true), {.tensor = 2, .pipeline = 2, .context = 2, .zero = 2}));
    inputs.back().layout.context_exchange = exchange;
  }
  inputs.push_back(with_layout(tiny_mixtral(4, true), {.pipeline = 4}));
  expect_layouts_equal_one_process(inputs);
}

TEST(Experts, InEverySchedulePassGiveTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (const char* schedule :
       {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zb-v", "dualpipe-v", "chimera", "terapipe"}) {
    inputs.push_back(with_layout(tiny_mixtral(4), {.tensor = 2, .pipeline = 2}));
    Step& input = inputs.back();
    input.schedule = schedule;
    const std::string name = schedule;
    if (name == "interleaved-1f1b" || name == "zb-v" || name == "dualpipe-v") input.layout.chunks = 2;
    if (name != "terapipe") continue;
    input.slices = 2;
  }
  expect_layouts_equal_one_process(inputs);
}

TEST(Experts, RecomputedGiveTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    inputs.push_back(with_layout(tiny_mixtral(2), {.tensor = 2, .data = 2, .zero = 3}));
    inputs.back().recompute = recompute;
    inputs.back().clip_norm = 0.5;
  }
  expect_layouts_equal_one_process(inputs);
}

TEST(Experts, WithNormsOfQueryAndKeyAsQwen3HasThemGiveTheResultsOfOneProcess) {
  Model model = tiny_qwen3(2, false);
  model.name = "tiny-qwen3-moe";
  model.runs[1].block.experts = 8;
  model.runs[1].block.experts_per_token = 3;
  expect_layouts_equal_one_process({with_layout(model, {.tensor = 2, .data = 2, .zero = 1}),
                                    with_layout(model, {.tensor = 2, .pipeline = 2, .sequence_parallel = true})});
}

// As in DeepSeek-V3: experts that every token goes through, sigmoid scores, groups of experts.
TEST(Experts, BesideSharedOnesGiveTheResultsOfOneProcess) {
  Model model = tiny_mixtral(2);
  model.name = "tiny-shared";
  Block& block = model.runs[1].block;
  block.experts = 8, block.experts_per_token = 3, block.expert_groups = 4, block.groups_per_token = 2;
  block.shared_ffn = 32, block.scores = RouterScores::sigmoid, block.score_scale = 1.5;
  std::vector<Step> inputs{with_layout(model, {.tensor = 2, .data = 2, .zero = 3}),
                           with_layout(model, {.tensor = 2, .pipeline = 2, .sequence_parallel = true}),
                           with_layout(model, {.pipeline = 2, .context = 2})};
  inputs.push_back(inputs.front());
  inputs.back().recompute = Recompute::full;
  inputs.push_back(inputs[1]);
  inputs.back().schedule = "zb-h1";
  expect_layouts_equal_one_process(inputs);
}

// Layers without experts among those with them.
TEST(Experts, InSomeLayersOnlyGiveTheResultsOfOneProcess) {
  expect_layouts_equal_one_process({with_layout(tiny_dense_first(), {.pipeline = 2, .data = 2, .zero = 1})});
}

}  // namespace
}  // namespace slipway::test
