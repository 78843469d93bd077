// The inside of Heartbeat: what its two threads share. heartbeat_pulse.cpp speaks with the store,
// heartbeat_watch.cpp decides; everything below `mutex` is guarded by it, but `store`, `count` and
// `counted`, which belong to the pulse thread. Guarded by tests/heartbeat_test.cpp.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/heartbeat.h"

namespace slipway::beating {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

inline Time after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

inline double seconds_since(Time time) {
  return std::chrono::duration<double>(Clock::now() - time).count();
}

struct Suspicion {
  int rank = 0;  // of this process, whose it is
  std::string cause;
  Time until;
  bool terminated = false;  // by SIGTERM
};

// A rank that this one watches: the next one (first in the list) and rank 0.
struct Peer {
  int rank = 0;
  bool known = false, over = false;  // over: finished in order, or already claimed
  ProcessIdentity process;
  bool seen_in_proc = false;
  int descriptor = -1;
  std::string count;  // its last "beat" value, and since when
  Time counted = Clock::now();
};

constexpr double alert_s = 0.05;  // the pulse's period while something is suspected
// The store's host waits for the others to hear the verdict: at most so long, and less when nobody more has
// heard it lately, for those of a lost node never will. lost_s, two beats and this must stay below 10 s.
constexpr double hearing_s = 2, deaf_s = 1;
constexpr double writing_s = 2;  // for a line in a file
// A lost file server holds the writer only so long. `write` owns what it uses: its thread may stay behind. Where there is
// no thread left it is called here.
void write_in_time(const std::function<void()>& write);

}  // namespace slipway::beating

namespace slipway {

// In the store: processes whose heartbeat has begun, so who can hear a verdict.
inline constexpr const char* listening_key = "listening";

struct Heartbeat::State {
  HeartbeatOptions options;
  std::function<void(const Failure&)> end;
  ProcessIdentity self = this_process();
  int wake = -1, signals = -1;
  std::thread pulse_thread, watch_thread;
  std::unique_ptr<Store> store;   // the pulse thread's
  bool termination_told = false;  // the pulse thread's

  std::mutex mutex;
  std::condition_variable poke;  // for the pulse thread
  bool stop = false, attached = false, ended = false;
  std::optional<Failure> claim;  // what this rank wants to be the verdict
  beating::Time claimed;
  std::optional<Failure> verdict;
  std::optional<std::string> lost;  // why the store is gone
  std::optional<beating::Suspicion> suspicion;
  beating::Time answered = beating::Clock::now();
  std::vector<beating::Peer> peers;

  const RankEnvironment& here() const { return options.environment; }
  // Rank 0 when it hosts the store and its process is visible from here. With the mutex held.
  const beating::Peer* visible_host() const;

  void wake_watch();
  void post_claim(const Failure& failure);  // with the mutex held; the first one stays

  // --- pulse ---------------------------------------------------------------------------------------
  void pulse();
  bool beat(std::int64_t count);
  std::optional<Failure> wanted_verdict();
  void count_termination();
  void settle(const Failure& failure);
  void meet(beating::Peer& peer);
  void check_count(beating::Peer& peer);

  // --- watch ---------------------------------------------------------------------------------------
  void watch();
  void wait_for_event();
  void take_signals();
  void look_at_peers(std::unique_lock<std::mutex>& lock);
  bool store_is_silent() const;
  std::optional<Failure> decide(std::unique_lock<std::mutex>& lock);
  Failure store_lost_verdict(std::unique_lock<std::mutex>& lock);
};

}  // namespace slipway
