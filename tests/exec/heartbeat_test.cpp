#include "exec/process/heartbeat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/support/memory_store.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

// Some ranks with heartbeats inside this process; the test plays the other ranks.
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
    map_.go_on();
    for (Rank& rank : ranks_) rank.heartbeat.reset();
    std::filesystem::remove_all(directory_);
  }

  static HeartbeatOptions quick() {
    HeartbeatOptions options;
    options.beat_s = 0.02;
    options.lost_s = 0.6;
    options.stopped_s = 2;
    options.silent_s = 60;
    options.terminated_s = 0.4;
    return options;
  }
  // Ranks [0, count) of `world`, as if each were on a host of its own.
  void start(int count, int world, HeartbeatOptions options = quick()) {
    ranks_.resize(count);
    for (int rank = 0; rank < count; ++rank) start_rank(rank, world, options);
  }
  void start_rank(int rank, int world, HeartbeatOptions options) {
    options.environment.rank = rank;
    options.environment.world = world;
    options.directory = directory_;
    options.signals = false;
    ProcessIdentity process = this_process();
    process.boot_id = "boot-" + std::to_string(rank);
    map_.connect()->set(process_key(rank), to_text(process));
    Rank& mine = ranks_[rank];
    mine.heartbeat = std::make_unique<Heartbeat>(options, [this, &mine](const Failure& failure) {
      const std::lock_guard lock(mutex_);
      mine.failure = failure;
      changed_.notify_all();
    });
    mine.heartbeat->attach(map_.connect());
  }

  Failure failure_of(int rank) {
    std::unique_lock lock(mutex_);
    Rank& mine = ranks_[rank];
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return mine.failure.has_value(); });
    return mine.failure.value_or(Failure{-2, "no failure was reported"});
  }
  void expect_all(int failed, const std::string& cause) {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      if (!ranks_[rank].heartbeat) continue;
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
  ranks_[1].heartbeat->fail(1, "step 3, 1F0: out of memory");
  expect_all(1, "out of memory");
}

TEST_F(Heartbeats, ARankWhoseStoreIsStoppedWhileItJoinsCanStillFail) {
  map_.stall();
  ranks_.resize(1);
  HeartbeatOptions options = quick();
  options.environment.world = 2;
  options.directory = directory_;
  options.signals = false;
  ranks_[0].heartbeat = std::make_unique<Heartbeat>(options, [this](const Failure& failure) {
    const std::lock_guard lock(mutex_);
    ranks_[0].failure = failure;
    changed_.notify_all();
  });
  std::thread joining([this] { ranks_[0].heartbeat->attach(map_.connect()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it waits for the store's answer now
  std::thread failing([this] { ranks_[0].heartbeat->fail(0, "the store has not answered"); });
  EXPECT_THAT(failure_of(0).cause, HasSubstr("the store has not answered"));
  map_.go_on();
  joining.join();
  failing.join();
}

// Two of three ranks never came, so no other rank can read the verdict of the store's host.
TEST_F(Heartbeats, TheHostDoesNotWaitForRanksThatNeverCameToHearTheVerdict) {
  start(1, 3);
  const auto begin = std::chrono::steady_clock::now();
  ranks_[0].heartbeat->fail(0, "rank 1 did not join");
  expect_all(0, "rank 1 did not join");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(900)) << "it would wait 1 s";
}

TEST_F(Heartbeats, TheFirstOfTwoClaimsWins) {
  start(3, 3);
  ranks_[2].heartbeat->fail(2, "the first cause");
  failure_of(2);
  ranks_[1].heartbeat->fail(1, "a later one");
  expect_all(2, "the first cause");
}

TEST_F(Heartbeats, AnEchoIsNotReportedWhenTheCauseComesLater) {
  start(3, 3);
  ranks_[0].heartbeat->suspect(0, "connection closed by peer");
  ranks_[2].heartbeat->suspect(2, "connection closed by peer");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ranks_[1].heartbeat->fail(1, "the true cause");
  expect_all(1, "the true cause");
}

TEST_F(Heartbeats, ASuspicionThatNothingExplainsIsReportedInTheEnd) {
  start(3, 3);
  ranks_[2].heartbeat->suspect(2, "connection closed by peer");
  expect_all(2, "connection closed by peer");
}

TEST_F(Heartbeats, ARankThatFallsSilentIsNamedByTheRankBeforeIt) {
  start(3, 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ranks_[2].heartbeat.reset();  // stops beating silently
  expect_all(2, "no heartbeat for");
}

// Its last beat is seen late, when the connection has broken, so its silence is noticed after an echo of that time.
TEST_F(Heartbeats, ARankThatIsLostRightAfterABeatIsNamedAndNotTheRankThatMissesIt) {
  HeartbeatOptions options = quick();
  options.beat_s = 0.2;
  const auto other = map_.connect();
  ProcessIdentity elsewhere = this_process();
  elsewhere.boot_id = "boot-1";
  other->set(process_key(1), to_text(elsewhere));
  other->set("beat/1", "1");
  start(1, 2, options);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // between two looks at the count
  other->set("beat/1", "2");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ranks_[0].heartbeat->suspect(0, "a connection broke");
  expect_all(1, "no heartbeat for");
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
  HeartbeatOptions options = quick();
  options.environment.agent_store = true;
  start(2, 2, options);
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

// The promise for a lost node, with the true limits: two ranks are lost at once. Rank 0, which hosts the store, must
// not wait for them to read the verdict.
TEST_F(Heartbeats, ANodeLostWithTwoOfFourRanksEndsTheOthersWithinTenSeconds) {
  start(4, 4, HeartbeatOptions());
  std::this_thread::sleep_for(std::chrono::seconds(1));
  ranks_[2].heartbeat.reset();
  ranks_[3].heartbeat.reset();
  const auto lost = std::chrono::steady_clock::now();
  EXPECT_EQ(failure_of(0).rank, 2);
  EXPECT_EQ(failure_of(1).rank, 2);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - lost).count(), 10);
}

// Another rank that is a process on this host.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  void send(int signal) const { kill(pid_, signal); }
  ProcessIdentity identity() const {
    ProcessIdentity process = this_process();
    process.pid = pid_;
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string field;
    for (int i = 1; i <= 22; ++i) stat >> field;  // the name of this program has no spaces
    process.start_ticks = std::stoll(field);
    return process;
  }

 private:
  pid_t pid_;
};

TEST_F(Heartbeats, AKilledProcessIsNamedWithItsSignalLongBeforeItsSilenceIs) {
  const Child child;
  map_.connect()->set(process_key(1), to_text(child.identity()));
  start(1, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::string process = describe(child.identity());
  child.send(SIGKILL);
  EXPECT_EQ(failure_of(0).rank, 1);
  EXPECT_EQ(failure_of(0).cause, "killed by signal 9 (" + process + ")");
}

TEST_F(Heartbeats, AStoppedHostOfTheStoreIsSaidToLive) {
  const Child child;
  map_.connect()->set(process_key(0), to_text(child.identity()));
  ranks_.resize(2);
  start_rank(1, 2, quick());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  child.send(SIGSTOP);
  map_.stall();
  EXPECT_EQ(failure_of(1).rank, 0);
  EXPECT_EQ(failure_of(1).cause, "it lives, but does not answer (stopped?) (" + describe(child.identity()) + ")");
}

TEST_F(Heartbeats, AHostOfTheStoreThatGoesOnBeforeTheLimitHasNotFailed) {
  const Child child;
  map_.connect()->set(process_key(0), to_text(child.identity()));
  ranks_.resize(2);
  start_rank(1, 2, quick());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  map_.stall();
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // lost_s and more
  map_.go_on();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const std::lock_guard lock(mutex_);
  EXPECT_FALSE(ranks_[1].failure.has_value());
}

TEST_F(Heartbeats, AStoppedRankIsSaidToLive) {
  const Child child;
  map_.connect()->set(process_key(1), to_text(child.identity()));
  map_.connect()->set("beat/1", "17");
  start(1, 2);
  child.send(SIGSTOP);
  EXPECT_EQ(failure_of(0).rank, 1);
  EXPECT_THAT(failure_of(0).cause, HasSubstr("it lives, but does not answer (stopped?)"));
}

// An ended peer's descriptor is readable for ever.
TEST_F(Heartbeats, AnEndedPeerDoesNotKeepTheWatchSpinningWhileAClaimWaits) {
  const Child child;
  map_.connect()->set(process_key(1), to_text(child.identity()));
  start(1, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  map_.stall();
  ranks_[0].heartbeat->fail(0, "its own cause");
  child.send(SIGKILL);
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double busy_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(busy_s, 0.1) << "of 0.5 s, in which there is nothing to do";
  EXPECT_EQ(failure_of(0).cause, "its own cause");
}

}  // namespace
}  // namespace slipway::test
