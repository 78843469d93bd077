// `slipway execute` with K-FAC, as a user runs it: predicted and measured tasks are the same, an interrupted run
// continues as if it had not been, and what is due within a window happens at its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "exec/run/checkpoint_folder.h"
#include "exec/run/run_files.h"
#include "tests/support/losses_csv.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// With bubbles as short as slow attention leaves them, a window has two steps.
Ended executed(const std::string& folder, const std::vector<std::string>& more) {
  std::string line = "exec env -u RANK -u WORLD_SIZE -u LOCAL_RANK -u MASTER_ADDR -u MASTER_PORT " +
                     std::string(SLIPWAY_PROGRAM) +
                     " execute " SLIPWAY_SOURCE_DIR
                     "/scenarios/examples/tiny-llama-cpu.yaml --set run.optimizer.name=kfac "
                     "--set schedule.kernels=torch --out " +
                     folder;
  for (const std::string& word : more) line += " " + word;
  const Ended ended =
      RankProcesses("/bin/sh", {"-c", line}, 1, folder, {{"SLIPWAY_RANK", SLIPWAY_RANK_PROGRAM}}).wait(120).front();
  EXPECT_EQ(ended.status, 0) << ended.errors;
  return ended;
}

std::string fresh(const std::string& name) {
  const std::string folder = temporary_folder().path(name);
  std::filesystem::remove_all(folder);
  return folder;
}

struct Case {
  const char *name, *settings;
};
class KfacSchedule : public testing::TestWithParam<Case> {};

TEST_P(KfacSchedule, HasTheSameTasksPredictedAndMeasured) {
  const std::string folder = fresh(std::string("confirmed-") + GetParam().name);
  const Ended ended = executed(folder, {"--confirm --json", GetParam().settings});
  const auto json = nlohmann::json::parse(ended.output);
  const auto& confirmation = json["confirmation"];
  EXPECT_THAT(confirmation["only_predicted"], IsEmpty());
  EXPECT_THAT(confirmation["only_measured"], IsEmpty());
  std::set<std::string> kinds;
  for (const auto& kind : confirmation["kinds"]) kinds.insert(kind["kind"]);
  for (const char* kind : {"curvature", "inversion", "precondition"}) EXPECT_TRUE(kinds.contains(kind)) << kind;
  EXPECT_EQ(json["losses"].size(), json["steps"].get<std::size_t>());
  EXPECT_LE(json["last_loss"].get<double>(), 0.9 * json["first_loss"].get<double>());
}
INSTANTIATE_TEST_SUITE_P(
    Of, KfacSchedule,
    testing::Values(Case{"OneFOneB", "--set run.steps=16"},
                    Case{"Chimera", "--set schedule.name=chimera --set schedule.global_batch=4 --set run.steps=54"},
                    Case{"Unfilled", "--set schedule.fill=none --set run.optimizer.refresh_steps=3 --set run.steps=15"},
                    Case{"Replicas",
                         "--set schedule.name=gpipe --set layout.data=2 --set cluster.gpus_per_node=4 "
                         "--set schedule.global_batch=16 --set run.steps=16"}),
    [](const auto& each) { return each.param.name; });

TEST(KfacTraces, AreWhatCalibrateFitsTheOtherTasksTo) {
  const std::string folder = fresh("fitted");
  executed(folder,
           {"--set run.steps=8 --set schedule.name=gpipe --set layout.data=2 --set cluster.gpus_per_node=4 --set "
            "schedule.global_batch=16"});
  const std::string line = std::string(SLIPWAY_PROGRAM) +
                           " calibrate " SLIPWAY_SOURCE_DIR
                           "/scenarios/examples/tiny-llama-cpu.yaml --set run.optimizer.name=kfac "
                           "--set schedule.kernels=torch --set schedule.name=gpipe --set layout.data=2 --set "
                           "cluster.gpus_per_node=4 --set schedule.global_batch=16 --trace " +
                           trace_path(folder) + " -o " + folder + "/machine.yaml";
  const Ended ended = RankProcesses("/bin/sh", {"-c", line}, 1, folder + "/calibrate").wait(120).front();
  EXPECT_EQ(ended.status, 0) << ended.errors;
}

// The filled window of this scenario has two steps.
TEST(KfacCheckpoints, ThatAreDueWithinAWindowAreMadeAtItsEnd) {
  const std::string folder = fresh("due");
  executed(folder, {"--set run.steps=8 --set run.checkpoint_steps=3 --set run.checkpoints_kept=9"});
  EXPECT_THAT(complete_checkpoints(folder), ElementsAre(4, 6, 8));
}

TEST(KfacCheckpoints, ThatAreDueLessOftenThanWindowsEndAreMadeAtTheNextEnd) {
  const std::string folder = fresh("seldom");
  executed(folder, {"--set run.steps=12 --set run.checkpoint_steps=5 --set run.checkpoints_kept=9"});
  EXPECT_THAT(complete_checkpoints(folder), ElementsAre(6, 10, 12));
}

TEST(KfacTraining, EndsWithinAWindowWithTheLossesOfALongerOne) {
  const std::string longer = fresh("longer");
  executed(longer, {"--set run.steps=8"});
  const std::string losses = losses_of(longer);
  for (const int steps : {1, 7}) {
    const std::string folder = fresh("cut" + std::to_string(steps));
    executed(folder, {"--set run.steps=" + std::to_string(steps)});
    const std::string cut = losses_of(folder);
    EXPECT_EQ(std::count(cut.begin(), cut.end(), '\n'), steps + 1);
    EXPECT_EQ(losses.substr(0, cut.size()), cut);
  }
}

TEST(KfacTraining, ThatEndsWithinAWindowIsConfirmedByTheWholeOnes) {
  const auto json =
      nlohmann::json::parse(executed(fresh("cut-confirmed"), {"--set run.steps=9 --confirm --json"}).output);
  EXPECT_THAT(json["confirmation"]["only_predicted"], IsEmpty());
  EXPECT_THAT(json["confirmation"]["only_measured"], IsEmpty());
  EXPECT_EQ(json["losses"].size(), 9U);
}

TEST(KfacCheckpoints, OfATrainingThatEndedWithinAWindowIsGoneOnFrom) {
  const std::string folder = fresh("cut-resumed");
  executed(folder, {"--set run.steps=7 --set run.checkpoint_steps=3 --set run.checkpoints_kept=9"});
  EXPECT_THAT(complete_checkpoints(folder), ElementsAre(4, 6, 7));
  const Ended resumed = executed(folder, {"--set run.steps=12 --resume latest"});
  EXPECT_THAT(resumed.output, HasSubstr("from step 7"));
  const std::vector<double> losses = numbers_of(losses_of(folder));
  ASSERT_EQ(losses.size(), 12U);
  EXPECT_LT(losses[11], losses[7]);
}

// Factors are most of it. Every buffer of the prediction exists in the executor (kfac_shares.h), so they agree on ranks
// with unlike shares too.
TEST(KfacMemory, IsPredictedAsItIsMeasured) {
  for (const char* layout : {"--set layout.pipeline=1 --set cluster.gpus_per_node=1 --set schedule.global_batch=4",
                             "--set layout.pipeline=1 --set layout.data=4 --set cluster.gpus_per_node=4",
                             "--set layout.data=2 --set cluster.gpus_per_node=4 --set schedule.global_batch=16"}) {
    const auto json = nlohmann::json::parse(
        executed(fresh("memory"),
                 {layout,
                  "--set model.ffn=512 --set model.layers=2 --set model.sequence=8 --set schedule.micro_batch=1 "
                  "--set schedule.fill=none --set run.optimizer.damping=0.03 --set run.clip_norm=0 "
                  "--set run.steps=5 --confirm --json"})
            .output);
    ASSERT_FALSE(json["confirmation"]["memory"].empty());
    for (const auto& rank : json["confirmation"]["memory"])
      EXPECT_NEAR(rank["error"].get<double>(), 0, 0.02) << layout << ", rank " << rank["rank"];
  }
}

// Over many steps: an inverse stored in another order of rows and columns gave a dozen equal steps first.
TEST(KfacCheckpoints, ARunGoesOnWithTheLossesOfTheUninterruptedOneToTheLastBit) {
  const std::string whole = fresh("whole"), parts = fresh("parts");
  executed(whole, {"--set run.steps=60"});
  executed(parts, {"--set run.steps=4 --set run.checkpoint_steps=4"});
  const Ended resumed = executed(parts, {"--set run.steps=60 --set run.checkpoint_steps=4 --resume latest"});
  EXPECT_THAT(resumed.output, HasSubstr("from step 4"));
  EXPECT_EQ(losses_of(parts), losses_of(whole));
}

TEST(KfacCheckpoints, AnotherLayoutGoesOnWithTheSameInverses) {
  const std::string unfilled = "--set schedule.fill=none --set run.optimizer.refresh_steps=2";
  const std::string whole = fresh("whole-unfilled"), first = fresh("first"), second = fresh("second");
  executed(whole, {unfilled, "--set run.steps=8"});
  executed(first, {unfilled, "--set run.steps=4 --set run.checkpoint_steps=4"});
  executed(second, {unfilled, "--set layout.pipeline=1 --set layout.data=2 --set run.steps=8 --resume", first});
  const std::vector<double> expected = numbers_of(losses_of(whole)), found = numbers_of(losses_of(second));
  ASSERT_EQ(found.size(), 4U);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[4 + i], 1e-9 * expected[4 + i]) << "step " << 4 + i;
}

}  // namespace
}  // namespace slipway::test
