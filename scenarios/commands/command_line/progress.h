// A line on standard error for work that takes longer than two seconds. A terminal's line is rewritten in place;
// elsewhere a new line appears every two seconds. Guarded by tests/scenarios/command_line_test.cpp.
//
//   planning x: simulating the fastest, 12 done, at most 12 left, 50 % after 4 s, about 4 s left
//   planning x: simulating the fastest, 12 done, at most 12 left, 50 % after 6 s, about 6 s left
//   preparing x, 5.1 M tasks: 4 s of about 10 s                         (work that cannot report its share)
//   fitting: 2 s                                                        (nor knows how long it takes)
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "models/namespaces.h"

namespace slipway::scenarios {

// What a progress line says.
struct ProgressState {
  std::string what, detail;  // "planning x", "simulating the fastest, 12 done"
  std::optional<double> share;
  double past_s = 0;
};

// The rate and form of progress lines. Tests set it, the time included.
struct Pace {
  bool terminal = false;  // one line is rewritten in place
  int columns = 0;        // of the terminal: a longer line is cut, as it could not be rewritten; 0: no limit
  double quiet_s = 2;     // before the first line, and between two
  // Seconds from any moment on. Unset: the steady clock, and a thread repeats the line where no report comes.
  std::function<double()> clock = {};
  std::function<void(const ProgressState&)> show = {};  // instead of a line; called by several threads, one at a time
};
// Of standard error, or of a PacedStream.
Pace pace_of(const std::ostream& err);

// The errors of a command whose caller shows its progress.
class PacedStream : public std::ostringstream {
 public:
  explicit PacedStream(Pace pace) : pace_(std::move(pace)) {}
  const Pace& pace() const { return pace_; }

 private:
  Pace pace_;
};

// Its thread writes to `err`, so no other code may write there while it lives.
class ProgressLine {
 public:
  ProgressLine(std::ostream& err, std::string what) : ProgressLine(err, std::move(what), pace_of(err)) {}
  ProgressLine(std::ostream& err, std::string what, Pace pace);  // `what`: "simulating"
  ~ProgressLine();                                               // ends the rewritten line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  // `detail`: the current work, printed before the share. The line also estimates the time left from the share so far.
  void report(double done_share, const std::string& detail = "");
  // Work that cannot report its share, and about how long it takes: the line says so beside the time passed.
  void expects(double seconds, std::string what);
  // The whole work is so many of these: then the line has their rate, "12 runs/s".
  void counts(double all, std::string units);

 private:
  double now_s() const;
  void show();  // mutex_ is held
  std::ostream& err_;
  std::string what_;
  Pace pace_;
  bool shown_ = false;
  std::size_t width_ = 0;             // the previous line's
  double began_s_ = 0, shown_s_ = 0;  // shown_s_: when the last line was printed, at first the beginning
  std::mutex mutex_;                  // guards all members
  std::optional<double> share_;       // from the last report
  double all_ = 0;                    // 0: not counted
  std::string units_;
  double expected_s_ = 0;  // 0: unknown
  std::string detail_;
  std::jthread thread_;  // stops and joins before the other members go
};

}  // namespace slipway::scenarios
