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
      suspicion = Suspicion{"ended by SIGTERM" + who, after(attached ? options.terminated_s : 0), true};
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

}  // namespace slipway
