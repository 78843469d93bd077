#include "exec/heartbeat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/memory_store.h"

namespace slipway {
namespace {

using testing::HasSubstr;

// Some ranks with heartbeats inside this process; other ranks are played by the test.
class Heartbeats : public testing::Test {
 protected:
  struct Rank {
    std::unique_ptr<Heartbeat> heartbeat;
    std::optional<Failure> failure;
  };

  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("slipway-heartbeat-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override {
    for (Rank& rank : ranks_) rank.heartbeat.reset();
    std::filesystem::remove_all(directory_);
  }

  // Ranks [0, count) of `world`, as if each were on a host of its own.
  void start(int count, int world, bool rank0_hosts_store = true) {
    ranks_.resize(static_cast<std::size_t>(count));
    const auto store = map_.connect();
    for (int rank = 0; rank < count; ++rank) {
      HeartbeatOptions options{.rank = rank,
                               .world = world,
                               .rank0_hosts_store = rank0_hosts_store,
                               .directory = directory_,
                               .signals = false,
                               .beat_s = 0.02,
                               .lost_s = 0.6,
                               .stopped_s = 2,
                               .suspicion_s = 0.4,
                               .terminated_s = 0.4};
      ProcessIdentity process = this_process();
      process.boot_id = "boot-" + std::to_string(rank);
      store->set(process_key(rank), to_text(process));
      Rank& mine = ranks_[static_cast<std::size_t>(rank)];
      mine.heartbeat = std::make_unique<Heartbeat>(options, [this, &mine](const Failure& failure) {
        const std::lock_guard lock(mutex_);
        mine.failure = failure;
        changed_.notify_all();
      });
      mine.heartbeat->attach(map_.connect());
    }
  }

  Failure failure_of(int rank) {
    std::unique_lock lock(mutex_);
    Rank& mine = ranks_[static_cast<std::size_t>(rank)];
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return mine.failure.has_value(); });
    return mine.failure.value_or(Failure{-2, "no failure was reported"});
  }
  void expect_all(int failed, const std::string& cause) {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      if (!ranks_[static_cast<std::size_t>(rank)].heartbeat) continue;
      EXPECT_EQ(failure_of(rank).rank, failed) << "rank " << rank;
      EXPECT_THAT(failure_of(rank).cause, HasSubstr(cause)) << "rank " << rank;
    }
  }

  MemoryStore map_;
  std::vector<Rank> ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string directory_;
};

TEST_F(Heartbeats, ARanksOwnFailureIsNamedByAll) {
  start(3, 3);
  ranks_[1].heartbeat->fail("step 3, 1F0: out of memory");
  expect_all(1, "out of memory");
}

TEST_F(Heartbeats, TheFirstOfTwoClaimsWins) {
  start(3, 3);
  ranks_[2].heartbeat->fail("the first cause");
  failure_of(2);
  ranks_[1].heartbeat->fail("a later one");
  expect_all(2, "the first cause");
}

TEST_F(Heartbeats, AnEchoIsNotReportedWhenTheCauseComesLater) {
  start(3, 3);
  ranks_[0].heartbeat->suspect("connection closed by peer");
  ranks_[2].heartbeat->suspect("connection closed by peer");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ranks_[1].heartbeat->fail("the true cause");
  expect_all(1, "the true cause");
}

TEST_F(Heartbeats, ASuspicionThatNothingExplainsIsReportedInTheEnd) {
  start(3, 3);
  ranks_[2].heartbeat->suspect("connection closed by peer");
  expect_all(2, "connection closed by peer");
}

TEST_F(Heartbeats, ARankThatFallsSilentIsNamedByTheRankBeforeIt) {
  start(3, 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ranks_[2].heartbeat.reset();  // beats no more, without a word
  expect_all(2, "no heartbeat for");
}

TEST_F(Heartbeats, ARankThatHasFinishedMayFallSilent) {
  start(3, 3);
  map_.connect()->set(finished_key(2), "1");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ranks_[2].heartbeat.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_FALSE(ranks_[0].failure.has_value());
  EXPECT_FALSE(ranks_[1].failure.has_value());
}

TEST_F(Heartbeats, ALostStoreMeansThatRank0Failed) {
  start(3, 3);
  ranks_[0].heartbeat.reset();
  map_.lose();
  expect_all(0, "it hosts the store and ended without a report");
}

TEST_F(Heartbeats, ALostStoreOfTheAgentIsNotBlamedOnARank) {
  start(2, 2, false);
  map_.lose();
  expect_all(-1, "it hosts the store");
}

TEST_F(Heartbeats, AVerdictOnDiskIsFoundWhenTheStoreIsLost) {
  start(3, 3);
  ranks_[0].heartbeat.reset();
  write_verdict(directory_, {1, "killed by signal 9"});
  map_.lose();
  expect_all(1, "killed by signal 9");
}

// The next rank is a process on this host, and is really killed.
TEST_F(Heartbeats, AKilledProcessIsNamedWithItsSignalLongBeforeItsSilenceIs) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ProcessIdentity process = this_process();
  process.pid = child;
  std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
  std::string field;
  for (int i = 1; i <= 22; ++i) stat >> field;  // the name of this program has no spaces
  process.start_ticks = std::stoll(field);
  map_.connect()->set(process_key(1), to_text(process));
  start(1, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(child, SIGKILL);
  EXPECT_EQ(failure_of(0).rank, 1);
  EXPECT_EQ(failure_of(0).cause, "killed by signal 9 (" + describe(process) + ")");
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace slipway
