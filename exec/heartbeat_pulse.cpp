#include "exec/heartbeat_state.h"

namespace slipway {

using namespace beating;

void Heartbeat::State::pulse() {
  try {
    for (std::int64_t count = 1;; ++count) {
      if (beat(count)) return;
      std::unique_lock lock(mutex);
      answered = Clock::now();
      const double period = suspicion ? alert_s : options.beat_s;
      poke.wait_for(lock, std::chrono::duration<double>(period),
                    [this] { return stop || claim || (suspicion && !termination_told); });
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

// What this rank wants to be the verdict. A peer that ended because it had finished is no failure.
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

// SIGTERM to all ranks alike is somebody who stops the run; nobody has failed and there is nothing to wait
// for.
void Heartbeat::State::count_termination() {
  std::string cause;
  {
    const std::lock_guard lock(mutex);
    if (!suspicion || !suspicion->terminated) {
      termination_told = suspicion.has_value();
      return;
    }
    cause = suspicion->cause;
  }
  const std::int64_t told = store->add("terminated", termination_told ? 0 : 1);
  termination_told = true;
  if (told < here().processes() || store->has("failed")) return;
  const std::lock_guard lock(mutex);
  post_claim({here().rank, cause});
}

// The store's host must not take the store away before the others have read the verdict.
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
  const char* why = peer.seen_in_proc ? " s; it lives, but does not answer (stopped?) ("
                                      : " s; stopped, or its node lost (";
  post_claim({peer.rank, "no heartbeat for " + std::to_string(static_cast<int>(silence)) + why +
                             describe(peer.process) + ")"});
}

}  // namespace slipway
