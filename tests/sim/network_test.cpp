// Transfers on SimGrid's links against closed forms.
#include <gtest/gtest.h>

#include <stdexcept>

#include "models/machine/priced_cluster.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

constexpr double bandwidth = 1e9, latency = 1e-5, bytes = 1e6;
constexpr double alone = latency + bytes / bandwidth;

Simulation run(HandGraph& hand, const PricedCluster& cluster, int steps = 1) {
  hand.finish();
  SimulationOptions options;
  options.steps = steps;
  return simulate(hand.graph, cluster, hand.durations, options);
}

TEST(SimulatedTransfer, TakesLatencyPlusSizeOverBandwidth) {
  for (const double size : {1.0, 1000.0 / 3, 1e6, 3e11}) {
    HandGraph hand(2);
    hand.transfer(0, 1, size);
    const double expected = latency + size / bandwidth;
    EXPECT_NEAR(run(hand, hand_cluster(2, 1, bandwidth, latency)).timeline.end[0], expected, 1e-9 * expected) << size;
  }
}

TEST(SimulatedTransfer, OfNoBytesTakesItsGivenDuration) {
  HandGraph hand(2);
  hand.transfer(0, 1, 0);
  const Simulation result = run(hand, hand_cluster(2, 1, bandwidth, latency));
  EXPECT_EQ(result.timeline.end[0], 0);
  EXPECT_EQ(result.flows, 0U);
}

TEST(SimulatedTransfer, TwoThroughOnePortTakeTwiceAsLong) {
  HandGraph out(3), in(3);
  out.transfer(0, 1, bytes);
  out.transfer(0, 2, bytes);
  in.transfer(1, 0, bytes);
  in.transfer(2, 0, bytes);
  const PricedCluster cluster = hand_cluster(3, 1, bandwidth, latency);
  for (HandGraph* hand : {&out, &in}) {
    const Timeline timeline = run(*hand, cluster).timeline;
    for (const double end : timeline.end) EXPECT_NEAR(end, latency + 2 * bytes / bandwidth, 1e-12);
  }
}

TEST(SimulatedTransfer, OppositeDirectionsAndOtherPortsDoNotDisturbEachOther) {
  HandGraph hand(4);
  hand.transfer(0, 1, bytes);
  hand.transfer(1, 0, bytes);
  hand.transfer(2, 3, bytes);
  const Timeline timeline = run(hand, hand_cluster(4, 1, bandwidth, latency)).timeline;
  for (const double end : timeline.end) EXPECT_NEAR(end, alone, 1e-12);
}

TEST(SimulatedTransfer, AShortOneGivesItsShareBackToALongOne) {
  HandGraph hand(3);
  hand.transfer(0, 1, 3 * bytes);
  hand.transfer(0, 2, bytes);
  const Timeline timeline = run(hand, hand_cluster(3, 1, bandwidth, 0)).timeline;
  EXPECT_NEAR(timeline.end[1], 2 * bytes / bandwidth, 1e-12);
  EXPECT_NEAR(timeline.end[0], 4 * bytes / bandwidth, 1e-12);
}

TEST(SimulatedTransfer, GpusBehindOnePortShareIt) {
  HandGraph hand(4);
  hand.transfer(0, 2, bytes);
  hand.transfer(1, 3, bytes);
  EXPECT_NEAR(run(hand, hand_cluster(2, 2, bandwidth, latency, 1)).timeline.makespan_s, alone, 1e-12);
  EXPECT_NEAR(run(hand, hand_cluster(2, 2, bandwidth, latency, 2)).timeline.makespan_s, latency + 2 * bytes / bandwidth,
              1e-12);
}

TEST(SimulatedTransfer, UsesTheNodesOwnFabricInsideANode) {
  PricedCluster cluster = hand_cluster(2, 2, bandwidth, latency);
  Fabric node = cluster.fabrics[0];
  node.scope = Fabric::Scope::node;
  node.bandwidth = 100 * bandwidth;
  node.latency = 0;
  cluster.fabrics.push_back(node);
  HandGraph hand(4);
  hand.transfer(0, 1, bytes);
  hand.transfer(2, 3, bytes);
  hand.transfer(1, 2, bytes);
  const Timeline timeline = run(hand, cluster).timeline;
  EXPECT_NEAR(timeline.end[0], bytes / (100 * bandwidth), 1e-12);
  EXPECT_NEAR(timeline.end[1], bytes / (100 * bandwidth), 1e-12);
  EXPECT_NEAR(timeline.end[2], alone, 1e-12);
}

TEST(SimulatedTransfer, OneAtATimeOnALaneInGlobalOrder) {
  HandGraph hand(2);
  const TaskId late = hand.compute(0, 1);
  hand.transfer(0, 1, bytes, {late});
  hand.transfer(0, 1, bytes);  // ready at once, but behind the first on its lane
  const Timeline timeline = run(hand, hand_cluster(2, 1, bandwidth, latency)).timeline;
  EXPECT_NEAR(timeline.start[1], 1, 1e-12);
  EXPECT_NEAR(timeline.start[2], 1 + alone, 1e-12);
}

TEST(Simulate, RunsStepsBackToBackAndCarriesDependenciesOver) {
  // Rank 0 produces (1 s), sends, rank 1 consumes (3 s). Rank 0 may begin the next step before rank 1 is done, unless
  // the consumer's end is carried over.
  HandGraph hand(2);
  const TaskId produce = hand.compute(0, 1);
  const TaskId send = hand.transfer(0, 1, bytes, {produce});
  const TaskId consume = hand.compute(1, 3, {send});
  const PricedCluster cluster = hand_cluster(2, 1, bandwidth, 0);
  const double moved = bytes / bandwidth;
  const Timeline free = run(hand, cluster, 3).timeline;
  for (std::size_t step = 0; step < 3; ++step) {
    EXPECT_NEAR(free.start[3 * step + produce], static_cast<double>(step), 1e-12);
    EXPECT_NEAR(free.start[3 * step + consume], 1 + moved + 3 * static_cast<double>(step), 1e-12);
  }
  hand.graph.carried = {{consume, produce}};
  const Timeline tied = run(hand, cluster, 3).timeline;
  for (std::size_t step = 0; step < 3; ++step)
    EXPECT_NEAR(tied.start[3 * step + produce], static_cast<double>(step) * (4 + moved), 1e-12);
  EXPECT_NEAR(tied.makespan_s, 3 * (4 + moved), 1e-12);
}

TEST(Simulate, GivesTheSameBytesEveryTime) {
  HandGraph hand(6);
  for (int i = 0; i < 50; ++i) {
    const TaskId work = hand.compute(i % 6, 1e-3 * (1 + i % 7));
    hand.transfer(i % 6, (i + 1 + i % 3) % 6, 1e4 * (1 + i % 11), {work});
  }
  const PricedCluster cluster = hand_cluster(3, 2, bandwidth, latency, 2);
  const Timeline first = run(hand, cluster, 2).timeline, second = run(hand, cluster, 2).timeline;
  EXPECT_EQ(first.start, second.start);
  EXPECT_EQ(first.end, second.end);
}

TEST(Simulate, SaysWhoWaitsForWhomOnADeadlock) {
  // Two ranks that both send first and receive later on one lane each: a classic deadlock.
  HandGraph hand(2);
  const TaskId a = hand.compute(0, 1);
  const TaskId b = hand.compute(1, 1);
  const TaskId a_sends = hand.transfer(0, 1, bytes, {a});
  const TaskId b_sends = hand.transfer(1, 0, bytes, {b});
  hand.also_after(a_sends, b_sends);
  hand.also_after(b_sends, a_sends);
  try {
    run(hand, hand_cluster(2, 1, bandwidth, latency));
    FAIL() << "no deadlock was found";
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("deadlock: the simulation stopped at 1 s with 2 of 4 tasks left"), std::string::npos)
        << message;
    EXPECT_NE(message.find("rank 0 pp0: t2 waits for t3"), std::string::npos) << message;
    EXPECT_NE(message.find("rank 1 pp1: t3 waits for t2"), std::string::npos) << message;
  }
}

TEST(Simulate, MarksTheStuckHeadsOfADeadlockInTheGridOfTheSchedule) {
  Step in;
  in.model =
      llama("llama", {.layers = 2, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 128, .sequence = 32});
  in.layout.pipeline = 2;
  in.global_batch = 4;
  TaskGraph graph = lower(in);
  const Durations durations(std::vector<double>(graph.tasks.size(), 1));
  set_global_order(graph, durations);
  const auto place = [&](const std::string& label) {
    return std::find_if(graph.order.begin(), graph.order.end(),
                        [&](TaskId id) { return label_of(graph, id) == label; });
  };
  std::iter_swap(place("0F1"), place("0B0"));  // the first backward before a forward that it does not need
  std::iter_swap(place("0F0"), place("0B0"));  // and then before its own forward
  try {
    simulate(graph, hand_cluster(2, 1, bandwidth, latency), durations, {});
    FAIL() << "no deadlock was found";
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("rank 0 compute: 0B0 in step 1 waits for"), std::string::npos) << message;
    EXPECT_NE(message.find("rank 1 compute: 1F0 in step 1 waits for 0F0.send"), std::string::npos) << message;
    EXPECT_NE(message.find("*0B0*"), std::string::npos) << message;
    EXPECT_NE(message.find("*1F0*"), std::string::npos) << message;
  }
}

TEST(Simulate, ToldToStopSaysHowFarItCame) {
  HandGraph hand(1);
  TaskId last = hand.compute(0, 1);
  for (int i = 0; i < 9; ++i) last = hand.compute(0, 1, {last});
  hand.finish();
  for (TaskId id = 0; id < hand.graph.tasks.size(); ++id) hand.graph.compute_order.values.push_back(id);
  hand.graph.compute_order.begin.push_back(static_cast<std::uint32_t>(hand.graph.tasks.size()));
  std::vector<double> start(hand.graph.tasks.size()), end = start;
  for (std::size_t i = 0; i < 4; ++i) start[i] = static_cast<double>(i), end[i] = start[i] + 1;  // 3: still ahead
  const PartialSimulation partial = partial_simulation(hand.graph, 1, 2.5, 2, start, end);
  EXPECT_EQ(partial.simulated_s, 2.5);
  EXPECT_EQ(partial.done, 2u);
  ASSERT_EQ(partial.positions.size(), 1u);
  EXPECT_EQ(partial.positions[0].label, label_of(hand.graph, 2));
}

TEST(Simulate, RefusesAClusterThatIsTooSmallOrNotConnected) {
  HandGraph hand(4);
  hand.transfer(0, 3, bytes);
  EXPECT_THROW(run(hand, hand_cluster(2, 1, bandwidth, latency)), std::invalid_argument);
  PricedCluster cluster = hand_cluster(4, 1, bandwidth, latency);
  cluster.fabrics[0].scope = Fabric::Scope::node;
  EXPECT_THROW(run(hand, cluster), std::invalid_argument);
}

TEST(Simulate, PrintsNothing) {
  HandGraph hand(2);
  hand.transfer(0, 1, bytes);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run(hand, hand_cluster(2, 1, bandwidth, latency));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace slipway::test
