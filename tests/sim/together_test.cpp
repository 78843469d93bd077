// Two jobs in one cluster, against closed forms.
#include "sim/together.h"
#include "models/machine/priced_cluster.h"
#include "schedules/time/replay.h"

#include <gtest/gtest.h>

#include "models/machine/topology.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

constexpr double bandwidth = 1e9, bytes = 1e8, compute_s = 1, moved_s = bytes / bandwidth;

// A step of two ranks: each computes, then they reduce. The next step waits for the reduction.
HandGraph job_of_two(double seconds = compute_s) {
  HandGraph hand(2);
  const TaskId a = hand.compute(0, seconds), b = hand.compute(1, seconds);
  const TaskId reduce = hand.collective(Collective::all_reduce, {0, 1}, bytes, moved_s, {a, b});
  hand.finish();
  hand.graph.carried = {{reduce, a}, {reduce, b}};
  hand.graph.compute_order = Rows{{0, 1, 2}, {a, b}};
  return hand;
}

std::vector<Timeline> together(const PricedCluster& hardware, const HandGraph& a, std::vector<int> gpus_a,
                               const HandGraph& b, std::vector<int> gpus_b, int steps_a = 3, int steps_b = 3) {
  PricedCluster of_a = hardware, of_b = hardware;
  of_a.gpu_of_rank = std::move(gpus_a);
  of_b.gpu_of_rank = std::move(gpus_b);
  const Job jobs[] = {{a.graph, of_a, a.durations, steps_a}, {b.graph, of_b, b.durations, steps_b}};
  return simulate_together(hardware, jobs, {});
}

TEST(TwoJobs, OnOneNicDoubleTheirExposedCommunication) {
  const HandGraph job = job_of_two();
  const PricedCluster shared = hand_cluster(2, 2, bandwidth, 0, 2);  // two GPUs of a node behind one port
  for (const Timeline& timeline : together(shared, job, {0, 2}, job, {1, 3})) {
    ASSERT_EQ(timeline.start.size(), 9U);
    for (std::size_t step = 0; step < 3; ++step) {
      EXPECT_NEAR(timeline.start[3 * step], static_cast<double>(step) * (compute_s + 2 * moved_s), 1e-9);
      EXPECT_NEAR(timeline.end[3 * step + 2], (static_cast<double>(step) + 1) * (compute_s + 2 * moved_s), 1e-9);
    }
  }
}

TEST(TwoJobs, OnPortsOfTheirOwnDoNotNoticeEachOther) {
  const HandGraph job = job_of_two();
  for (const Timeline& timeline : together(hand_cluster(2, 2, bandwidth, 0, 1), job, {0, 2}, job, {1, 3}))
    EXPECT_NEAR(timeline.makespan_s, 3 * (compute_s + moved_s), 1e-9);
}

TEST(TwoJobs, MeetOnTheUplinksOfAnOversubscribedTreeOnly) {
  const HandGraph job = job_of_two();
  PricedCluster cluster = hand_cluster(4, 1, bandwidth, 0);
  cluster.fabrics[0].topology = topology_named("fat-tree");
  cluster.fabrics[0].parameters["shape"] = {2};
  cluster.fabrics[0].parameters["oversubscription"] = 2;
  for (const Timeline& timeline : together(cluster, job, {0, 2}, job, {1, 3}))  // both across the leaves
    EXPECT_NEAR(timeline.makespan_s, 3 * (compute_s + 2 * moved_s), 1e-9);
  for (const Timeline& timeline : together(cluster, job, {0, 1}, job, {2, 3}))  // a leaf each
    EXPECT_NEAR(timeline.makespan_s, 3 * (compute_s + moved_s), 1e-9);
}

TEST(TwoJobs, GoOnAtTheirOwnPaceWithoutABarrierBetweenThem) {
  const HandGraph slow = job_of_two(4), quick = job_of_two(0.5);
  const auto timelines = together(hand_cluster(2, 2, bandwidth, 0, 1), slow, {0, 2}, quick, {1, 3}, 2, 10);
  EXPECT_NEAR(timelines[0].makespan_s, 2 * (4 + moved_s), 1e-9);
  EXPECT_NEAR(timelines[1].makespan_s, 10 * (0.5 + moved_s), 1e-9);
}

// CPU ranks: each node has one core for its two ranks, one of each job.
TEST(TwoJobs, OnTheCoresOfANodeTakeTurnsWhileBothCompute) {
  const HandGraph job = job_of_two();
  PricedCluster cluster = hand_cluster(2, 2, bandwidth, 0, 1);
  cluster.groups[0].machine.cores = 1;
  for (const Timeline& timeline : together(cluster, job, {0, 2}, job, {1, 3}))
    EXPECT_NEAR(timeline.makespan_s, 3 * (2 * compute_s + moved_s), 1e-9);
  for (const Timeline& timeline : together(cluster, job, {0, 2}, job_of_two(0.5), {1, 3}, 1, 1)) {
    // Half as much work ends at 1 s. The other then has the core, and what it has left, half a second, ends at 1.5 s.
    const bool is_quick = timeline.makespan_s < 1.2;
    EXPECT_NEAR(timeline.makespan_s, (is_quick ? 1 : 1.5) + moved_s, 1e-9);
  }
}

TEST(TwoJobs, OnOneGpuAreRefused) {
  const HandGraph job = job_of_two();
  EXPECT_THROW(together(hand_cluster(2, 2, bandwidth, 0), job, {0, 2}, job, {1, 2}), std::invalid_argument);
}

}  // namespace
}  // namespace slipway::test
