// A chain simulated as one unit against its tasks one by one: equal to the last bit.
#include "sim/chains.h"
#include "models/machine/priced_cluster.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/global_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/lower/representatives.h"
#include "schedules/time/durations.h"
#include "sim/simulate.h"
#include "tests/support/hand_graph.h"
#include "tests/support/round_gpu.h"

namespace slipway::test {
namespace {

PricedCluster cluster_of(int nodes, int gpus, double overlap_slowdown = 1) {
  Machine machine = round_gpu();
  machine.overlap_slowdown = overlap_slowdown;
  machine.reduce_bandwidth = 0;  // adding incoming data is free
  PricedCluster cluster;
  cluster.name = "test";
  cluster.groups = {{machine, nodes, gpus}};
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

Step step_of(int tensor, int context, int pipeline, int data) {
  Step in;
  in.model =
      llama("llama", {.layers = 8, .hidden = 128, .ffn = 384, .heads = 8, .kv_heads = 8, .vocab = 512, .sequence = 64});
  in.layout.tensor = tensor, in.layout.context = context;
  in.layout.pipeline = pipeline, in.layout.data = data;
  in.global_batch = data * pipeline * 2;
  return in;
}

struct Both {
  Simulation chained, single;
};
Both simulated(const Step& input, const PricedCluster& cluster,
               CollectiveFidelity fidelity = CollectiveFidelity::automatic,
               const Representatives& representatives = {}) {
  TaskGraph graph = lower(input, representatives);
  const Durations durations = durations_of(graph, cluster);
  set_global_order(graph, durations);
  SimulationOptions options;
  options.collectives = fidelity;
  Both both{simulate(graph, cluster, durations, options), {}};
  options.chains = false;
  both.single = simulate(graph, cluster, durations, options);
  EXPECT_EQ(both.single.units, graph.tasks.size());
  return both;
}

TEST(Chains, GiveTheSameDatesToTheLastBitOverAGridOfLayoutsAndSchedules) {
  const PricedCluster cluster = cluster_of(4, 4);
  int steps = 0, shortened = 0;
  for (const auto& [tensor, context, pipeline, data] :
       {std::array{4, 1, 4, 1}, std::array{2, 1, 2, 4}, std::array{2, 2, 2, 2}, std::array{8, 1, 2, 1},
        std::array{1, 4, 2, 2}, std::array{4, 1, 1, 4}, std::array{1, 1, 4, 4}})
    for (const int zero : {0, 1, 2, 3})
      for (const char* schedule : {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "gpipe"})
        for (const Recompute recompute : {Recompute::none, Recompute::full})
          for (const bool sequence_parallel : {false, true}) {
            if (pipeline == 1 && std::string(schedule) != "1f1b") continue;
            if ((zero > 0 && data * context == 1) || (sequence_parallel && tensor == 1)) continue;
            Step in = step_of(tensor, context, pipeline, data);
            in.schedule = schedule, in.recompute = recompute, in.layout.zero = zero;
            in.layout.chunks = in.schedule == "interleaved-1f1b" || in.schedule == "zb-v" ? 2 : 1;
            in.layout.sequence_parallel = sequence_parallel;
            if (zero % 2 == 1) in.layout.context_exchange = ContextExchange::ring;
            in.clip_norm = zero % 2;
            // Most collectives of so small a model meet others on their links and are flows, which have no chains.
            const Both both = simulated(
                in, cluster,
                recompute == Recompute::full ? CollectiveFidelity::closed_form : CollectiveFidelity::automatic);
            const std::string text = in.schedule + " t" + std::to_string(tensor) + " c" + std::to_string(context) +
                                     " p" + std::to_string(pipeline) + " d" + std::to_string(data) + " z" +
                                     std::to_string(zero) + " sp" + std::to_string(sequence_parallel);
            // SimGrid sums its clock over events, fewer with chains: a flow may end a last bit apart.
            ASSERT_THAT(both.chained.timeline.start,
                        testing::Pointwise(testing::DoubleEq(), both.single.timeline.start))
                << text;
            ASSERT_THAT(both.chained.timeline.end, testing::Pointwise(testing::DoubleEq(), both.single.timeline.end))
                << text;
            ++steps;
            if (2 * both.chained.units < both.single.units) ++shortened;
          }
  EXPECT_GT(shortened, steps / 5) << steps;
}

TEST(Chains, GraphsOfRepresentativesHaveThemToo) {
  const PricedCluster cluster = cluster_of(4, 4);
  Step in = step_of(4, 1, 2, 2);
  const Both both = simulated(in, cluster, CollectiveFidelity::automatic, representatives_of(cluster, in.layout, {}));
  EXPECT_LT(both.chained.units, both.single.units);
  EXPECT_EQ(both.chained.timeline.start, both.single.timeline.start);
}

TEST(Chains, NothingIsChainedWhereSpeedsVary) {
  const Both both = simulated(step_of(4, 1, 4, 1), cluster_of(4, 4, 1.2));
  EXPECT_EQ(both.chained.units, both.single.units);
}

// rank 0 and 1: a, all-reduce, b, all-reduce, c.
struct ByHand : HandGraph {
  TaskId first = 0, second = 0, middle = 0;
  ByHand() : HandGraph(3) {
    const TaskId a0 = compute(0, 1), a1 = compute(1, 2);
    first = collective(Collective::all_reduce, {0, 1}, 0, 0.5, {a0, a1});
    middle = compute(0, 1, {first});
    const TaskId b1 = compute(1, 1, {first});
    second = collective(Collective::all_reduce, {0, 1}, 0, 0.5, {middle, b1});
    compute(0, 1, {second}), compute(1, 1, {second});
  }
};

std::size_t units_of(HandGraph& hand) {
  hand.finish();
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    for (TaskId id = 0; id < hand.graph.tasks.size(); ++id)
      if (hand.graph.tasks[id].rank == rank) hand.graph.compute_order.values.push_back(id);
    hand.graph.compute_order.begin.push_back(static_cast<std::uint32_t>(hand.graph.compute_order.values.size()));
  }
  const PricedCluster cluster = cluster_of(1, 4);
  const TaskForms forms = task_forms(hand.graph, cluster, hand.durations, CollectiveFidelity::closed_form);
  return find_chains(hand.graph, forms, false).tasks.size();
}

TEST(Chains, JoinTwoCollectivesAndWhatIsBetweenThem) {
  ByHand hand;
  EXPECT_EQ(units_of(hand), hand.graph.tasks.size() - 3);
}

TEST(Chains, EndWhereAnotherRankWaitsForTheirMiddle) {
  ByHand hand;
  hand.compute(2, 1, {hand.middle});
  EXPECT_EQ(units_of(hand), hand.graph.tasks.size());
}

TEST(Chains, EndWhereTheirMiddleWaitsForAnotherRank) {
  HandGraph hand(3);
  const TaskId other = hand.compute(2, 9);
  const TaskId a0 = hand.compute(0, 1), a1 = hand.compute(1, 2);
  const TaskId first = hand.collective(Collective::all_reduce, {0, 1}, 0, 0.5, {a0, a1});
  const TaskId b0 = hand.compute(0, 1, {first, other}), b1 = hand.compute(1, 1, {first});
  const TaskId second = hand.collective(Collective::all_reduce, {0, 1}, 0, 0.5, {b0, b1});
  hand.compute(0, 1, {second}), hand.compute(1, 1, {second});
  EXPECT_EQ(units_of(hand), hand.graph.tasks.size());
}

// rank 0 and 1: a, all-reduce, b, all-reduce, c, all-reduce, d. Beside b: a gather of a's result for c.
struct WithAGather : HandGraph {
  TaskId other_rank = 0, gather = 0;
  WithAGather() : HandGraph(3) {
    other_rank = compute(2, 9);
    const TaskId a0 = compute(0, 1), a1 = compute(1, 2);
    const TaskId first = all_reduce(a0, a1);
    const TaskId b0 = compute(0, 1, {first}), b1 = compute(1, 1.5, {first});
    gather = collective(Collective::all_gather, {0, 1}, 0, 1, {a0, a1});
    const TaskId second = all_reduce(b0, b1);
    const TaskId c0 = compute(0, 1, {second, gather}), c1 = compute(1, 1, {second, gather});
    const TaskId third = all_reduce(c0, c1);
    compute(0, 1, {third}), compute(1, 1, {third});
  }
  TaskId all_reduce(TaskId a, TaskId b) { return collective(Collective::all_reduce, {0, 1}, 0, 0.5, {a, b}); }
};

TEST(Chains, HaveCollectivesBesideTheirTasks) {
  WithAGather hand;
  EXPECT_EQ(units_of(hand), hand.graph.tasks.size() - 7) << "three links, a gather and two tasks of each rank are one";
}

TEST(Chains, EndWhereAnotherRankWaitsForACollectiveBesideThem) {
  WithAGather hand;
  hand.compute(2, 1, {hand.gather});
  EXPECT_EQ(units_of(hand), hand.graph.tasks.size() - 3) << "the second and the third link are one still";
}

TEST(Chains, EndWhereACollectiveBesideThemWaitsForAnotherRank) {
  WithAGather hand;
  hand.also_after(hand.gather, hand.other_rank);
  EXPECT_EQ(units_of(hand), hand.graph.tasks.size() - 3);
}

TEST(Chains, EndWhereTheNextStepWaitsForTheirMiddle) {
  ByHand hand;
  hand.graph.carried.emplace_back(hand.middle, 0);
  EXPECT_EQ(units_of(hand), hand.graph.tasks.size());
}

}  // namespace
}  // namespace slipway::test
