#include "exec/heartbeat.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace slipway {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

Time after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double seconds_since(Time time) { return std::chrono::duration<double>(Clock::now() - time).count(); }

struct Suspicion {
  std::string cause;
  Time until;
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

constexpr double claim_patience_s = 2;  // for the store's answer to a claim
constexpr double hearing_s = 3;         // the store's host waits so long until the others know
constexpr double end_detail_s = 1;      // for the launcher to write how a collected process ended

}  // namespace

std::string finished_key(int rank) { return "finished/" + std::to_string(rank); }
std::string process_key(int rank) { return "process/" + std::to_string(rank); }

struct Heartbeat::State {
  HeartbeatOptions options;
  std::function<void(const Failure&)> end;
  ProcessIdentity self = this_process();
  int wake = -1, signals = -1;
  std::thread pulse_thread, watch_thread;
  std::unique_ptr<Store> store;  // the pulse thread's

  std::mutex mutex;
  std::condition_variable poke;  // for the pulse thread
  bool stop = false, attached = false, ended = false;
  std::optional<Failure> claim;  // what this rank wants to be the verdict
  Time claimed;
  std::optional<Failure> verdict;
  std::optional<std::string> lost;  // why the store is gone
  std::optional<Suspicion> suspicion;
  Time answered = Clock::now();
  std::vector<Peer> peers;

  bool hosts() const { return options.rank == 0 && options.rank0_hosts_store; }

  void wake_watch() {
    const std::uint64_t one = 1;
    if (write(wake, &one, sizeof one) < 0) {
      // The counter is at its maximum: the watch thread is being woken already.
    }
  }

  void post_claim(const Failure& failure) {  // with the mutex held
    if (claim) return;
    claim = failure;
    claimed = Clock::now();
    poke.notify_one();
    wake_watch();
  }

  // --- pulse ---------------------------------------------------------------------------------------
  void pulse();
  bool beat(std::int64_t count);
  void settle(const Failure& failure);
  void meet(Peer& peer);
  void check_count(Peer& peer);

  // --- watch ---------------------------------------------------------------------------------------
  void watch();
  void wait_for_event();
  void take_signals();
  void look_at_peers(std::unique_lock<std::mutex>& lock);
  std::optional<Failure> decide(std::unique_lock<std::mutex>& lock);
  Failure store_lost_verdict(std::unique_lock<std::mutex>& lock);
};

void Heartbeat::State::pulse() {
  try {
    for (std::int64_t count = 1;; ++count) {
      if (beat(count)) return;
      std::unique_lock lock(mutex);
      answered = Clock::now();
      poke.wait_for(lock, std::chrono::duration<double>(options.beat_s), [this] { return stop || claim; });
      if (stop) return;
    }
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex);
    lost = error.what();
    wake_watch();
  }
}

// True when the run is over and the verdict known.
bool Heartbeat::State::beat(std::int64_t count) {
  store->set("beat/" + std::to_string(options.rank), std::to_string(count));
  std::optional<Failure> wanted;
  {
    const std::lock_guard lock(mutex);
    wanted = claim;
  }
  if (wanted && wanted->rank != options.rank && wanted->rank >= 0 &&
      store->has(finished_key(wanted->rank))) {
    const std::lock_guard lock(mutex);
    claim.reset();  // it ended because it had finished
    wanted.reset();
  }
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

// The store's host must not take the store away before the others have read the verdict.
void Heartbeat::State::settle(const Failure& failure) {
  const std::int64_t heard = store->add("heard", 1);
  if (hosts()) {
    const std::int64_t needed = failure.rank == 0 ? options.world : options.world - 1;
    const Time until = after(hearing_s);
    for (std::int64_t now = heard; now < needed && Clock::now() < until; now = store->add("heard", 0)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
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
  if (silence < (peer.seen_in_proc ? options.stopped_s : options.lost_s)) return;
  if (store->has(finished_key(peer.rank))) return;
  const std::lock_guard lock(mutex);
  post_claim({peer.rank, "no heartbeat for " + std::to_string(static_cast<int>(silence)) +
                             " s; stopped, or its node lost (" + describe(peer.process) + ")"});
}

void Heartbeat::State::watch() {
  for (;;) {
    wait_for_event();
    std::unique_lock lock(mutex);
    if (stop) return;
    take_signals();
    look_at_peers(lock);
    const auto failure = decide(lock);
    if (!failure || ended) continue;
    ended = true;
    lock.unlock();
    write_verdict(options.directory, *failure);
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
      if (peer.descriptor >= 0 && !peer.over) events.push_back({peer.descriptor, POLLIN, 0});
    }
  }
  poll(events.data(), events.size(), static_cast<int>(options.beat_s * 1000 / 2));
  std::uint64_t ignored = 0;
  if (events[0].revents && read(wake, &ignored, sizeof ignored) < 0) {
    // Nothing to drain: the poll woke for another reason.
  }
}

void Heartbeat::State::take_signals() {
  signalfd_siginfo signal{};
  while (signals >= 0 && read(signals, &signal, sizeof signal) == sizeof signal) {
    const std::string who = " (sent by process " + std::to_string(signal.ssi_pid) + ")";
    if (signal.ssi_signo == SIGINT) {
      post_claim({options.rank, "interrupted by SIGINT"});
    } else if (!suspicion) {
      suspicion = Suspicion{"ended by SIGTERM" + who, after(attached ? options.terminated_s : 0)};
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

// What ends the run, when it is known.
std::optional<Failure> Heartbeat::State::decide(std::unique_lock<std::mutex>& lock) {
  if (verdict) return verdict;
  if (suspicion && Clock::now() >= suspicion->until && !claim) post_claim({options.rank, suspicion->cause});
  if (!attached) return claim;
  const bool silent = seconds_since(answered) > options.lost_s;
  const bool own = claim && claim->rank == options.rank;
  if (lost || silent) {
    if (own && !suspicion) return claim;
    if (!hosts()) return store_lost_verdict(lock);
    return claim ? *claim : Failure{options.rank, "its own store failed: " + lost.value_or("no answer")};
  }
  if (claim && seconds_since(claimed) > claim_patience_s + (hosts() ? hearing_s : 0)) return claim;
  return std::nullopt;
}

Failure Heartbeat::State::store_lost_verdict(std::unique_lock<std::mutex>& lock) {
  const std::optional<Failure> claimed_failure = claim;
  std::optional<Peer> host;
  for (const Peer& peer : peers) {
    if (peer.rank == 0 && peer.known && peer.seen_in_proc) host = peer;
  }
  lock.unlock();
  std::optional<Failure> found;
  // A dying process closes its connections a moment before it shows as ended.
  for (const Time until = after(end_detail_s); !found && Clock::now() < until;) {
    found = read_verdict(options.directory);
    if (!found && options.rank0_hosts_store && host) {
      found = failure_of_ended(host->process, 0, options.directory, end_detail_s);
    }
    if (!found) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  lock.lock();
  if (found) return *found;
  if (claimed_failure && claimed_failure->rank == 0) return *claimed_failure;
  if (!options.rank0_hosts_store)
    return {-1, "it hosts the store, which is lost (" + lost.value_or("no answer") + ")"};
  return {0, "it hosts the store and ended without a report (killed or its node lost)"};
}

Heartbeat::Heartbeat(HeartbeatOptions options, std::function<void(const Failure&)> end)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.options = std::move(options);
  state.end = std::move(end);
  const int rank = state.options.rank, world = state.options.world;
  const int next = (rank + 1) % world;
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
  const std::lock_guard lock(state_->mutex);
  state_->store = std::move(store);
  state_->attached = true;
  state_->answered = Clock::now();
  state_->pulse_thread = std::thread([state = state_.get()] { state->pulse(); });
}

void Heartbeat::fail(const std::string& cause) {
  write_own_error(state_->options.directory, state_->options.rank, cause);
  const std::lock_guard lock(state_->mutex);
  state_->post_claim({state_->options.rank, cause});
}

void Heartbeat::suspect(const std::string& cause) {
  const std::lock_guard lock(state_->mutex);
  if (state_->suspicion) return;
  state_->suspicion = Suspicion{cause, after(state_->options.suspicion_s)};
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

}  // namespace slipway
