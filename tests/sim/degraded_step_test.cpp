// The cost of a slow GPU or port for a step, against closed forms; representative ranks where some are slow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "models/machine/priced_cluster.h"
#include "schedules/lower/lowering.h"
#include "schedules/lower/representatives.h"
#include "schedules/time/durations.h"
#include "schedules/time/metrics.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

constexpr double bandwidth = 1e9, latency = 1e-5, bytes = 1e6;

Timeline run(HandGraph& hand, const PricedCluster& cluster) {
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  return simulate(hand.graph, cluster, hand.durations, options).timeline;
}

Machine gpu() {
  Machine machine;
  machine.name = "round numbers";
  machine.memory_bytes = 1e12;
  machine.peak_flops.fill(1e13);
  machine.memory_bandwidth = 1e12;
  machine.node_link = {"bus", 1e15, 0, 1};
  machine.network_link = {"wire", 1e15, 0, 1};
  return machine;
}

PricedCluster cluster_of(int nodes, int gpus) {
  PricedCluster cluster;
  cluster.groups = {{gpu(), nodes, gpus}};
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

Step step_of(int pipeline, int data, int tensor, int micro_batches) {
  Step in;
  in.model =
      llama("llama", {.layers = 8, .hidden = 128, .ffn = 384, .heads = 8, .kv_heads = 8, .vocab = 512, .sequence = 64});
  in.layout.pipeline = pipeline, in.layout.data = data, in.layout.tensor = tensor;
  in.global_batch = data * micro_batches;
  return in;
}

StepMetrics simulated(const Step& input, const PricedCluster& cluster, const Representatives& representatives = {}) {
  TaskGraph graph = lower(input, representatives);
  const Durations durations = order_and_price(graph, cluster);
  return metrics_of(graph, simulate(graph, cluster, durations, {}).timeline, 1);
}

// Seconds of compute of one rank in a step of the cluster without degradation.
double busy(const Step& input, const PricedCluster& cluster, int rank) {
  const TaskGraph graph = lower(input);
  const Durations durations = durations_of(graph, healthy(cluster));
  double sum = 0;
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    if (graph.tasks[id].communicator == none && graph.tasks[id].rank == rank) sum += durations[id];
  return sum;
}

TEST(SlowGpu, MakesItsComputeThatManyTimesAsLong) {
  PricedCluster cluster = cluster_of(1, 1);
  const Step input = step_of(1, 1, 1, 4);
  const double sound = simulated(input, cluster).step_time_s;
  cluster.degradation.slowdown = {1.75};
  EXPECT_NEAR(simulated(input, cluster).step_time_s, 1.75 * sound, 1e-9 * sound);
}

// Each further micro-batch takes the time of the slowest stage. So with f large enough it takes f times the slow
// stage's.
TEST(SlowGpu, SetsThePaceOfAPipelineByItsStage) {
  constexpr double f = 3;
  PricedCluster cluster = cluster_of(4, 1);
  cluster.degradation.slowdown = {1, 1, f, 1};
  const auto per_micro_batch = [&](const PricedCluster& on) {
    return (simulated(step_of(4, 1, 1, 32), on).step_time_s - simulated(step_of(4, 1, 1, 16), on).step_time_s) / 16;
  };
  const double own = (busy(step_of(4, 1, 1, 32), cluster, 2) - busy(step_of(4, 1, 1, 16), cluster, 2)) / 16;
  EXPECT_NEAR(per_micro_batch(cluster), f * own, 1e-3 * own);
}

TEST(SlowGpu, LetsItsDataParallelPeersWait) {
  PricedCluster cluster = cluster_of(4, 1);
  const Step input = step_of(1, 4, 1, 4);
  const double sound = simulated(input, cluster).step_time_s;
  cluster.degradation.slowdown = {1, 2, 1, 1};
  const StepMetrics slow = simulated(input, cluster);
  EXPECT_NEAR(slow.step_time_s, 2 * sound, 1e-5 * sound);
  // One rank computes all the time, three half of it.
  EXPECT_NEAR(slow.compute_share, (1 + 3 * 0.5) / 4, 1e-4);
}

TEST(SlowGpu, ChangesNothingInTheOrderThatWasPlannedWithoutIt) {
  PricedCluster cluster = cluster_of(4, 1);
  TaskGraph sound = lower(step_of(4, 1, 1, 8)), slow = lower(step_of(4, 1, 1, 8));
  order_and_price(sound, cluster);
  cluster.degradation.slowdown = {1, 1, 5, 1};
  order_and_price(slow, cluster);
  EXPECT_EQ(sound.order, slow.order);
}

TEST(SlowPort, AtHalfItsBandwidthDoublesATransferInEitherDirection) {
  PricedCluster cluster = hand_cluster(3, 1, bandwidth, latency);
  cluster.degradation.ports = {{0, 1, -1, 0.5, 0, 0}};
  HandGraph hand(3);
  const TaskId in = hand.transfer(0, 1, bytes), back = hand.transfer(1, 2, bytes, {in});
  const TaskId sound = hand.transfer(2, 0, bytes, {back});
  const Timeline timeline = run(hand, cluster);
  EXPECT_NEAR(timeline.end[in], latency + 2 * bytes / bandwidth, 1e-12);
  EXPECT_NEAR(timeline.end[back] - timeline.start[back], latency + 2 * bytes / bandwidth, 1e-12);
  EXPECT_NEAR(timeline.end[sound] - timeline.start[sound], latency + bytes / bandwidth, 1e-12);
}

TEST(SlowPort, SetsThePaceOfARingAsClosedFormAndAsFlows) {
  PricedCluster cluster = hand_cluster(4, 1, bandwidth, latency);
  cluster.degradation.ports = {{0, 2, -1, 0.25, 0, 0}};
  HandGraph hand(4);
  const double link_bytes = 2.0 * 3 / 4 * 8e6, expected = 6 * latency + link_bytes / (0.25 * bandwidth);
  hand.collective(Collective::all_reduce, {0, 1, 2, 3}, 8e6);
  hand.finish();
  hand.durations = durations_of(hand.graph, cluster);
  EXPECT_NEAR(hand.durations[0], expected, 1e-12);
  SimulationOptions options;
  options.steps = 1;
  options.collectives = CollectiveFidelity::flows;
  EXPECT_NEAR(simulate(hand.graph, cluster, hand.durations, options).timeline.end[0], expected, 1e-9);
}

// End of a flow that needs `work` seconds of its link, from `start` on.
double end_on_flapping(double start, double work, double period, double down) {
  double now = start;
  for (double cycle = std::floor(now / period);; ++cycle) {
    const double up = std::max(now, cycle * period), fall = (cycle + 1 - down) * period;
    if (up < fall) {
      if (work <= fall - up) return up + work;
      work -= fall - up;
    }
    now = (cycle + 1) * period;
  }
}

TEST(FlappingPort, CarriesAFlowWhileItIsUp) {
  for (const double start : {0.0, 0.0003, 0.0005, 0.00061, 0.0123}) {
    for (const double down : {0.1, 0.5, 0.9}) {
      constexpr double period = 7e-4;
      PricedCluster cluster = hand_cluster(2, 1, bandwidth, 0);
      cluster.degradation.ports = {{0, 1, -1, 1, period, down}};
      HandGraph hand(2);
      const TaskId before = hand.compute(0, start);
      const TaskId flow = hand.transfer(0, 1, bytes, {before});
      EXPECT_NEAR(run(hand, cluster).end[flow], end_on_flapping(start, bytes / bandwidth, period, down), 1e-10)
          << start << " " << down;
    }
  }
}

TEST(FlappingPort, DownForAShareOfShortPeriodsCostsOneOverOneMinusIt) {
  constexpr double down = 0.3, period = 1e-5;
  PricedCluster cluster = hand_cluster(2, 1, bandwidth, 0);
  cluster.degradation.ports = {{0, 0, -1, 1, period, down}};
  HandGraph hand(2);
  hand.transfer(0, 1, bytes);
  EXPECT_NEAR(run(hand, cluster).end[0], bytes / bandwidth / (1 - down), period);
}

TEST(FlappingPort, MakesAnUncontendedRingFlows) {
  constexpr double down = 0.5, period = 2e-3;
  PricedCluster cluster = hand_cluster(4, 1, bandwidth, 0);
  cluster.degradation.ports = {{0, 2, -1, 1, period, down}};
  HandGraph hand(4);
  hand.collective(Collective::all_gather, {0, 1, 2, 3}, 4e6);  // 3 MB a link
  EXPECT_NEAR(run(hand, cluster).end[0], end_on_flapping(0, 3e-3, period, down), 1e-9);
}

TEST(WeakPair, CapsEachFlowBetweenItsNodesAndNoOther) {
  PricedCluster cluster = hand_cluster(3, 2, bandwidth, latency);
  cluster.weak_pairs = {{0, 1, 0.25}};
  HandGraph hand(6);
  hand.transfer(0, 2, bytes);  // node 0 to 1
  hand.transfer(1, 3, bytes);  // the same pair by other ports
  hand.transfer(4, 0, bytes);  // node 2 to 0
  const Timeline timeline = run(hand, cluster);
  EXPECT_NEAR(timeline.end[0], latency + 4 * bytes / bandwidth, 1e-12);
  EXPECT_NEAR(timeline.end[1], latency + 4 * bytes / bandwidth, 1e-12);
  EXPECT_NEAR(timeline.end[2], latency + bytes / bandwidth, 1e-12);
}

TEST(WeakPair, LeavesTheRestOfThePortToOthers) {
  PricedCluster cluster = hand_cluster(3, 1, bandwidth, 0);
  cluster.weak_pairs = {{0, 1, 0.25}};
  HandGraph hand(3);
  hand.transfer(0, 1, bytes);
  hand.transfer(0, 2, 3 * bytes);
  const Timeline timeline = run(hand, cluster);
  EXPECT_NEAR(timeline.end[0], 4 * bytes / bandwidth, 1e-12);
  EXPECT_NEAR(timeline.end[1], 4 * bytes / bandwidth, 1e-12);
}

TEST(NodeOrder, CarriesTrafficAroundAWeakPair) {
  PricedCluster cluster = hand_cluster(4, 1, bandwidth, latency);
  cluster.weak_pairs = {{1, 2, 0.1}};
  HandGraph hand(4);
  hand.transfer(1, 2, bytes);
  EXPECT_NEAR(run(hand, cluster).end[0], latency + 10 * bytes / bandwidth, 1e-12);
  cluster.gpu_of_rank = gpus_in_order(cluster, {0, 1, 3, 2});
  EXPECT_NEAR(run(hand, cluster).end[0], latency + bytes / bandwidth, 1e-12);
}

// Random degradation on nodes of two: what representatives are left give the step of all ranks.
TEST(RepresentativesOfADegradedCluster, IsTheStepOfAllRanks) {
  std::mt19937 random(11);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  int represented = 0, all = 0;
  for (int i = 0; i < 40; ++i) {
    PricedCluster cluster = cluster_of(4, 2);
    for (Fabric& fabric : cluster.fabrics) fabric.bandwidth = 4e9, fabric.latency = 2e-6;
    const std::vector<Step> layouts{step_of(2, 2, 2, 4), step_of(1, 4, 2, 2), step_of(4, 1, 2, 4), step_of(2, 4, 1, 2)};
    Step input = layouts[below(4)];
    const int node = below(4);
    if (below(2) == 0) {
      cluster.degradation.slowdown.assign(8, 1);
      cluster.degradation.slowdown[2 * node] = 1.5;
      if (below(3) > 0) cluster.degradation.slowdown[2 * node + 1] = 1.5;
    }
    if (below(2) == 0)
      cluster.degradation.ports.push_back({static_cast<int>(cluster.fabrics.size()) - 1, node, -1, 0.5, 0, 0});
    if (below(2) == 0) cluster.weak_pairs.push_back({node, (node + 1 + below(3)) % 4, 0.3});
    const double whole = simulated(input, cluster).step_time_s;
    const Representatives representatives = representatives_of(cluster, input.layout, joined_ranks(input));
    const Layout& l = input.layout;
    (representatives.tensor * representatives.replicas == l.tensor * l.data ? all : represented)++;
    EXPECT_NEAR(simulated(input, cluster, representatives).step_time_s, whole, 1e-9 * whole) << i;
  }
  EXPECT_GT(represented, 5);
  EXPECT_GT(all, 5);
}

}  // namespace
}  // namespace slipway::test
