// The launcher against ranks that are shell scripts: exit codes, signals, time limits.
#include <sys/types.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "scenarios/commands/execute/cores.h"
#include "scenarios/commands/execute/free_port.h"
#include "scenarios/commands/execute/launch.h"

namespace slipway::test {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RankProcess script(int rank, const std::string& text) {
  return {rank, {"/bin/sh", "-c", text}, {{"RANK", std::to_string(rank)}}, ""};
}

TEST(Launch, RanksThatEndWellAreNoFailure) {
  const LaunchResult result = launch({script(0, "exit 0"), script(1, "exit 0")}, {});
  EXPECT_EQ(result.ends.size(), 2u);
  EXPECT_FALSE(result.first_failure);
  EXPECT_FALSE(result.interrupted);
}

TEST(Launch, ARankRunsOnTheCoresItIsGivenOnly) {
  std::string allowed;
  LaunchOptions options;
  options.line = [&](int, std::string_view line, bool) { allowed = line; };
  RankProcess bound = script(0, "sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status");
  bound.cores = {usable_cores().back()};
  launch({bound}, options);
  EXPECT_EQ(allowed, std::to_string(usable_cores().back()));
}

TEST(Launch, EveryLineOfBothStreamsArrivesWithItsRankTheUnfinishedLastOneIncluded) {
  std::vector<std::string> lines;
  LaunchOptions options;
  options.line = [&](int rank, std::string_view line, bool is_error) {
    lines.push_back(std::to_string(rank) + (is_error ? "!" : ":") + std::string(line));
  };
  launch({script(7, "echo one; echo two; printf three"), script(8, "echo rank $RANK >&2")}, options);
  EXPECT_THAT(lines, testing::UnorderedElementsAre("7:one", "7:two", "7:three", "8!rank 8"));
}

TEST(Launch, AThousandLinesArriveInOrder) {
  int next = 0;
  LaunchOptions options;
  options.line = [&](int, std::string_view line, bool) { EXPECT_EQ(line, std::to_string(next++)); };
  launch({script(0, "i=0; while [ $i -lt 1000 ]; do echo $i; i=$((i+1)); done")}, options);
  EXPECT_EQ(next, 1000);
}

TEST(Launch, TheFirstFailureIsNamedWithItsExitStatusAndTheMessageThatTheRankLeft) {
  const std::string file = testing::TempDir() + "launch-test.error";
  RankProcess failing = script(1, "echo 'out of memory in 2F0' > " + file + "; exit 3");
  failing.error_file = file;
  // Rank 0 fails as a consequence, later.
  const LaunchResult result = launch({script(0, "sleep 0.5; exit 4"), failing}, {});
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(describe(*result.first_failure), "rank 1 ended with exit status 3: out of memory in 2F0");
  EXPECT_EQ(result.ends.size(), 2u);
  std::filesystem::remove(file);
}

TEST(Launch, ARankThatIsKilledIsNamedWithItsSignal) {
  const LaunchResult result = launch({script(0, "sleep 0.3"), script(1, "kill -9 $$")}, {});
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(describe(*result.first_failure), "rank 1 was killed by signal 9 (Killed)");
}

// In its first milliseconds, before it could meet the others: nobody else would notice.
TEST(Launch, ARankThatIsStoppedIsNamedAndAllEnd) {
  LaunchOptions options;
  options.stopped_s = 0.5;
  const auto begin = std::chrono::steady_clock::now();
  const LaunchResult result = launch({script(0, "exec sleep 600"), script(1, "kill -STOP $$")}, options);
  ASSERT_TRUE(result.first_failure);
  EXPECT_THAT(describe(*result.first_failure), HasSubstr("rank 1 was stopped by signal 19"));
  EXPECT_THAT(describe(*result.first_failure), HasSubstr("run.heartbeat_seconds"));
  EXPECT_EQ(result.ends.size(), 2u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3 * 2));
}

TEST(Launch, WhereAllRanksAreStoppedTheFirstIsNamedAndAllEnd) {
  LaunchOptions options;
  options.stopped_s = 0.5;
  const LaunchResult result = launch({script(0, "sleep 0.2; kill -STOP $$"), script(1, "kill -STOP $$")}, options);
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(result.first_failure->rank, 1);
  EXPECT_EQ(result.ends.size(), 2u);
}

TEST(Launch, ARankThatIsStoppedForAShortTimeGoesOn) {
  LaunchOptions options;
  options.stopped_s = 30;
  const LaunchResult result =
      launch({script(0, "(sleep 0.3; kill -CONT $$) & kill -STOP $$; exit 0"), script(1, "exit 0")}, options);
  EXPECT_FALSE(result.first_failure);
}

TEST(Launch, SurvivorsMayEndByThemselvesDuringTheGraceTime) {
  LaunchOptions options;
  options.grace_s = 20;
  const LaunchResult result = launch({script(0, "exit 1"), script(1, "sleep 0.3; exit 5")}, options);
  ASSERT_EQ(result.ends.size(), 2u);
  EXPECT_EQ(result.ends[1].exit_code, 5);
  EXPECT_FALSE(result.ends[1].stopped_by_launcher);
}

TEST(Launch, SurvivorsThatStayGetSigtermAndThenSigkill) {
  LaunchOptions options;
  options.grace_s = 0.2;
  options.kill_s = 0.4;
  const LaunchResult result = launch(
      {script(0, "exit 1"), script(1, "exec sleep 600"), script(2, "trap '' TERM; while true; do sleep 1; done")},
      options);
  ASSERT_EQ(result.ends.size(), 3u);
  EXPECT_EQ(result.first_failure->rank, 0);
  EXPECT_EQ(result.ends[1].rank, 1);
  EXPECT_EQ(result.ends[1].signal, SIGTERM);
  EXPECT_TRUE(result.ends[1].stopped_by_launcher);
  EXPECT_EQ(result.ends[2].signal, SIGKILL);
}

TEST(Launch, AnInterruptEndsAllRanksAndIsNoFailureOfOne) {
  std::thread interrupt([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::kill(::getpid(), SIGINT);
  });
  const LaunchResult result = launch({script(0, "exec sleep 600"), script(1, "exec sleep 600")}, {});
  interrupt.join();
  EXPECT_TRUE(result.interrupted);
  EXPECT_FALSE(result.first_failure);
  EXPECT_EQ(result.ends.size(), 2u);
}

TEST(Launch, AProgramThatDoesNotExistIsNamedAndRanksAlreadyStartedAreEnded) {
  const std::string file = testing::TempDir() + "launch-test.alive";
  std::filesystem::remove(file);
  try {
    launch({script(0, "sleep 0.5; touch " + file), {1, {"/nowhere/slipway-rank"}, {}, ""}}, {});
    FAIL() << "started";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot start /nowhere/slipway-rank: No such file"));
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(Launch, ABackgroundProcessOfARankDoesNotKeepTheLauncherWaiting) {
  const LaunchResult result = launch({script(0, "sleep 600 & exit 0")}, {});
  EXPECT_THAT(result.ends, ElementsAre(testing::Field(&RankEnd::exit_code, 0)));
}

// The kernel may give such a port to a connection before rank 0 listens, even to one of the same run.
TEST(FreePort, IsNoneThatTheKernelGivesToConnections) {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  ASSERT_TRUE(range >> first);
  if (first <= 10100) GTEST_SKIP() << "this machine leaves few ports below " << first;
  for (int i = 0; i < 100; ++i) {
    const int port = free_port();
    EXPECT_GT(port, 1023);
    EXPECT_LT(port, first);
  }
}

}  // namespace

// Ranks get cores of their own.

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CoreBinding, EveryRankGetsItsOwnEqualShareOfTheCoresThatMayBeUsed) {
  const std::vector<int> usable{1, 3, 5, 7, 9};
  EXPECT_THAT(cores_of_rank(usable, 0, 2), ElementsAre(1, 3));
  EXPECT_THAT(cores_of_rank(usable, 1, 2), ElementsAre(5, 7));
  EXPECT_THAT(cores_of_rank(usable, 4, 5), ElementsAre(9));
}

TEST(CoreBinding, MoreRanksThanCoresAreNotBound) {
  for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(cores_of_rank({0, 1}, rank, 3), IsEmpty());
}

TEST(CoreBinding, TheUsableCoresAreThoseThatTheSystemCounts) {
  EXPECT_EQ(usable_cores().size(), std::thread::hardware_concurrency());
}

}  // namespace

}  // namespace slipway::test
