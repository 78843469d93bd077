// What Ctrl-C does to long work.
//
// CatchInterrupts: while one lives, SIGINT and SIGTERM end the work and not the process: whoever works asks asked() now and then.
// Guarded by tests/scenarios/command_line_test.cpp.
#pragma once

#include <chrono>
#include <csignal>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "scenarios/step/plan.h"

namespace slipway::scenarios {

class CatchInterrupts {
 public:
  CatchInterrupts();
  ~CatchInterrupts();  // the handlers that were there before come back
  CatchInterrupts(const CatchInterrupts&) = delete;
  CatchInterrupts& operator=(const CatchInterrupts&) = delete;
  static bool asked();

 private:
  struct sigaction old_int_, old_term_;
};

// While one lives, SIGINT and SIGTERM end the process at once, with a line on standard error and exit status 1: for
// work of which nothing is known before its end. A CatchInterrupts inside takes precedence.
class ExitOnInterrupt {
 public:
  ExitOnInterrupt();
  ~ExitOnInterrupt();
  ExitOnInterrupt(const ExitOnInterrupt&) = delete;
  ExitOnInterrupt& operator=(const ExitOnInterrupt&) = delete;

 private:
  struct sigaction old_int_, old_term_;
};

// A line on standard error for work that takes longer than two seconds: rewritten in place on a terminal,
// else a line every two seconds. Guarded by tests/scenarios/command_line_test.cpp.
//
//   planning x: simulating the fastest, 12 done, at most 12 left, 50 % after 4 s, about 4 s left
//   planning x: simulating the fastest, 12 done, at most 12 left, 50 % after 6 s, about 6 s left    nothing new, still at work

// Nobody else may write to `err` while it lives: a thread of its own says that the work goes on where no report comes.
class ProgressLine {
 public:
  // `what`: "simulating"; `terminal`: rewrite one line.
  ProgressLine(std::ostream& err, std::string what, bool terminal, double quiet_s = 2);
  ~ProgressLine();  // ends the rewritten line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  // `detail`: what is being done, in front of the share. With the time left, as the share has come so far.
  void report(double done_share, const std::string& detail = "");

 private:
  void show();  // mutex_ is held
  std::ostream& err_;
  std::string what_;
  bool terminal_ = false, shown_ = false;
  double quiet_s_ = 2;
  std::size_t width_ = 0;  // of the line before
  std::chrono::steady_clock::time_point began_, reported_;
  std::mutex mutex_;             // of all below and above
  std::optional<double> share_;  // as reported last
  std::string detail_;
  std::jthread thread_;  // asked to stop and joined before the rest goes
};

// "what: 4 s" every `pause` while it lives: for work that has no share of itself to report, only that it goes
// on. Told by a thread of its own; nobody else may write to `err` meanwhile.
class Ticking {
 public:
  Ticking(std::ostream& err, std::string what, std::chrono::milliseconds pause = std::chrono::seconds(2));

 private:
  std::jthread thread_;  // asked to stop and joined at the end
};

// plan_of, with a line every `pause` while it takes long.
Plan planned(Scenario scenario, std::ostream& err, const PlanOptions& options = {},
             std::chrono::milliseconds pause = std::chrono::seconds(2));

// Is this stream the process's standard error, and that a terminal?
bool is_terminal(const std::ostream& err);

// Graphs of millions of tasks grow by moving to ever larger places, and the system clears each page that it lends:
// a quarter of the time of making such a graph (GPT-3 175B on 1,024 ranks: 0.9 of 3.6 s). A process that keeps what it
// frees for what it needs next is lent a page once.

// From now on; where the C library knows no such thing, nothing.
void keep_freed_memory();
// What is kept now: other processes begin, which need memory of their own.
void give_back_freed_memory();

}  // namespace slipway::scenarios
