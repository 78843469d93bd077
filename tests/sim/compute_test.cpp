// Compute speeds that change while tasks run, against closed forms.
#include <gtest/gtest.h>

#include "models/machine/priced_cluster.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

Timeline run(HandGraph& hand, const PricedCluster& cluster) {
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  return simulate(hand.graph, cluster, hand.durations, options).timeline;
}

PricedCluster cores(int count, int ranks) {
  PricedCluster cluster = hand_cluster(1, ranks, 1e9, 0);
  cluster.groups[0].machine.cores = count;
  return cluster;
}

TEST(SharedCores, FourEqualTasksOnTwoCoresTakeTwiceAsLong) {
  HandGraph hand(4);
  for (int rank = 0; rank < 4; ++rank) hand.compute(rank, 1.5);
  for (const double end : run(hand, cores(2, 4)).end) EXPECT_NEAR(end, 3, 1e-12);
  for (const double end : run(hand, cores(4, 4)).end) EXPECT_NEAR(end, 1.5, 1e-12);
}

TEST(SharedCores, FasterAgainWhenAnotherRankIsDone) {
  // Two ranks on one core: 1 s and 3 s of work. Half speed until t = 2, then full speed: 2 + 2 = 4.
  HandGraph hand(2);
  hand.compute(0, 1);
  hand.compute(1, 3);
  const Timeline timeline = run(hand, cores(1, 2));
  EXPECT_NEAR(timeline.end[0], 2, 1e-12);
  EXPECT_NEAR(timeline.end[1], 4, 1e-12);
}

TEST(SharedCores, ATaskThatJoinsLaterSlowsTheOthersFromThen) {
  // Rank 1 idles until a message of 1 s arrives, then both run at half speed: rank 0 has 2 s left at t = 1.
  HandGraph hand(2);
  hand.compute(0, 3);
  const TaskId message = hand.transfer(0, 1, 1e9);
  hand.compute(1, 1, {message});
  const Timeline timeline = run(hand, cores(1, 2));
  EXPECT_NEAR(timeline.end[2], 1 + 2, 1e-12);
  EXPECT_NEAR(timeline.end[0], 4, 1e-12);
}

// Rank 1's task at t = 1 is too short to move the clock: rank 0 slows down and speeds up again at that date, with its
// previous end. That end must count once.
TEST(SharedCores, ATaskThatIsOverAtTheDateItStartsChangesNothing) {
  HandGraph hand(2);
  const TaskId first = hand.compute(0, 3), second = hand.compute(0, 1), third = hand.compute(0, 1);
  const TaskId message = hand.transfer(0, 1, 1e9);
  const TaskId instant = hand.compute(1, 1e-20, {message});
  const Timeline timeline = run(hand, cores(1, 2));
  EXPECT_NEAR(timeline.end[instant], 1, 1e-12);
  EXPECT_NEAR(timeline.end[first], 3, 1e-12);
  EXPECT_NEAR(timeline.start[second], 3, 1e-12);
  EXPECT_NEAR(timeline.end[second], 4, 1e-12);
  EXPECT_NEAR(timeline.end[third], 5, 1e-12);
}

TEST(SharedCores, AreThoseOfOneNode) {
  PricedCluster cluster = hand_cluster(2, 2, 1e9, 0);
  cluster.groups[0].machine.cores = 1;
  HandGraph hand(4);
  hand.compute(0, 1);
  hand.compute(1, 1);
  hand.compute(2, 1);
  const Timeline timeline = run(hand, cluster);
  EXPECT_NEAR(timeline.end[0], 2, 1e-12);
  EXPECT_NEAR(timeline.end[1], 2, 1e-12);
  EXPECT_NEAR(timeline.end[2], 1, 1e-12);
}

TEST(OverlapSlowdown, ATaskHalfOverlappedByACommunicationIsSlowerInThatHalf) {
  // The message takes 1 s; meanwhile 1/1.25 s of work is done; the other 1.2 s of 2 s run at full speed.
  PricedCluster cluster = hand_cluster(3, 1, 1e9, 0);
  cluster.groups[0].machine.overlap_slowdown = 1.25;
  HandGraph hand(3);
  hand.compute(0, 2);
  hand.transfer(0, 1, 1e9);
  hand.compute(2, 2);  // rank 2 takes no part in the transfer
  const Timeline timeline = run(hand, cluster);
  EXPECT_NEAR(timeline.end[0], 1 + (2 - 1 / 1.25), 1e-12);
  EXPECT_NEAR(timeline.end[1], 1, 1e-12);
  EXPECT_NEAR(timeline.end[2], 2, 1e-12);
}

TEST(OverlapSlowdown, StartsInTheMiddleOfATask) {
  PricedCluster cluster = hand_cluster(2, 1, 1e9, 0);
  cluster.groups[0].machine.overlap_slowdown = 2;
  HandGraph hand(2);
  const TaskId first = hand.compute(1, 1);
  hand.compute(0, 3);
  hand.collective(Collective::all_reduce, {0, 1}, 1e9, 1, {first});  // from t = 1 to t = 2
  EXPECT_NEAR(run(hand, cluster).end[1], 1 + 1 + 1.5, 1e-12);
}

}  // namespace
}  // namespace slipway::test
