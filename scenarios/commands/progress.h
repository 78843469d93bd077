// A line on standard error for work that takes longer than two seconds: rewritten in place on a terminal,
// else a line every two seconds. Guarded by tests/command_line_test.cpp.
//
//   planning x: simulating the fastest, 12 done, at most 12 left, 50 % after 4 s, about 4 s left
//   planning x: simulating the fastest, 12 done, at most 12 left, 50 % after 6 s, about 6 s left    nothing new, still at work
#pragma once

#include <chrono>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "scenarios/plan.h"

namespace slipway {

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
  std::mutex mutex_;  // of all below and above
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

}  // namespace slipway
