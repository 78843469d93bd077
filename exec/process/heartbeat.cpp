// The inside of Heartbeat: the state of its two threads. The pulse talks to the store, the watch decides. `mutex`
// guards everything below it except `store`, `count` and `counted`, which belong to the pulse thread.
// Guarded by tests/exec/heartbeat_test.cpp.
#include "exec/process/heartbeat.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/process/store.h"
#include "exec/process/within.h"

namespace slipway::exec {

namespace beating {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

inline Time after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

inline double seconds_since(Time time) { return std::chrono::duration<double>(Clock::now() - time).count(); }

struct Suspicion {
  int rank = 0;  // the rank of this process that it concerns
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
  std::string count;  // its last "beat" value, and its time
  Time counted = Clock::now();
};

constexpr double alert_s = 0.05;  // the pulse's period while something is suspected
// The store's host waits for the others to read the verdict: at most this long, and less when no further rank has read
// it lately, because those of a lost node never will. suspicion_s() and this must stay below 10 s.
constexpr double hearing_s = 2, deaf_s = 1;
constexpr double writing_s = 2;  // for a line in a file
// Limits the time that a lost file server holds the writer. `write` owns what it uses, because its thread may stay
// behind. If no thread can be made, `write` is called here.
void write_in_time(const std::function<void()>& write);

}  // namespace beating

// Store key: number of processes whose heartbeat has begun, which can read a verdict.
inline constexpr const char* listening_key = "listening";

struct Heartbeat::State {
  HeartbeatOptions options;
  std::function<void(const Failure&)> end;
  ProcessIdentity self = this_process();
  int wake = -1, signals = -1;
  std::thread pulse_thread, watch_thread;
  std::unique_ptr<Store> store;      // the pulse thread's
  bool termination_counted = false;  // the pulse thread's

  std::mutex mutex;
  std::condition_variable poke;  // for the pulse thread
  bool stop = false, attached = false, ended = false;
  std::optional<Failure> claim;  // the verdict that this rank claims
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
  double patience_with(const beating::Peer& peer) const;  // seconds of silence

  // --- watch ---------------------------------------------------------------------------------------
  void watch();
  void wait_for_event();
  void take_signals();
  void look_at_peers(std::unique_lock<std::mutex>& lock);
  bool store_is_silent() const;
  std::optional<Failure> decide(std::unique_lock<std::mutex>& lock);
  Failure store_lost_verdict(std::unique_lock<std::mutex>& lock);
};

using namespace beating;

std::string finished_key(int rank) { return "finished/" + std::to_string(rank); }
std::string process_key(int rank) { return "process/" + std::to_string(rank); }

void beating::write_in_time(const std::function<void()>& write) {
  try {
    within(writing_s, [write] {
      write();
      return true;
    });
  } catch (const std::system_error&) {  // no thread for it
    write();
  }
}

void Heartbeat::State::wake_watch() {
  const std::uint64_t one = 1;
  if (write(wake, &one, sizeof one) < 0) {
    // The counter is at its maximum: the watch thread is being woken already.
  }
}

void Heartbeat::State::post_claim(const Failure& failure) {
  if (claim) return;
  claim = failure;
  claimed = Clock::now();
  poke.notify_one();
  wake_watch();
}

Heartbeat::Heartbeat(HeartbeatOptions options, std::function<void(const Failure&)> end)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.options = std::move(options);
  state.end = std::move(end);
  const int rank = state.here().rank, next = (rank + state.here().hosted) % state.here().world;
  if (next != rank) state.peers.push_back({.rank = next, .process = {}, .count = {}});
  if (next != 0 && rank != 0) state.peers.push_back({.rank = 0, .process = {}, .count = {}});
  state.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (state.options.signals) {
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    pthread_sigmask(SIG_BLOCK, &taken, nullptr);
    state.signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  state.watch_thread = std::thread([&state] { state.watch(); });
}

Heartbeat::~Heartbeat() {
  finish();
  for (const int descriptor : {state_->wake, state_->signals}) {
    if (descriptor >= 0) close(descriptor);
  }
  for (const Peer& peer : state_->peers) {
    if (peer.descriptor >= 0) close(peer.descriptor);
  }
}

void Heartbeat::attach(std::unique_ptr<Store> store) {
  store->add(listening_key, 1);  // without the mutex: should its host be stopped, fail() needs it
  const std::lock_guard lock(state_->mutex);
  state_->store = std::move(store);
  state_->attached = true;
  state_->answered = Clock::now();
  state_->pulse_thread = std::thread([state = state_.get()] { state->pulse(); });
}

void Heartbeat::fail(int rank, const std::string& cause) {
  // Written before the claim, because its verdict may end this process. A lost file server must not delay the claim.
  write_in_time([directory = state_->options.directory, rank, cause] { write_own_error(directory, rank, cause); });
  const std::lock_guard lock(state_->mutex);
  state_->post_claim({rank, cause});
}

void Heartbeat::suspect(int rank, const std::string& cause) {
  const std::lock_guard lock(state_->mutex);
  if (state_->suspicion) return;
  state_->suspicion = Suspicion{rank, cause, after(state_->options.suspicion_s()), false};
  state_->poke.notify_one();
  state_->wake_watch();
}

void Heartbeat::finish() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->poke.notify_one();
    state_->wake_watch();
  }
  if (state_->pulse_thread.joinable()) state_->pulse_thread.join();
  if (state_->watch_thread.joinable()) state_->watch_thread.join();
  state_->store.reset();
}

using namespace beating;

void Heartbeat::State::pulse() {
  try {
    for (std::int64_t count = 1;; ++count) {
      if (beat(count)) return;
      std::unique_lock lock(mutex);
      answered = Clock::now();
      const double period = suspicion ? alert_s : options.beat_s;
      poke.wait_for(lock, std::chrono::duration<double>(period),
                    [this] { return stop || claim || (suspicion && !termination_counted); });
      if (stop) return;
    }
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex);
    lost = error.what();
    wake_watch();
  }
}

// Returns true when the run is over and the verdict known.
bool Heartbeat::State::beat(std::int64_t count) {
  store->set("beat/" + std::to_string(here().rank), std::to_string(count));
  count_termination();
  const std::optional<Failure> wanted = wanted_verdict();
  if (wanted) {
    settle(failure_from_text(store->claim("failed", to_text(*wanted))));
    return true;
  }
  if (store->has("failed")) {
    settle(failure_from_text(store->get("failed", options.lost_s)));
    return true;
  }
  for (Peer& peer : peers) {
    if (!peer.known) meet(peer);
  }
  if (!peers.empty()) check_count(peers.front());
  return false;
}

// The verdict that this rank claims. A peer that ended after it had finished is no failure.
std::optional<Failure> Heartbeat::State::wanted_verdict() {
  std::optional<Failure> wanted;
  {
    const std::lock_guard lock(mutex);
    wanted = claim;
  }
  if (!wanted || wanted->rank < 0 || here().hosts(wanted->rank)) return wanted;
  if (!store->has(finished_key(wanted->rank))) return wanted;
  const std::lock_guard lock(mutex);
  claim.reset();
  return std::nullopt;
}

// SIGTERM to all ranks means that the run is stopped: nothing has failed and there is nothing to wait for.
void Heartbeat::State::count_termination() {
  std::string cause;
  {
    const std::lock_guard lock(mutex);
    if (!suspicion || !suspicion->terminated) {
      termination_counted = suspicion.has_value();
      return;
    }
    cause = suspicion->cause;
  }
  const std::int64_t terminated = store->add("terminated", termination_counted ? 0 : 1);
  termination_counted = true;
  if (terminated < here().processes() || store->has("failed")) return;
  const std::lock_guard lock(mutex);
  post_claim({here().rank, cause});
}

// The store's host must keep the store until the others have read the verdict.
void Heartbeat::State::settle(const Failure& failure) {
  const std::int64_t heard = store->add("heard", 1);
  if (here().hosts_store()) {
    const std::int64_t listening = store->add(listening_key, 0);
    const std::int64_t needed = here().hosts(failure.rank) ? listening : listening - 1;
    const Time until = after(hearing_s);
    Time grown = Clock::now();
    for (std::int64_t before = heard, now = heard;
         now < needed && Clock::now() < until && seconds_since(grown) < deaf_s;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      now = store->add("heard", 0);
      if (now > before) grown = Clock::now();
      before = now;
    }
  }
  const std::lock_guard lock(mutex);
  verdict = failure;
  wake_watch();
}

void Heartbeat::State::meet(Peer& peer) {
  if (!store->has(process_key(peer.rank))) return;
  const ProcessIdentity process = process_from_text(store->get(process_key(peer.rank), options.lost_s));
  const std::lock_guard lock(mutex);
  peer.process = process;
  peer.seen_in_proc = visible(self, process) && process.pid != self.pid;
  if (peer.seen_in_proc) peer.descriptor = descriptor_of(process);
  peer.known = true;
  peer.counted = Clock::now();
  wake_watch();
}

double Heartbeat::State::patience_with(const Peer& peer) const {
  if (!peer.seen_in_proc) return options.lost_s;
  return is_stopped(peer.process) ? options.stopped_s : options.silent_s;
}

void Heartbeat::State::check_count(Peer& peer) {
  const std::string key = "beat/" + std::to_string(peer.rank);
  if (!peer.known || !store->has(key)) return;
  const std::string count = store->get(key, options.lost_s);
  if (count != peer.count) {
    peer.count = count;
    peer.counted = Clock::now();
    return;
  }
  const double silence = seconds_since(peer.counted);
  if (silence < patience_with(peer)) return;
  if (store->has(finished_key(peer.rank))) return;
  const std::lock_guard lock(mutex);
  const char* why =
      peer.seen_in_proc ? " s; it lives, but does not answer (stopped?) (" : " s; stopped, or its node lost (";
  post_claim({peer.rank,
              "no heartbeat for " + std::to_string(static_cast<int>(silence)) + why + describe(peer.process) + ")"});
}

using namespace beating;

namespace {

constexpr double claim_patience_s = 2;  // for the store's answer to a claim
constexpr double end_detail_s = 1;      // for the launcher to write how a collected process ended

}  // namespace

void Heartbeat::State::watch() {
  for (;;) {
    const Time before = Clock::now();
    wait_for_event();
    std::unique_lock lock(mutex);
    if (stop) return;
    // This process itself was stopped and continues: the silence meanwhile counts for no peer.
    if (seconds_since(before) > options.lost_s / 2) answered = Clock::now();
    take_signals();
    look_at_peers(lock);
    const auto failure = decide(lock);
    if (!failure || ended) continue;
    ended = true;
    lock.unlock();
    write_in_time([directory = options.directory, common = *failure] { write_verdict(directory, common); });
    end(*failure);
    return;
  }
}

void Heartbeat::State::wait_for_event() {
  std::vector<pollfd> events{{wake, POLLIN, 0}};
  if (signals >= 0) events.push_back({signals, POLLIN, 0});
  {
    const std::lock_guard lock(mutex);
    for (const Peer& peer : peers) {
      // The descriptor of an ended process stays readable, so it is dropped once it is not needed.
      const bool wanted = peer.descriptor >= 0 && !peer.over && !claim && !verdict;
      if (wanted) events.push_back({peer.descriptor, POLLIN, 0});
    }
  }
  poll(events.data(), events.size(), static_cast<int>(options.beat_s * 1000 / 2));
  std::uint64_t ignored = 0;
  if (events[0].revents && read(wake, &ignored, sizeof ignored) < 0) {
    // Nothing to read: the poll woke for another reason.
  }
}

void Heartbeat::State::take_signals() {
  signalfd_siginfo signal{};
  while (signals >= 0 && read(signals, &signal, sizeof signal) == sizeof signal) {
    const std::string who = " (sent by process " + std::to_string(signal.ssi_pid) + ")";
    if (signal.ssi_signo == SIGINT) {
      post_claim({here().rank, "interrupted by SIGINT"});
    } else if (!suspicion) {
      suspicion = Suspicion{here().rank, "ended by SIGTERM" + who, after(attached ? options.terminated_s : 0), true};
      poke.notify_one();
    }
  }
}

void Heartbeat::State::look_at_peers(std::unique_lock<std::mutex>& lock) {
  for (Peer& peer : peers) {
    if (!peer.known || !peer.seen_in_proc || peer.over || claim || verdict) continue;
    const ProcessIdentity process = peer.process;
    const int rank = peer.rank;
    lock.unlock();
    const auto failure = failure_of_ended(process, rank, options.directory, end_detail_s);
    lock.lock();
    if (!failure) continue;
    peer.over = true;
    if (!claim) post_claim(*failure);
  }
}

const Peer* Heartbeat::State::visible_host() const {
  for (const Peer& peer : peers) {
    if (!here().agent_store && peer.rank == 0 && peer.known && peer.seen_in_proc) return &peer;
  }
  return nullptr;
}

// A host that is visibly alive may be stopped for a while, like any other rank on this host.
bool Heartbeat::State::store_is_silent() const {
  const double silence = seconds_since(answered);
  if (silence <= options.lost_s) return false;
  const Peer* host = visible_host();
  return !host || silence > patience_with(*host) || cause_of_end(host->process);
}

// The failure that ends the run, when it is known.
std::optional<Failure> Heartbeat::State::decide(std::unique_lock<std::mutex>& lock) {
  if (verdict) return verdict;
  if (suspicion && Clock::now() >= suspicion->until && !claim) post_claim({suspicion->rank, suspicion->cause});
  if (!attached) return claim;
  const bool silent = store_is_silent();
  const bool own = claim && here().hosts(claim->rank);
  if (lost || silent) {
    if (own && !suspicion) return claim;
    if (!here().hosts_store()) return store_lost_verdict(lock);
    return claim ? *claim : Failure{here().rank, "its own store failed: " + lost.value_or("no answer")};
  }
  if (claim && seconds_since(claimed) > claim_patience_s + (here().hosts_store() ? hearing_s : 0)) return claim;
  return std::nullopt;
}

Failure Heartbeat::State::store_lost_verdict(std::unique_lock<std::mutex>& lock) {
  const std::optional<Failure> claimed_failure = claim;
  std::optional<ProcessIdentity> host;
  if (const Peer* peer = visible_host()) host = peer->process;
  lock.unlock();
  std::optional<Failure> found;
  // A dying process closes its connections a moment before it shows as ended.
  for (const Time until = after(end_detail_s); !found && Clock::now() < until;) {
    found = read_verdict(options.directory);
    if (!found && host) found = failure_of_ended(*host, 0, options.directory, end_detail_s);
    if (!found) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  lock.lock();
  if (found) return *found;
  if (claimed_failure && claimed_failure->rank >= 0 && here().process_of(claimed_failure->rank) == 0)
    return *claimed_failure;
  if (here().agent_store) return {-1, "it hosts the store, which is lost (" + lost.value_or("no answer") + ")"};
  if (host) {
    const std::string what =
        lost ? "it lives, but its store is lost: " + *lost : "it lives, but does not answer (stopped?)";
    return {0, what + " (" + describe(*host) + ")"};
  }
  if (!lost) return {0, "it hosts the store and does not answer (stopped, or its node lost)"};
  return {0, "it hosts the store and ended without a report (killed or its node lost)"};
}

}  // namespace slipway::exec
