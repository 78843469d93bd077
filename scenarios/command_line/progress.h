// Ctrl-C during long work.
//
// While a CatchInterrupts lives, SIGINT and SIGTERM end the work, not the process. The work calls asked() now and then.
// Guarded by tests/scenarios/command_line_test.cpp.
#pragma once

#include <chrono>
#include <csignal>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "scenarios/step/prepared_step.h"

namespace slipway::scenarios {

class CatchInterrupts {
 public:
  CatchInterrupts();
  ~CatchInterrupts();  // restores the previous handlers
  CatchInterrupts(const CatchInterrupts&) = delete;
  CatchInterrupts& operator=(const CatchInterrupts&) = delete;
  static bool asked();

 private:
  struct sigaction old_int_, old_term_;
};

// While one lives, SIGINT and SIGTERM end the process at once, with a line on standard error and exit status 1. For
// work without results before its end. A CatchInterrupts inside takes precedence.
class ExitOnInterrupt {
 public:
  ExitOnInterrupt();
  ~ExitOnInterrupt();
  ExitOnInterrupt(const ExitOnInterrupt&) = delete;
  ExitOnInterrupt& operator=(const ExitOnInterrupt&) = delete;

 private:
  struct sigaction old_int_, old_term_;
};

// A line on standard error for work that takes longer than two seconds. A terminal's line is rewritten in place;
// elsewhere a new line appears every two seconds. Guarded by tests/scenarios/command_line_test.cpp.
//
//   planning x: simulating the fastest, 12 done, at most 12 left, 50 % after 4 s, about 4 s left
//   planning x: simulating the fastest, 12 done, at most 12 left, 50 % after 6 s, about 6 s left

// A thread of its own repeats the line where no report comes. So nobody else may write to `err` while it lives.
class ProgressLine {
 public:
  // `what`: "simulating". `terminal`: rewrite one line.
  ProgressLine(std::ostream& err, std::string what, bool terminal, double quiet_s = 2);
  ~ProgressLine();  // ends the rewritten line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  // `detail`: the current work, printed before the share. The line also estimates the time left from the share so far.
  void report(double done_share, const std::string& detail = "");
  // The whole work is so many of these: then the line has their rate, "12 runs/s".
  void counts(double all, std::string units);

 private:
  void show();  // mutex_ is held
  std::ostream& err_;
  std::string what_;
  bool terminal_ = false, shown_ = false;
  double quiet_s_ = 2;
  std::size_t width_ = 0;  // the previous line's
  std::chrono::steady_clock::time_point began_, reported_;
  std::mutex mutex_;             // guards all members
  std::optional<double> share_;  // from the last report
  double all_ = 0;               // 0: not counted
  std::string units_;
  std::string detail_;
  std::jthread thread_;  // stops and joins before the other members go
};

// Prints "what: 4 s" every `pause` while it lives, for work that cannot report its share. A thread of its own prints;
// nobody else may write to `err` meanwhile.
class Ticking {
 public:
  Ticking(std::ostream& err, std::string what, std::chrono::milliseconds pause = std::chrono::seconds(2));

 private:
  std::jthread thread_;  // stops and joins at the end
};

// prepared_step; prints a line every `pause` while it takes long.
PreparedStep prepared_showing(Scenario scenario, std::ostream& err, const PrepareOptions& options = {},
                              std::chrono::milliseconds pause = std::chrono::seconds(2));

// Is this stream the process's standard error, and a terminal?
bool is_terminal(const std::ostream& err);

// Lets the process keep freed memory, so that the system clears a lent page only once. Graphs of millions of tasks
// move to ever larger places as they grow. Clearing was a quarter of the time of making such a graph
// (GPT-3 175B on 1,024 ranks: 0.9 of 3.6 s).

// Holds from now on. Does nothing where the C library has no such setting.
void keep_freed_memory();
// Returns the kept memory to the system, before other processes start that need it.
void give_back_freed_memory();

}  // namespace slipway::scenarios
