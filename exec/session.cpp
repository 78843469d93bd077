#include "exec/session.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>

#include "exec/transport.h"

namespace slipway {

struct Session::State {
  SessionOptions options;
  ProcessIdentity self = this_process();
  std::mutex mutex;  // of `flush`
  std::function<void()> flush;
  std::unique_ptr<Heartbeat> heartbeat;
  std::unique_ptr<StoreHost> host;
  std::unique_ptr<Store> store;
  std::vector<ProcessIdentity> processes;

  int rank() const { return options.environment.rank; }
  int world() const { return options.environment.world; }
  void end(const Failure& failure);
  void claim_seat();
  void join();
  void leave();
};

namespace {

constexpr double leave_s = 5;

[[noreturn]] void park() {
  for (;;) pause();
}

}  // namespace

// On the heartbeat's watch thread. Other threads may hang in an operation whose peer is gone, so nothing is
// joined or destroyed.
void Session::State::end(const Failure& failure) {
  const std::string line = line_of(rank(), failure) + "\n";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  const std::lock_guard lock(mutex);
  try {
    if (flush) flush();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: what it had recorded is lost: %s\n", rank(), error.what());
  }
  std::fflush(stdout);
  _exit(1);
}

void Session::State::claim_seat() {
  const RankEnvironment& at = options.environment;
  const std::string place = at.store_host + ":" + std::to_string(host->port());
  const std::string mine = to_text(self);
  const std::string world_text = std::to_string(world());
  const std::string ranks = store->claim("world", world_text);
  if (ranks != world_text) {
    throw std::runtime_error("the run at " + place + " has " + ranks + " ranks, this one " + world_text +
                             ": two runs share MASTER_PORT; set another free port for one of them");
  }
  const std::string seated = store->claim(process_key(rank()), mine);
  if (seated != mine) {
    throw std::runtime_error(describe(process_from_text(seated)) + " is rank " + std::to_string(rank()) +
                             " of the run at " + place +
                             " already: two runs share MASTER_PORT, or a rank was started twice");
  }
  const std::string identity = store->claim("bundle", options.identity);
  if (identity != options.identity) {
    throw std::runtime_error("its bundle (" + options.identity + ") is not the one of the other ranks (" +
                             identity + "); give every rank the same file");
  }
}

std::vector<ProcessIdentity> wait_for_processes(Store& store, int world, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr double shortest_s = 0.01;  // zero means "for ever" to c10d's store
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  std::vector<ProcessIdentity> processes;
  for (int other = 0; other < world; ++other) {
    const double left = std::chrono::duration<double>(until - Clock::now()).count();
    try {
      const double wait_s = store.has(process_key(other)) ? seconds : std::max(left, shortest_s);
      processes.push_back(process_from_text(store.get(process_key(other), wait_s)));
    } catch (const StoreLost&) {
      throw;
    } catch (const std::runtime_error&) {
      throw std::runtime_error("rank " + std::to_string(other) + " did not join the run within " +
                               std::to_string(static_cast<int>(seconds)) +
                               " s; check that it was started, or give --connect-timeout more");
    }
  }
  return processes;
}

void Session::State::join() {
  host = std::make_unique<StoreHost>(options.environment, options.connect_seconds);
  store = host->connect();
  claim_seat();
  heartbeat->attach(host->connect());
  processes = wait_for_processes(*store, world(), options.connect_seconds);
  store_barrier(*store, "joined", world(), options.connect_seconds);
}

void Session::State::leave() {
  store->set(finished_key(rank()), "1");
  store_barrier(*store, "finished", world(), while_alive_s);
  heartbeat->finish();
  // From here on nothing is watched; the results are written. Rank 0 hosts the store and goes last.
  const bool hosts = rank() == 0 && !options.environment.agent_store;
  try {
    if (store->add("left", 1) == world()) store->set("left/all", "1");
    if (hosts) store->get("left/all", leave_s);
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "rank %d: the run is complete, but not every rank took leave: %s\n", rank(),
                 error.what());
  }
}

Session::Session(SessionOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  const RankEnvironment& at = state_->options.environment;
  std::filesystem::create_directories(state_->options.directory);
  forget_failures(state_->options.directory, at.rank);
  signal(SIGPIPE, SIG_IGN);  // a broken connection is an error of the call that meets it
  signal(SIGXFSZ, SIG_IGN);  // so is a file that may grow no more
  HeartbeatOptions beat;
  beat.rank = at.rank;
  beat.world = at.world;
  beat.rank0_hosts_store = !at.agent_store;
  beat.directory = state_->options.directory;
  state_->heartbeat =
      std::make_unique<Heartbeat>(beat, [state = state_.get()](const Failure& f) { state->end(f); });
}

Session::~Session() = default;

void Session::run(const std::function<void(Session&)>& work) {
  try {
    state_->join();
    work(*this);
    state_->leave();
  } catch (...) {
    fail_with_current_exception("");
  }
}

void Session::on_failure(std::function<void()> flush) {
  const std::lock_guard lock(state_->mutex);
  state_->flush = std::move(flush);
}

void Session::fail_with_current_exception(const std::string& where) {
  const std::string at = where.empty() ? "" : where + ": ";
  try {
    throw;
  } catch (const TransportError& error) {
    state_->heartbeat->suspect(at + error.what());
  } catch (const StoreLost& error) {
    state_->heartbeat->suspect(at + "the store does not answer: " + error.what());
  } catch (const std::exception& error) {
    state_->heartbeat->fail(at + error.what());
  } catch (...) {
    state_->heartbeat->fail(at + "an exception of unknown type");
  }
  park();
}

const RankEnvironment& Session::environment() const { return state_->options.environment; }
Store& Session::store() { return *state_->store; }
const StoreHost& Session::host() const { return *state_->host; }
const std::vector<ProcessIdentity>& Session::processes() const { return state_->processes; }

}  // namespace slipway
