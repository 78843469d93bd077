// One process's life in a run: join the others, work, leave together, or end with the first cause of a failure.
//
//   join    claim a seat in the store, start the heartbeat, wait for all ranks
//   work    run_bundle (exec/rank/run_bundle.cpp) or measure (exec/rank/measure.h), for each rank of this process: one
//           mostly, or several that share its device, each on its thread
//   leave   all ranks have finished → stop the heartbeat → rank 0, the store's host, goes last
// Guarded by tests/exec/execute_run_test.cpp, execute_failure_test.cpp and execute_shared_process_test.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/lanes/turns.h"
#include "exec/process/heartbeat.h"
#include "exec/process/process.h"
#include "exec/transport/local_transport.h"

namespace slipway::exec {

struct SessionOptions {
  RankEnvironment environment;  // of the process: its first rank, and how many it hosts
  std::string directory;        // for failure files
  std::string identity;         // must be equal on all ranks: the bundle's checksum
  double connect_seconds = 60;
  double stopped_s = HeartbeatOptions{}.stopped_s;  // Run::heartbeat_s
};

class Session;

// The session for the work of one of its ranks, on that rank's thread.
class Seat {
 public:
  Seat(Session& session, int rank);

  const RankEnvironment& environment() const { return environment_; }  // of this rank
  Store& store() { return store_; }
  const StoreHost& host() const;
  const std::vector<ProcessIdentity>& processes() const;  // by rank
  LocalGroups& local_groups();                            // of this process
  Turns& turns();                                         // on the device of this process

  // Sets what is still written when the run fails. Set it to an empty function when it must not be called any more.
  void on_failure(std::function<void()> flush);
  // Reports the exception in flight and never returns: the heartbeat ends the process. For worker threads too.
  [[noreturn]] void fail_with_current_exception(const std::string& where);

 private:
  Session& session_;
  RankEnvironment environment_;
  std::unique_ptr<Store> own_store_;  // null for the first rank, on whose thread the session works with its own
  Store& store_;
};

class Session {
 public:
  // Installs the signal handling; construct it before any other thread exists.
  explicit Session(SessionOptions options);
  ~Session();

  // Joins, calls `work` for every rank of this process, leaves. On a failure, here or on another rank, it prints one
  // line with the failed rank and the cause. Then it calls the on_failure functions and exits with status 1.
  void run(const std::function<void(Seat&)>& work);

 private:
  friend class Seat;
  struct State;
  std::unique_ptr<State> state_;
};

// The processes by rank; `hosted` ranks share each. Throws std::runtime_error with the first rank that has not joined
// after `seconds`, however many joined meanwhile. Guarded by tests/exec/session_test.cpp.
std::vector<ProcessIdentity> wait_for_processes(Store& store, int world, double seconds, int hosted = 1);

}  // namespace slipway::exec
