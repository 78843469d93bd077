#include "exec/rank/session.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "exec/process/store.h"
#include "exec/process/within.h"
#include "exec/transport/transport.h"

namespace slipway::exec {

struct Session::State {
  SessionOptions options;
  ProcessIdentity self = this_process();
  std::mutex mutex;                            // of `flush`
  std::map<int, std::function<void()>> flush;  // by rank
  std::unique_ptr<Heartbeat> heartbeat;
  std::unique_ptr<StoreHost> host;
  std::unique_ptr<Store> store;
  std::vector<ProcessIdentity> processes;  // by rank
  LocalGroups local_groups;
  Turns turns;

  const RankEnvironment& here() const { return options.environment; }
  int rank() const { return here().rank; }  // the first rank of this process
  std::string world_text() const;
  void end(const Failure& failure);
  void write_what_is_left();
  void claim_seat();
  void sit_down();
  void refuse_hosts_without_token() const;
  void compare_bundles();
  void join();
  void leave();
  [[noreturn]] void fail(int a_rank, const std::string& where);
};

namespace {

constexpr double leave_s = 4;
constexpr double flush_s = 60;  // for the records of a failed run; a lost file server would hold them for ever

[[noreturn]] void park() {
  for (;;) pause();
}

}  // namespace

// Runs on the heartbeat's watch thread. Other threads may hang in an operation whose peer is gone, so nothing is joined
// or destroyed.
void Session::State::end(const Failure& failure) {
  const std::string line = line_of(here().hosts(failure.rank) ? failure.rank : rank(), failure) + "\n";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  write_what_is_left();
  std::fflush(stdout);
  _exit(1);
}

void Session::State::write_what_is_left() {
  const auto lost = [](int whose, const char* why) {
    std::fprintf(stderr, "rank %d: what it had recorded is lost: %s\n", whose, why);
  };
  try {
    const auto written = within(flush_s, [this, lost] {
      const std::lock_guard lock(mutex);
      for (const auto& [whose, write] : flush) {
        try {
          if (write) write();
        } catch (const std::exception& error) {
          lost(whose, error.what());
        }
      }
      return true;
    });
    if (!written) lost(rank(), ("it could not be written to " + options.directory + " in time").c_str());
  } catch (const std::exception& error) {  // no thread for it
    lost(rank(), error.what());
  }
}

std::string Session::State::world_text() const {
  return std::to_string(here().world) + " ranks" +
         (here().hosted > 1 ? " (" + std::to_string(here().hosted) + " in each process)" : "");
}

void Session::State::claim_seat() {
  const std::string place = here().store_host + ":" + std::to_string(host->port());
  const std::string mine = to_text(self);
  const std::string ranks = store->claim("world", world_text());
  if (ranks != world_text()) {
    throw std::runtime_error("the run at " + place + " has " + ranks + ", this one " + world_text() +
                             ": two runs share MASTER_PORT; set another free port for one of them");
  }
  const std::string seated = store->claim(process_key(rank()), mine);
  if (seated != mine) {
    throw std::runtime_error(describe(process_from_text(seated)) + " is rank " + std::to_string(rank()) +
                             " of the run at " + place +
                             " already: two runs share MASTER_PORT, or a rank was started twice");
  }
}

// Nothing watches the store's host before the heartbeat is attached. A host that is stopped just then never answers.
void Session::State::sit_down() {
  const auto seated = within(options.connect_seconds, [this] {
    claim_seat();
    heartbeat->attach(host->connect());
    return true;
  });
  if (seated) return;
  throw std::runtime_error("the store of this run at " + here().store_host + ":" + std::to_string(host->port()) +
                           " was reached, but has not answered for " +
                           std::to_string(static_cast<int>(options.connect_seconds)) +
                           " s: its host is stopped or lost; check rank 0");
}

// On one machine the store is reached from there alone. Between machines only a token distinguishes the run's ranks
// from other clients.
void Session::State::refuse_hosts_without_token() const {
  const auto elsewhere = std::ranges::find_if_not(
      processes, [&](const ProcessIdentity& process) { return same_host(process, processes.front()); });
  if (!here().token.empty() || elsewhere == processes.end()) return;
  throw std::runtime_error("ranks 0 and " + std::to_string(elsewhere - processes.begin()) +
                           " are on different hosts (" + processes.front().host + " and " + elsewhere->host +
                           "), and the run has no token that tells its ranks from others; draw one (openssl rand -hex "
                           "16) and set SLIPWAY_TOKEN to it for every rank");
}

void Session::State::compare_bundles() {
  const std::string identity = store->claim("bundle", options.identity);
  if (identity != options.identity) {
    throw std::runtime_error("its bundle (" + options.identity + ") is not the one of the other ranks (" + identity +
                             "); give every rank the same file");
  }
}

std::vector<ProcessIdentity> wait_for_processes(Store& store, int world, double seconds, int hosted) {
  using Clock = std::chrono::steady_clock;
  constexpr double shortest_s = 0.01;  // zero means "for ever" to c10d's store
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  std::vector<ProcessIdentity> processes;
  for (int other = 0; other < world; other += hosted) {
    const double left = std::chrono::duration<double>(until - Clock::now()).count();
    try {
      const double wait_s = store.has(process_key(other)) ? seconds : std::max(left, shortest_s);
      const ProcessIdentity process = process_from_text(store.get(process_key(other), wait_s));
      processes.insert(processes.end(), static_cast<std::size_t>(hosted), process);
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
  sit_down();
  processes = wait_for_processes(*store, here().world, options.connect_seconds, here().hosted);
  store_barrier(*store, "joined", here().processes(), options.connect_seconds);
  refuse_hosts_without_token();
  compare_bundles();  // when every rank can get the error, and before any rank changes an earlier run's files
  store_barrier(*store, "agreed", here().processes(), options.connect_seconds);
}

void Session::State::leave() {
  store->set(finished_key(rank()), "1");
  store_barrier(*store, "finished", here().processes(), while_alive_s);
  // From here on nothing is watched; the results are written. Rank 0 hosts the store and leaves last.
  std::optional<std::string> why_not;
  try {
    why_not = within(2 * leave_s, [this]() -> std::string {
      try {
        heartbeat->finish();
        if (store->add("left", 1) == here().processes()) store->set("left/all", "1");
        if (here().hosts_store()) store->get("left/all", leave_s);
        return "";
      } catch (const std::runtime_error& error) {
        return error.what();
      }
    });
  } catch (const std::exception& error) {  // without a thread no failure would be reported any more
    why_not = error.what();
  }
  if (why_not && why_not->empty()) return;
  std::fprintf(stderr, "rank %d: the run is complete, but not every rank confirmed its end: %s\n", rank(),
               why_not ? why_not->c_str() : "the store does not answer");
  std::fflush(stdout);
  if (!why_not) _exit(0);  // a thread still waits for the store
}

Session::Session(SessionOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  const RankEnvironment& at = state_->options.environment;
  std::filesystem::create_directories(state_->options.directory);
  for (int rank = at.rank; rank < at.rank + at.hosted; ++rank) forget_failures(state_->options.directory, rank);
  signal(SIGPIPE, SIG_IGN);  // a broken connection is an error of the call that meets it
  signal(SIGXFSZ, SIG_IGN);  // so is a file that may not grow any more
  HeartbeatOptions beat;
  beat.environment = at;
  beat.directory = state_->options.directory;
  beat.stopped_s = state_->options.stopped_s;
  state_->heartbeat = std::make_unique<Heartbeat>(beat, [state = state_.get()](const Failure& f) { state->end(f); });
}

Session::~Session() = default;

void Session::run(const std::function<void(Seat&)>& work) {
  const auto sit = [&](int rank) {
    try {
      Seat seat(*this, rank);
      work(seat);
    } catch (...) {
      state_->fail(rank, "");
    }
  };
  try {
    state_->join();
    std::vector<std::thread> threads;
    try {
      for (int rank = state_->rank() + 1; state_->here().hosts(rank); ++rank) threads.emplace_back(sit, rank);
    } catch (...) {  // in here, because the running threads cannot be left
      state_->fail(state_->rank(), "cannot start a thread for each of its ranks");
    }
    sit(state_->rank());  // it reports its failure itself: here the other threads could not be left
    for (std::thread& thread : threads) thread.join();
    state_->leave();
  } catch (...) {
    state_->fail(state_->rank(), "");
  }
}

void Session::State::fail(int a_rank, const std::string& where) {
  const std::string at = where.empty() ? "" : where + ": ";
  try {
    throw;
  } catch (const TransportError& error) {
    heartbeat->suspect(a_rank, at + error.what());
  } catch (const StoreLost& error) {
    heartbeat->suspect(a_rank, at + "the store does not answer: " + error.what());
  } catch (const std::exception& error) {
    heartbeat->fail(a_rank, at + error.what());
  } catch (...) {
    heartbeat->fail(a_rank, at + "an exception of unknown type");
  }
  park();
}

Seat::Seat(Session& session, int rank)
    : session_(session),
      environment_(session.state_->here()),
      own_store_(rank == session.state_->rank() ? nullptr : session.state_->host->connect()),
      store_(own_store_ ? *own_store_ : *session.state_->store) {
  environment_.rank = rank;
}

void Seat::on_failure(std::function<void()> flush) {
  const std::lock_guard lock(session_.state_->mutex);
  session_.state_->flush[environment_.rank] = std::move(flush);
}

void Seat::fail_with_current_exception(const std::string& where) { session_.state_->fail(environment_.rank, where); }
const StoreHost& Seat::host() const { return *session_.state_->host; }
const std::vector<ProcessIdentity>& Seat::processes() const { return session_.state_->processes; }
LocalGroups& Seat::local_groups() { return session_.state_->local_groups; }
Turns& Seat::turns() { return session_.state_->turns; }

}  // namespace slipway::exec
