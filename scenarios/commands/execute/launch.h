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
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

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
