#include "scenarios/commands/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

namespace slipway {

bool is_terminal(const std::ostream& err) { return &err == &std::cerr && ::isatty(STDERR_FILENO); }

Progress::Progress(std::ostream& err, std::string what, bool terminal, double quiet_s)
    : err_(err), what_(std::move(what)), terminal_(terminal), quiet_s_(quiet_s) {
  began_ = reported_ = std::chrono::steady_clock::now();
}

Progress::~Progress() {
  if (shown_ && terminal_) err_ << '\n';
}

void Progress::report(double done_share) {
  const auto now = std::chrono::steady_clock::now();
  const auto seconds = [&](auto since) { return std::chrono::duration<double>(now - since).count(); };
  if (seconds(began_) < quiet_s_ || (!terminal_ && seconds(reported_) < quiet_s_)) return;
  reported_ = now;
  shown_ = true;
  const std::string line =
      fmt::format("{}: {:.0f} % after {:.0f} s", what_, 100 * done_share, seconds(began_));
  err_ << (terminal_ ? "\r" + line : line + "\n") << std::flush;
}

}  // namespace slipway
