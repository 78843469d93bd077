#include "exec/heartbeat.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "exec/heartbeat_state.h"
#include "exec/within.h"

namespace slipway {

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
  // Before the claim, for whoever it ends may collect it; but a lost file server must not keep the cause from the others.
  write_in_time([directory = state_->options.directory, rank, cause] { write_own_error(directory, rank, cause); });
  const std::lock_guard lock(state_->mutex);
  state_->post_claim({rank, cause});
}

void Heartbeat::suspect(int rank, const std::string& cause) {
  const std::lock_guard lock(state_->mutex);
  if (state_->suspicion) return;
  state_->suspicion = Suspicion{rank, cause, after(state_->options.suspicion_s), false};
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

}  // namespace slipway
