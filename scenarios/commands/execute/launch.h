// One child process with its output in pipes: the launcher's fork and exec.
// Guarded by tests/scenarios/launch_test.cpp.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

// The reading end of a pipe, cut into lines. -1: closed.
struct LinePipe {
  int descriptor = -1;
  std::string partial;  // the line so far
  // Takes the available bytes without blocking; closes at the end of the stream. `line` gets whole lines, and at the
  // end also an unfinished one.
  void drain(const std::function<void(std::string_view)>& line);
  void close(const std::function<void(std::string_view)>& line);
};

struct ChildProcess {
  pid_t pid = -1;
  LinePipe output, errors;
};

// Starts a program (path, no search) in its own process group, bound to `cores` (empty: not bound). It gets SIGKILL
// when this process dies. Throws std::runtime_error with the program and the reason when it cannot run.
ChildProcess start_child(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                         const std::vector<int>& cores = {});

// Signals the whole group of the child. Harmless when it has ended.
void signal_child(const ChildProcess& child, int signal);

// The cores of a rank on this machine: its own, when there are enough.
//
//   4 cores, 2 ranks:  rank 0 → cores 0 1     rank 1 → cores 2 3     4 cores, 5 ranks: no binding
//
// A rank is several threads that take turns: a compute lane, communication lanes, the transport's own thread.
// Unbound, a thread that wakes up often lands on another rank's core. It stops that rank's compute, and the whole group
// waits for it.
// Guarded by tests/scenarios/launch_test.cpp.

// The cores that this process may use, in ascending order.
std::vector<int> usable_cores();

// The rank's share of `usable`: equal, consecutive, disjoint between ranks. Empty (no binding) with more ranks than
// cores.
std::vector<int> cores_of_rank(const std::vector<int>& usable, int rank, int ranks);

// A port for the store of a run that starts on this machine.
//
//   1024 ········ 10000 ─── chosen from ─── 32767 │ 32768 ── the kernel gives these to anybody ── 60999
//
// Seconds pass between the choice and rank 0's listening (LibTorch loads). The kernel may meanwhile give a port of its
// own range to a connection or to a Gloo listener. Worse, a rank that knocks there before rank 0 listens may get that
// port for its own end and connect to itself. So the port lies below that range.
// Guarded by tests/scenarios/launch_test.cpp.

// A free port of 127.0.0.1. Throws std::runtime_error when there is none.
int free_port();

// Starts one process per rank, passes their output on, and ends all of them when one fails.
//
//   fork/exec ranks ──► poll their output ──► all ended well? ──► done
//                          │ first failure at t          t + grace_s       t + grace_s + kill_s
//                          └── survivors may end by themselves ── SIGTERM ──── SIGKILL ──► name the first
//
// The survivors first get time for their own message: they watch each other's heartbeat and report who failed and why.
// Every rank is a separate process group, so Ctrl-C reaches it through the launcher. It dies with the launcher,
// whatever kills that.
// Guarded by tests/scenarios/launch_test.cpp with a shell script as the rank program.

struct RankProcess {
  int rank = 0;
  std::vector<std::string> command;                // program and arguments
  std::map<std::string, std::string> environment;  // added to the launcher's own
  // The file for the cause of the rank's failure. When the rank could not write it (a signal), the launcher does, so
  // that ranks that only see a broken connection can name it.
  std::string error_file;
  std::vector<int> cores = {};  // the rank runs only on these; empty: on the launcher's
};

struct LaunchOptions {
  double grace_s = 8;      // from the first failure to SIGTERM for the ranks that still run
  double kill_s = 1;       // from there to SIGKILL
  double stopped_s = 10;   // that a rank may be stopped (SIGSTOP) before that is its failure
  double interrupt_s = 4;  // from SIGTERM to SIGKILL when the launcher itself is interrupted
  // Gets one line of a rank's output without the line end. is_error: from its standard error.
  std::function<void(int rank, std::string_view line, bool is_error)> line;
};

// The end of one rank, or, as the cause of a failure, its stop. Exactly one of exit_code >= 0 and signal > 0.
struct RankEnd {
  int rank = 0;
  int exit_code = -1, signal = 0;
  bool stopped_by_launcher = false;  // by our SIGTERM or SIGKILL, so not a cause
  std::string message = {};          // content of error_file, if the rank left one
  bool stopped = false;              // by `signal`, for longer than LaunchOptions::stopped_s
  bool failed() const { return exit_code != 0; }
};

struct LaunchResult {
  std::vector<RankEnd> ends;  // in the order in which the ranks ended
  std::optional<RankEnd> first_failure;
  bool interrupted = false;  // by SIGINT, SIGTERM or SIGHUP to the launcher
};

// Runs all ranks to their ends. Throws std::runtime_error when a program cannot be started, and ends the ranks that
// were started before it.
LaunchResult launch(const std::vector<RankProcess>& ranks, const LaunchOptions& options);

// "rank 2 was killed by signal 9 (Killed)", "rank 0 ended with exit status 3: <message>".
std::string describe(const RankEnd& end);

}  // namespace slipway::scenarios
