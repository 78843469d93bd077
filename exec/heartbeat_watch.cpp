#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "exec/heartbeat_state.h"

namespace slipway {

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
    // This process itself was stopped and goes on: the silence that it slept through is nobody's.
    if (seconds_since(before) > options.lost_s / 2) answered = Clock::now();
    take_signals();
    look_at_peers(lock);
    const auto failure = decide(lock);
    if (!failure || ended) continue;
    ended = true;
    lock.unlock();
    write_in_time([directory = options.directory, told = *failure] { write_verdict(directory, told); });
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
      // The descriptor of an ended process stays readable: no more of it once nobody looks at it.
      const bool wanted = peer.descriptor >= 0 && !peer.over && !claim && !verdict;
      if (wanted) events.push_back({peer.descriptor, POLLIN, 0});
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

// A host that is seen alive may be stopped for a while, as any other rank on this host.
bool Heartbeat::State::store_is_silent() const {
  const double silence = seconds_since(answered);
  if (silence <= options.lost_s) return false;
  const Peer* host = visible_host();
  return !host || silence > options.stopped_s || cause_of_end(host->process);
}

// What ends the run, when it is known.
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
  if (claimed_failure && claimed_failure->rank >= 0 && here().process_of(claimed_failure->rank) == 0) return *claimed_failure;
  if (here().agent_store)
    return {-1, "it hosts the store, which is lost (" + lost.value_or("no answer") + ")"};
  if (host) {
    const std::string what =
        lost ? "it lives, but its store is lost: " + *lost : "it lives, but does not answer (stopped?)";
    return {0, what + " (" + describe(*host) + ")"};
  }
  if (!lost) return {0, "it hosts the store and does not answer (stopped, or its node lost)"};
  return {0, "it hosts the store and ended without a report (killed or its node lost)"};
}

}  // namespace slipway
