// What products lose beside messages, against sums by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "models/machine/priced_cluster.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/beside.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

constexpr double longer = 1, share = longer / (1 + longer);

PricedCluster fitted_cluster() {
  PricedCluster cluster = hand_cluster(1, 2, 1e9, 1e-6);
  cluster.groups.front().machine.trained = true;
  cluster.groups.front().machine.constants.beside = longer;
  return cluster;
}

// Products of one second on rank 0; reductions on two ranks behind some of them.
struct Lane {
  HandGraph hand{2};
  std::vector<TaskId> products;

  TaskId product(std::vector<TaskId> after = {}) {
    products.push_back(hand.compute(0, 1, std::move(after)));
    hand.graph.works.back().kind = WorkKind::segment;
    return products.back();
  }
  TaskId reduction(double seconds) {
    return hand.collective(Collective::all_reduce, {0, 1}, 1, seconds, {products.back()});
  }
  Durations& finish() {
    hand.finish();
    Rows& lists = hand.graph.compute_order;
    lists = Rows{};
    lists.values = products;
    lists.begin = {0, static_cast<std::uint32_t>(products.size()), static_cast<std::uint32_t>(products.size())};
    return hand.durations;
  }
  // Seconds that each product loses, of those that lose any.
  std::vector<double> losses(const Durations& durations, bool included) const {
    std::vector<double> each(products.size());
    each_loss_beside(hand.graph, fitted_cluster(), durations, included, [&](const LossBeside& loss) {
      const auto at = std::find(products.begin(), products.end(), loss.task) - products.begin();
      each[at] += loss.seconds;
    });
    return each;
  }
};

// A message of three seconds: the next product takes two beside it, and the one after it is alone after one.
TEST(Beside, AProductLosesItsShareOfTheTimeInWhichTheMessageRuns) {
  Lane lane;
  lane.product();
  lane.reduction(3);
  for (int i = 0; i < 3; ++i) lane.product();
  EXPECT_EQ(lane.losses(lane.finish(), false), (std::vector<double>{0, 1, 0.5, 0}));
}

TEST(Beside, AMessageWithinAProductCostsItsShare) {
  Lane lane;
  lane.product();
  lane.reduction(0.25);
  lane.product();
  lane.product();
  EXPECT_EQ(lane.losses(lane.finish(), false), (std::vector<double>{0, 0.125, 0}));
}

// However long, messages cost no more than what runs beside them.
TEST(Beside, AnEndlessMessageTakesItsShareOfEveryProduct) {
  Lane lane;
  lane.product();
  lane.reduction(1e6);
  for (int i = 0; i < 4; ++i) lane.product();
  EXPECT_EQ(lane.losses(lane.finish(), false), (std::vector<double>{0, 1, 1, 1, 1}));
}

TEST(Beside, MessagesRunOneAfterTheOther) {
  Lane lane;
  lane.product();
  lane.reduction(3);
  lane.product();
  lane.reduction(2);
  for (int i = 0; i < 3; ++i) lane.product();
  EXPECT_EQ(lane.losses(lane.finish(), false), (std::vector<double>{0, 1, 1, 0.5, 0}));
}

TEST(Beside, WhatAProductWaitsForIsOverWhenItBegins) {
  Lane lane;
  lane.product();
  const TaskId message = lane.reduction(10);
  lane.product();
  lane.product({message});
  lane.product();
  EXPECT_EQ(lane.losses(lane.finish(), false), (std::vector<double>{0, 1, 0, 0}));
}

// The lists of a loss price it anew under other constants: e of each message, less what the products before it lost.
TEST(Beside, TheListsOfALossGiveItsSeconds) {
  Lane lane;
  lane.product();
  lane.reduction(3);
  lane.product();
  lane.reduction(2.5);
  for (int i = 0; i < 4; ++i) lane.product();
  Durations durations = lane.finish();
  const std::vector<double> losses = lane.losses(durations, false);
  EXPECT_DOUBLE_EQ(std::accumulate(losses.begin(), losses.end(), 0.0), share * (3 + 2.5));
  for (std::size_t i = 0; i < losses.size(); ++i) durations[lane.products[i]] += losses[i];
  EXPECT_EQ(lane.losses(durations, true), losses);
  int ended = 0;
  each_loss_beside(lane.hand.graph, fitted_cluster(), durations, true, [&](const LossBeside& loss) {
    if (loss.messages.empty()) {
      EXPECT_DOUBLE_EQ(loss.seconds, longer);
      return;
    }
    double seconds = -longer * static_cast<double>(loss.products.size());
    for (const TaskId message : loss.messages) seconds += share * durations[message];
    EXPECT_DOUBLE_EQ(loss.seconds, seconds);
    ++ended;
  });
  EXPECT_EQ(ended, 1);
}

// With sequence parallelism, the tensor group first sums the gradients of norms; the norm test measures them first.
TEST(Beside, ABlocksReductionBeginsBesideTheNextBlock) {
  for (const auto& [sequence_parallel, worker_norms] : {std::pair{false, false}, {true, false}, {false, true}}) {
    Step step;
    step.model = llama(
        "llama", {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 2, .vocab = 256, .sequence = 32});
    step.layout.tensor = 2, step.layout.data = 2, step.layout.sequence_parallel = sequence_parallel;
    step.worker_norms = worker_norms;
    step.global_batch = 4;
    TaskGraph graph = lower(step);
    set_global_order(graph, Durations(graph.tasks.size()));
    int reductions = 0;
    for (const auto& [task, message] : messages_beside(graph)) {
      const Work &product = graph.work(task), &reduction = graph.work(message);
      EXPECT_EQ(product.pass, Pass::backward);
      const int block = graph.operators(product)[static_cast<std::size_t>(product.first_op)].block;
      EXPECT_EQ(block, reduction.block - 1) << label_of(graph, task) << " beside " << label_of(graph, message);
      ++reductions;
    }
    EXPECT_EQ(reductions, 4 * (4 + 1)) << "four ranks, the reductions of four layers and of the head";
  }
}

}  // namespace
}  // namespace slipway::test
