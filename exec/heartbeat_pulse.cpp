#include "exec/heartbeat_state.h"

namespace slipway {

using namespace beating;

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

}  // namespace slipway
