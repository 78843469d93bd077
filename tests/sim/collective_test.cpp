// Collectives as closed forms and as flows.
#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

#include "models/machine/priced_cluster.h"
#include "models/machine/ring.h"
#include "sim/flight_table.h"
#include "sim/simulate.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {

namespace {

constexpr double bandwidth = 1e9, latency = 1e-5, bytes = 1e6;

Simulation run(HandGraph& hand, const PricedCluster& cluster, CollectiveFidelity fidelity) {
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  options.collectives = fidelity;
  return simulate(hand.graph, cluster, hand.durations, options);
}

std::vector<std::int32_t> first_ranks(int count) {
  std::vector<std::int32_t> ranks;
  for (int r = 0; r < count; ++r) ranks.push_back(r);
  return ranks;
}

TEST(SimulatedRing, AsFlowsTakesTheClosedFormsTime) {
  for (const int n : {2, 3, 8, 16}) {
    const double share = static_cast<double>(n - 1) / n * bytes / bandwidth;
    HandGraph reduce(n), gather(n), scatter(n);
    reduce.collective(Collective::all_reduce, first_ranks(n), bytes);
    gather.collective(Collective::all_gather, first_ranks(n), bytes);
    scatter.collective(Collective::reduce_scatter, first_ranks(n), bytes);
    const PricedCluster cluster = hand_cluster(n, 1, bandwidth, latency);
    const auto flows = CollectiveFidelity::flows;
    const Simulation all_reduce = run(reduce, cluster, flows);
    EXPECT_EQ(all_reduce.flows, static_cast<std::uint64_t>(n));
    EXPECT_NEAR(all_reduce.timeline.makespan_s, 2 * share + 2 * (n - 1) * latency, 1e-11) << n;
    EXPECT_NEAR(run(gather, cluster, flows).timeline.makespan_s, share + (n - 1) * latency, 1e-11) << n;
    EXPECT_NEAR(run(scatter, cluster, flows).timeline.makespan_s, share + (n - 1) * latency, 1e-11) << n;
  }
}

TEST(SimulatedRing, AddingWhatArrivesCostsTheSameInBothFidelities) {
  PricedCluster cluster = hand_cluster(4, 1, bandwidth, latency);
  cluster.groups[0].machine.reduce_bandwidth = 5e8;
  const double closed = ring_seconds(Collective::all_reduce, 4, bytes, latency, bandwidth, 5e8);
  EXPECT_NEAR(closed, 6 * latency + 1.5 * bytes / bandwidth + 0.75 * bytes / 5e8, 1e-15);
  HandGraph hand(4);
  hand.collective(Collective::all_reduce, first_ranks(4), bytes, closed);
  EXPECT_NEAR(run(hand, cluster, CollectiveFidelity::closed_form).timeline.makespan_s, closed, 1e-12);
  EXPECT_NEAR(run(hand, cluster, CollectiveFidelity::flows).timeline.makespan_s, closed, 1e-11);
}

TEST(SimulatedRing, TwoAtOnceThroughOnePortTakeTwiceTheBandwidthTerm) {
  // GPUs 0 and 1 of each of two nodes share the node's port; each pair of equal GPUs reduces.
  HandGraph hand(4);
  hand.collective(Collective::all_reduce, {0, 2}, bytes, 7);
  hand.collective(Collective::all_reduce, {1, 3}, bytes, 7);
  const PricedCluster shared = hand_cluster(2, 2, bandwidth, latency, 2),
                      own = hand_cluster(2, 2, bandwidth, latency, 1);
  for (const auto fidelity : {CollectiveFidelity::flows, CollectiveFidelity::automatic})
    for (const double end : run(hand, shared, fidelity).timeline.end)
      EXPECT_NEAR(end, 2 * bytes / bandwidth + 2 * latency, 1e-12);
  EXPECT_NEAR(run(hand, own, CollectiveFidelity::flows).timeline.makespan_s, bytes / bandwidth + 2 * latency, 1e-12);
}

TEST(AutomaticFidelity, UsesTheClosedFormWhereNoPortIsShared) {
  HandGraph hand(4);
  hand.collective(Collective::all_reduce, {0, 2}, bytes, 7);
  hand.collective(Collective::all_reduce, {1, 3}, bytes, 7);
  const Simulation result = run(hand, hand_cluster(2, 2, bandwidth, latency, 1), CollectiveFidelity::automatic);
  EXPECT_EQ(result.flows, 0U);
  EXPECT_EQ(result.timeline.makespan_s, 7);
}

TEST(AutomaticFidelity, UsesFlowsWhereATransferSharesAPort) {
  HandGraph hand(3);
  hand.collective(Collective::all_gather, {0, 1}, bytes, 7);
  hand.transfer(0, 2, bytes);
  const Simulation result = run(hand, hand_cluster(3, 1, bandwidth, 0), CollectiveFidelity::automatic);
  EXPECT_EQ(result.flows, 3U);
  // Up link of rank 0: half a message of the ring and a whole one of the transfer share it fairly.
  EXPECT_NEAR(result.timeline.end[0], bytes / bandwidth, 1e-12);
  EXPECT_NEAR(result.timeline.end[1], 1.5 * bytes / bandwidth, 1e-12);
}

TEST(AutomaticFidelity, KnowsTrafficByItsBytesAlsoWhereAddingIsSlow) {
  PricedCluster cluster = hand_cluster(3, 1, bandwidth, latency);
  cluster.groups[0].machine.reduce_bandwidth = bandwidth / 100;
  HandGraph hand(3);
  hand.collective(Collective::all_reduce, {0, 1}, bytes, 7);
  hand.transfer(0, 2, bytes);
  EXPECT_EQ(run(hand, cluster, CollectiveFidelity::automatic).flows, 3U);
}

// From 101 nodes on the rounds' latency is longer than the bytes' time alone. Eight rings through one port still take
// eight times as long for the bytes.
TEST(AutomaticFidelity, SharedPortsSlowDownRingsOfAnyLength) {
  constexpr int per_node = 8;
  for (const int nodes : {2, 16, 100, 101, 128}) {
    HandGraph hand(per_node * nodes);
    for (int gpu = 0; gpu < per_node; ++gpu) {
      std::vector<std::int32_t> ring;
      for (int node = 0; node < nodes; ++node) ring.push_back(node * per_node + gpu);
      hand.collective(Collective::all_reduce, ring, bytes, 0.0045);
    }
    const PricedCluster cluster = hand_cluster(nodes, per_node, bandwidth, latency, per_node);
    EXPECT_NEAR(run(hand, cluster, CollectiveFidelity::automatic).timeline.makespan_s,
                2 * (nodes - 1) * latency + per_node * 2.0 * (nodes - 1) / nodes * bytes / bandwidth, 1e-9)
        << nodes;
  }
}

TEST(AutomaticFidelity, AScalarOverAllRanksMakesNobodyContended) {
  HandGraph hand(4);
  hand.collective(Collective::all_reduce, first_ranks(4), 8, 1);
  hand.collective(Collective::all_reduce, {0, 1}, bytes, 7);
  EXPECT_EQ(run(hand, hand_cluster(4, 1, bandwidth, latency), CollectiveFidelity::automatic).flows, 0U);
}

// Rings of equal GPUs over n nodes with eight GPUs behind one port. Each gets an eighth of the port, whether its
// latency (which grows with n) or its bytes take longer when it is alone.
TEST(AutomaticFidelity, SharesAPortHoweverLargeTheLatencyTermIs) {
  double before = 0;
  for (const int n : {2, 8, 32, 128}) {
    const PricedCluster cluster = hand_cluster(n, 8, bandwidth, latency, 8);
    HandGraph hand(8 * n);
    for (int gpu = 0; gpu < 8; ++gpu) {
      std::vector<std::int32_t> ranks;
      for (int node = 0; node < n; ++node) ranks.push_back(8 * node + gpu);
      hand.collective(Collective::all_reduce, ranks, bytes, 2 * (n - 1) * (latency + bytes / n / bandwidth));
    }
    const double now = run(hand, cluster, CollectiveFidelity::automatic).timeline.makespan_s;
    EXPECT_NEAR(now, 2 * (n - 1) * (latency + 8 * bytes / n / bandwidth), 1e-9) << n;
    EXPECT_GT(now, before) << n;
    before = now;
  }
}

// 1 ms of latency, and each port carries the bytes of 32 rings.
TEST(AutomaticFidelity, LeavesOutWhatAllOthersTogetherSlowByLessThanAHundredthOfItsLatency) {
  const double limit = 0.01 * 1e-3 * bandwidth / 32;
  for (const auto& [size, flows] : {std::pair{0.99 * limit, 0U}, {1.01 * limit, 64U}}) {
    HandGraph hand(64);
    for (int gpu = 0; gpu < 32; ++gpu) hand.collective(Collective::all_reduce, {gpu, 32 + gpu}, size, 1e-3);
    const PricedCluster cluster = hand_cluster(2, 32, bandwidth, 5e-4, 32);
    EXPECT_EQ(run(hand, cluster, CollectiveFidelity::automatic).flows, flows) << size;
  }
}

TEST(SimulatedRing, ItsOwnEdgesShareAPortToo) {
  // Two nodes of two GPUs behind one port, ring 0 → 2 → 1 → 3 → 0: each port carries two edges each way.
  HandGraph hand(4);
  hand.collective(Collective::all_reduce, {0, 2, 1, 3}, bytes, 7);
  const Simulation result = run(hand, hand_cluster(2, 2, bandwidth, 0, 2), CollectiveFidelity::automatic);
  EXPECT_EQ(result.flows, 4U);
  EXPECT_NEAR(result.timeline.makespan_s, 2 * 1.5 * bytes / bandwidth, 1e-12);
}

}  // namespace

// The table from flows to tasks, against the standard library's.

namespace {

TEST(FlightTable, GivesBackWhatWasPutInUnderManyInsertsAndRemovals) {
  FlightTable table;
  std::unordered_map<const void*, Instance> expected;
  std::vector<const void*> keys;
  std::mt19937 random(7);
  for (Instance i = 0; i < 200000; ++i) {
    const bool put = keys.empty() || random() % 100 < (i < 20000 ? 80U : 49U);  // grows to thousands, then drains
    if (put) {
      const auto* key = reinterpret_cast<const void*>((static_cast<std::uintptr_t>(random()) % 100000 + 1) * 64);
      if (!expected.emplace(key, i).second) continue;
      table.insert(key, i);
      keys.push_back(key);
    } else {
      std::swap(keys[random() % keys.size()], keys.back());
      ASSERT_EQ(table.take(keys.back()), expected.at(keys.back()));
      expected.erase(keys.back());
      keys.pop_back();
    }
  }
  EXPECT_GT(keys.size(), 100U);
  for (const void* key : keys) ASSERT_EQ(table.take(key), expected.at(key));
}

}  // namespace

}  // namespace slipway::test
