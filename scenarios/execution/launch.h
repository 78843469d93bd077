// Starts one process per rank, passes their output on, and ends all of them when one fails.
//
//   fork/exec ranks ──► poll their output ──► all ended well? ──► done
//                          │ first failure at t          t + grace_s       t + grace_s + kill_s
//                          └── survivors may end by themselves ── SIGTERM ──── SIGKILL ──► name the first
//
// The time before SIGTERM is for the survivors' own message: the ranks watch each other's heartbeat and
// say who failed and why. Every rank is a process group of its own (Ctrl-C reaches it through us) and dies
// with the launcher, whatever kills that.
// Guarded by tests/launch_test.cpp with a shell script as the rank program.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipway {

struct RankProcess {
  int rank = 0;
  std::vector<std::string> command;                // program and arguments
  std::map<std::string, std::string> environment;  // added to the launcher's own
  // Where the rank leaves the cause of its failure. When it could not (a signal), the launcher writes it
  // there, so that ranks which see no more than a broken connection can name it.
  std::string error_file;
  std::vector<int> cores = {};  // it may run on these only; empty: wherever the launcher may
};

struct LaunchOptions {
  double grace_s = 8;      // from the first failure to SIGTERM for those who still run
  double kill_s = 1;       // from there to SIGKILL
  double interrupt_s = 4;  // from SIGTERM to SIGKILL when the launcher itself is interrupted
  // One line of a rank's output, without the line end; is_error: from its standard error.
  std::function<void(int rank, std::string_view line, bool is_error)> line;
};

// How one rank ended. Exactly one of exit_code >= 0 and signal > 0.
struct RankEnd {
  int rank = 0;
  int exit_code = -1, signal = 0;
  bool stopped_by_launcher = false;  // by our SIGTERM or SIGKILL, so no cause of anything
  std::string message;               // content of error_file, if the rank left one
  bool failed() const { return exit_code != 0; }
};

struct LaunchResult {
  std::vector<RankEnd> ends;  // in the order in which the ranks ended
  std::optional<RankEnd> first_failure;
  bool interrupted = false;  // by SIGINT, SIGTERM or SIGHUP to the launcher
};

// Runs all to their ends. Throws std::runtime_error when a program cannot be started; ranks that were
// started before it are ended then.
LaunchResult launch(const std::vector<RankProcess>& ranks, const LaunchOptions& options);

// "rank 2 was killed by signal 9 (Killed)", "rank 0 ended with exit status 3: <message>".
std::string describe(const RankEnd& end);

}  // namespace slipway
