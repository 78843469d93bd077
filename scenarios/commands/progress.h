// A line on standard error for work that takes longer than two seconds: rewritten in place on a terminal,
// else a line every two seconds. Guarded by tests/command_line_test.cpp.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>
#include <thread>

#include "scenarios/plan.h"

namespace slipway {

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
  std::ostream& err_;
  std::string what_;
  bool terminal_ = false, shown_ = false;
  double quiet_s_ = 2;
  std::size_t width_ = 0;  // of the line before
  std::chrono::steady_clock::time_point began_, reported_;
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

}  // namespace slipway
