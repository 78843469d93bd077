// Finds who failed first. When one rank dies, all others fail a moment later (their connections break), and a user must
// not see one of those echoes. Each process, which is mostly one rank, has two threads for this:
//
//   pulse   owns a store connection. Every 0.5 s it counts up "beat/<rank>", looks for "failed" and watches the next
//           rank's count (a ring: every dead block of ranks has a living rank in front of it)
//   watch   never touches the store. It listens to signals and to the ends of the next rank's and rank 0's process
//           (same host: at once and with the signal's number), and decides
//
// A rank that fails by itself claims "failed" (first claim wins). A rank whose connection broke only suspects: it waits
// for the verdict and claims its own error only when none comes. When the store is lost, the verdict names its host.
// SIGTERM (torchrun stopping the survivors) is a suspicion too.
// Guarded by tests/exec/heartbeat_test.cpp and, with real processes, tests/exec/execute_failure_test.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "exec/process/failure.h"
#include "exec/process/store.h"

namespace slipway::exec {

struct HeartbeatOptions {
  RankEnvironment environment;  // of the process, represented by its first rank
  std::string directory;        // for the files of exec/process/failure.h
  bool signals = true;          // take SIGTERM and SIGINT (the rank program does)
  double beat_s = 0.5;
  double lost_s = 6;      // silence of another host, or of the store
  double stopped_s = 10;  // silence of a process of this host that is stopped (SIGSTOP)
  double silent_s = 30;   // silence of one that is not: a machine without time or memory for it
  // Seconds that an echo waits for the first cause after SIGTERM. The sender will use SIGKILL soon.
  double terminated_s = 3;
  // The same otherwise: until the silence of a rank that is lost now is noticed. Its last beat may be seen one beat late,
  // and its silence one more.
  double suspicion_s() const { return lost_s + 2.5 * beat_s; }
};

class Heartbeat {
 public:
  // The watch thread calls `end` once, with the failure that ends the run; the rank program's prints, flushes and
  // exits. Construct it before any other thread exists: it blocks the signals.
  Heartbeat(HeartbeatOptions options, std::function<void(const Failure&)> end);
  ~Heartbeat();  // as finish()

  // Starts to beat. Ranks must have set "process/<rank>" (to_text(this_process())).
  void attach(std::unique_ptr<Store> store);
  // This rank of the process failed, with this cause. Returns at once; `end` follows.
  void fail(int rank, const std::string& cause);
  // Something broke that may be the echo of another rank's failure. Returns at once; `end` follows.
  void suspect(int rank, const std::string& cause);
  // The run is complete: stops both threads.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Key that a rank sets when it has run its whole program; then its end is no failure.
std::string finished_key(int rank);
std::string process_key(int rank);

}  // namespace slipway::exec
