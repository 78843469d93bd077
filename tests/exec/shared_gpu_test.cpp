// Several ranks on one GPU: they compute at a share of its speed, have a share of its memory, and their messages are
// copies in it. Compared with closed forms.
#include <gmock/gmock.h>

#include "models/machine/priced_cluster.h"
#include "schedules/lower/representatives.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"
#include "tests/support/hand_graph.h"
#include "tests/support/rank_script.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// `gpus` in one node, each with `each` ranks; copies run at 1 GB/s.
PricedCluster shared(int gpus, int each) {
  PricedCluster cluster = hand_cluster(1, gpus, 1e6, 0);
  cluster.groups[0].machine.memory_bandwidth = 2e9;
  cluster.groups[0].machine.launch_overhead = 1e-3;
  cluster.ranks_per_gpu = each;
  for (Fabric& fabric : shared_gpu_fabrics(cluster.groups)) cluster.fabrics.push_back(fabric);
  return cluster;
}

Timeline run(HandGraph& hand, const PricedCluster& cluster) {
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  return simulate(hand.graph, cluster, hand.durations, options).timeline;
}

TEST(RanksOfOneGpu, SitOnItOneAfterTheOther) {
  const PricedCluster cluster = shared(2, 3);
  EXPECT_EQ(rank_capacity(cluster), 6);
  std::vector<int> gpus;
  for (int rank = 0; rank < 6; ++rank) gpus.push_back(place_of(cluster, rank).gpu);
  EXPECT_THAT(gpus, ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THROW(place_of(cluster, 6), std::invalid_argument);
  EXPECT_EQ(gpus_in_order(cluster, {0}), gpus) << "placed by hand";
}

TEST(RanksOfOneGpu, ShareItsSpeedAndNotThatOfTheNextGpu) {
  HandGraph hand(4);  // ranks 0 and 1 on GPU 0, 2 and 3 on GPU 1
  hand.compute(0, 1);
  hand.compute(1, 3);
  hand.compute(2, 1);
  const Timeline timeline = run(hand, shared(2, 2));
  EXPECT_NEAR(timeline.end[0], 2, 1e-12) << "half the speed";
  EXPECT_NEAR(timeline.end[1], 4, 1e-12) << "alone again from 2 s on";
  EXPECT_NEAR(timeline.end[2], 1, 1e-12);
}

TEST(RanksOfOneGpu, OfAStepThatKeepsAllBusyTakeTheSumOfTheirWork) {
  for (const int ranks : {2, 4, 8}) {
    HandGraph hand(ranks);
    for (int rank = 0; rank < ranks; ++rank) hand.compute(rank, 0.5 + rank);
    EXPECT_NEAR(run(hand, shared(1, ranks)).makespan_s, 0.5 * ranks + ranks * (ranks - 1) / 2.0, 1e-9);
  }
}

TEST(RanksOfOneGpu, ExchangeMessagesByCopiesThatShareItsMemory) {
  HandGraph one(4), two(4), across(4);
  one.transfer(0, 1, 1e9);
  EXPECT_NEAR(run(one, shared(1, 4)).makespan_s, 1e-3 + 1, 1e-9);
  two.transfer(0, 1, 1e9);
  two.transfer(2, 3, 1e9);
  EXPECT_NEAR(run(two, shared(1, 4)).makespan_s, 1e-3 + 2, 1e-9);
  across.transfer(1, 2, 1e9);
  EXPECT_NEAR(run(across, shared(2, 2)).makespan_s, 1000, 1e-6) << "the node's fabric, 1 MB/s";
}

// A ring of n members moves 2(n−1)/n of the message over each of n edges, all of them in the one memory.
TEST(RanksOfOneGpu, AllReduceThroughItsMemoryInTheTimeOfAllEdgesTogether) {
  constexpr double bytes = 1e9, n = 4;
  HandGraph hand(4);
  hand.collective(Collective::all_reduce, {0, 1, 2, 3}, bytes);
  EXPECT_NEAR(run(hand, shared(1, 4)).makespan_s, 2 * (n - 1) * bytes / 1e9 + 2 * (n - 1) * 1e-3, 1e-9);
}

TEST(RanksOfOneGpu, HaveNoRepresentatives) {
  Layout layout;
  layout.data = 4;
  EXPECT_EQ(representatives_of(shared(1, 4), layout, {}).replicas, 4);
}

TEST(RanksPerGpu, MakeRoomForRanksAndCutTheMemoryOfAGpu) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  const LoadResult plain = folder.load(sound_scenario(), {}),
                   shared = folder.load(sound_scenario(), {"cluster.ranks_per_gpu=2"});
  ASSERT_TRUE(shared.errors.empty()) << describe(shared.errors);
  const Cluster &before = plain.scenario.cluster, &after = shared.scenario.cluster;
  EXPECT_EQ(rank_capacity(after), 2 * rank_capacity(before));
  EXPECT_EQ(shared.scenario.step.layout.data, 2 * plain.scenario.step.layout.data);
  EXPECT_DOUBLE_EQ(after.groups[0].machine.memory_bytes, before.groups[0].machine.memory_bytes / 2);
  EXPECT_EQ(after.fabrics.back().scope, Fabric::Scope::gpu);
}

class ExecuteShared : public RankScriptTest {
 protected:
  Answer execute(const std::string& script) const {
    prepare_records(3);
    rank_script(script);
    return slipway_with({"execute", SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml", "--out", path("run"),
                         "--set", "run.steps=3", "--set", "cluster.gpus_per_node=1", "--set",
                         "cluster.ranks_per_gpu=2"});
  }
};

TEST_F(ExecuteShared, StartsOneProcessForTheRanksOfOneGpuAndMergesThemAll) {
  const Answer answer = execute("echo \"$*\" > " + path("words") + "; echo $RANK of $WORLD_SIZE >> " + path("started") +
                                "\nfor r in 0 1; do cp " + path("ready-") + "$r $OUT/rank-$r.records; done; cp " +
                                path("ready-losses") + " $OUT/rank-0.losses");
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_EQ(text_of(path("started")), "0 of 1\n");
  EXPECT_THAT(text_of(path("words")), HasSubstr("--ranks-per-process 2"));
  EXPECT_TRUE(std::filesystem::exists(path("run/trace.json")));
}

TEST_F(ExecuteShared, JoinsALauncherThatStartedOneProcessAndRefusesOneOfTwo) {
  ::setenv("RANK", "0", 1);
  ::setenv("WORLD_SIZE", "2", 1);
  EXPECT_THAT(execute("exit 0").err, HasSubstr("started 2 processes, but the layout has 2 ranks in processes of 2"));
  ::setenv("WORLD_SIZE", "1", 1);
  const Answer answer = execute("for r in 0 1; do cp " + path("ready-") + "$r $OUT/rank-$r.records; done; cp " +
                                path("ready-losses") + " $OUT/rank-0.losses");
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_EQ(text_of(path("run/rank-1.done")), "0\n");
}

}  // namespace
}  // namespace slipway::test
