// The store falls silent or is lost while the ranks need it: no record is lost with it, and a host that is only stopped
// for a while has not failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "exec/process/store.h"
#include "scenarios/commands/execute/free_port.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

constexpr double starting_s = 60;  // on a busy machine

// The test plays the launcher's agent, which hosts the store. It lets the only rank wait for a second one at the end of
// its steps, and then the store goes away.
TEST(StoreLostAfterTheLastStep, LeavesTheRecordsOfEveryStep) {
  const std::string folder = temporary_folder().path("lost-at-the-end");
  std::filesystem::create_directories(folder);
  Bundle bundle = tiny_bundle(tiny_input(tiny_llama(1, false)));
  bundle.run.steps = 2;
  write_bundle_file(folder + "/run.slip", bundle);
  RankEnvironment agent;
  agent.store_port = free_port();
  agent.store_prefix = "slipway/play";
  auto host = std::make_unique<StoreHost>(agent, 10);
  auto store = host->connect();
  store->add("ran", -1);
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, {folder + "/run.slip", "--out", folder}, 1, folder,
                      {{"MASTER_PORT", std::to_string(agent.store_port)},
                       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                       {"SLIPWAY_RUN_ID", "play"}});
  const auto started = Clock::now();
  while (store->add("ran", 0) < 0) {
    ASSERT_LT(std::chrono::duration<double>(Clock::now() - started).count(), starting_s);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  store.reset();
  host.reset();
  const Ended rank = ranks.wait(starting_s + 30).front();
  EXPECT_EQ(rank.status, 1) << rank.errors;
  EXPECT_THAT(rank.errors, HasSubstr("the launcher's agent failed: it hosts the store, which is lost"));
  const std::string records = text_of_file(folder + "/rank-0.records");
  EXPECT_EQ(static_cast<std::size_t>(std::count(records.begin(), records.end(), '\n')), 2 * bundle.graph.tasks.size());
}

// Longer than the silence of a lost node, shorter than the limit for a visible process.
TEST(StoppedHostOfTheStore, MayGoOnAndSoDoesTheRun) {
  const std::string folder = temporary_folder().path("stopped-host");
  std::filesystem::create_directories(folder);
  write_bundle_file(folder + "/run.slip", endless_bundle(1, 2));
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, {folder + "/run.slip", "--out", folder}, 2, folder);
  ASSERT_TRUE(ranks.printed(0, "step 3/", starting_s));
  ranks.kill(0, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(9));
  ranks.kill(0, SIGCONT);
  const auto size = text_of_file(folder + "/log-0.out").size();
  for (int i = 0; i < 300 && text_of_file(folder + "/log-0.out").size() < size + 500; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_GE(text_of_file(folder + "/log-0.out").size(), size + 500) << "many steps more";
  EXPECT_EQ(text_of_file(folder + "/log-0.err") + text_of_file(folder + "/log-1.err"), "");
}

// A second after the heartbeat's, not after the ten that it has by default.
TEST(StoppedRank, IsGivenUpAfterTheSecondsOfItsScenario) {
  const std::string folder = temporary_folder().path("stopped-rank");
  std::filesystem::create_directories(folder);
  Bundle bundle = endless_bundle(1, 2);
  bundle.run.heartbeat_s = 1;
  write_bundle_file(folder + "/run.slip", bundle);
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, {folder + "/run.slip", "--out", folder}, 2, folder);
  ASSERT_TRUE(ranks.printed(0, "step 3/", starting_s));
  ranks.kill(1, SIGSTOP);
  ranks.mark();
  const Ended rank = ranks.wait(9.5).front();  // the stopped one does not end
  EXPECT_EQ(rank.status, 1) << rank.errors;
  EXPECT_GT(rank.seconds, 1);
  EXPECT_LT(rank.seconds, 9.5);
  EXPECT_THAT(rank.errors, HasSubstr("rank 1 failed: "));
}

}  // namespace
}  // namespace slipway::test
