// The rank program under a launcher that starts all ranks again after a failure, as torchrun --max-restarts does: the agent
// hosts the store for all starts, and the variables count them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/process/store.h"
#include "exec/run/checkpoint_folder.h"
#include "exec/run/run_files.h"
#include "scenarios/commands/execute/free_port.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double starting_s = 120;  // on a busy machine
constexpr int steps = 60;

std::string folder_with_bundle(const std::string& name) {
  const std::string folder = temporary_folder().path(name);
  std::filesystem::create_directories(folder);
  Bundle bundle = endless_bundle(2, 1);
  bundle.run.steps = steps;
  bundle.run.checkpoint_steps = 5;
  write_bundle_file(folder + "/run.slip", bundle);
  return folder;
}

RankProcesses started(const std::string& folder, int port, int restart) {
  return RankProcesses(SLIPWAY_RANK_PROGRAM, {folder + "/run.slip", "--out", folder, "--resume", "if-any"}, 2, folder,
                       {{"MASTER_PORT", std::to_string(port)},
                        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                        {"TORCHELASTIC_RUN_ID", "restarted"},
                        {"TORCHELASTIC_RESTART_COUNT", std::to_string(restart)}});
}

TEST(RestartedRanks, GoOnFromTheNewestCheckpointToTheLossesOfAnUndisturbedRunToTheLastBit) {
  RankEnvironment agent;
  agent.store_port = free_port();
  const StoreHost host(agent, 10);
  const std::string whole = folder_with_bundle("undisturbed"), folder = folder_with_bundle("restarted");
  for (const Ended& rank : started(whole, agent.store_port, 100).wait(starting_s))
    ASSERT_EQ(rank.status, 0) << rank.errors;
  // Before the first checkpoint, and after some.
  for (const auto& [restart, step] : {std::pair{0, "step 1/"}, std::pair{1, "step 7/"}, std::pair{2, "step 20/"}}) {
    RankProcesses ranks = started(folder, agent.store_port, restart);
    ASSERT_TRUE(ranks.printed(0, step, starting_s));
    ranks.kill(1, SIGKILL);
    const std::vector<Ended> ended = ranks.wait(starting_s);
    EXPECT_EQ(ended[0].status, 1);
    EXPECT_THAT(ended[0].errors, HasSubstr("rank 1 failed: killed by signal 9"));
  }
  for (const Ended& rank : started(folder, agent.store_port, 3).wait(starting_s))
    ASSERT_EQ(rank.status, 0) << rank.errors;
  EXPECT_EQ(text_of_file(losses_path(folder)), text_of_file(losses_path(whole)));
  EXPECT_THAT(text_of_file(folder + "/log-0.out"), HasSubstr("resumes from "));
  const std::string records = text_of_file(records_path(folder, 1));
  for (const Ended& rank : started(folder, agent.store_port, 4).wait(starting_s))
    EXPECT_EQ(rank.status, 0) << rank.errors;
  EXPECT_THAT(text_of_file(folder + "/log-0.out"), HasSubstr("its 60 steps are done"));
  EXPECT_EQ(text_of_file(records_path(folder, 1)), records) << "a complete training is left alone";
}

TEST(RestartedRanks, LeaveOutACheckpointThatIsNotWhole) {
  RankEnvironment agent;
  agent.store_port = free_port();
  const StoreHost host(agent, 10);
  const std::string folder = folder_with_bundle("damaged-newest");
  {
    RankProcesses ranks = started(folder, agent.store_port, 0);
    ASSERT_TRUE(ranks.printed(0, "step 21/", starting_s));
    ranks.kill(0, SIGKILL);
    ranks.wait(starting_s);
  }
  const std::int64_t newest = complete_checkpoints(folder).back();
  std::filesystem::remove(shard_path(checkpoint_path(folder, newest), 1, "data"));
  RankProcesses ranks = started(folder, agent.store_port, 1);
  for (const Ended& rank : ranks.wait(starting_s)) EXPECT_EQ(rank.status, 0) << rank.errors;
  const std::string output = text_of_file(folder + "/log-0.out");
  EXPECT_THAT(output, HasSubstr("not resumed from: " + shard_path(checkpoint_path(folder, newest), 1, "data")));
  EXPECT_THAT(output, HasSubstr("resumes from " + checkpoint_path(folder, newest - 5)));
}

}  // namespace
}  // namespace slipway::test
