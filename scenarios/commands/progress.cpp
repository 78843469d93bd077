#include "scenarios/commands/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <iostream>
#include <mutex>

namespace slipway {

bool is_terminal(const std::ostream& err) { return &err == &std::cerr && ::isatty(STDERR_FILENO); }

ProgressLine::ProgressLine(std::ostream& err, std::string what, bool terminal, double quiet_s)
    : err_(err), what_(std::move(what)), terminal_(terminal), quiet_s_(quiet_s) {
  began_ = reported_ = std::chrono::steady_clock::now();
}

ProgressLine::~ProgressLine() {
  if (shown_ && terminal_) err_ << '\n';
}

void ProgressLine::report(double done_share, const std::string& detail) {
  const auto now = std::chrono::steady_clock::now();
  const auto seconds = [&](auto since) { return std::chrono::duration<double>(now - since).count(); };
  if (seconds(began_) < quiet_s_ || (!terminal_ && seconds(reported_) < quiet_s_)) return;
  reported_ = now;
  shown_ = true;
  std::string line = fmt::format("{}: {}{:.0f} % after {:.0f} s", what_, detail.empty() ? "" : detail + ", ",
                                 100 * done_share, seconds(began_));
  if (!detail.empty() && done_share >= 0.01 && done_share < 1)
    line += fmt::format(", about {:.0f} s left", seconds(began_) * (1 / done_share - 1));
  const std::string rest(terminal_ && line.size() < width_ ? width_ - line.size() : 0, ' ');
  width_ = line.size();
  err_ << (terminal_ ? "\r" + line + rest : line + "\n") << std::flush;
}

Ticking::Ticking(std::ostream& err, std::string what, std::chrono::milliseconds pause)
    : thread_([&err, what = std::move(what), pause](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any end;
        std::unique_lock lock(mutex);
        for (auto waited = pause; !end.wait_for(lock, stop, pause, [] { return false; }); waited += pause) {
          if (stop.stop_requested()) return;
          err << fmt::format("{}: {:.0f} s\n", what, std::chrono::duration<double>(waited).count())
              << std::flush;
        }
      }) {}

Plan planned(Scenario scenario, std::ostream& err, const PlanOptions& options, std::chrono::milliseconds pause) {
  const Ticking ticking(err, "planning " + scenario.name, pause);
  return plan_of(std::move(scenario), options);
}

}  // namespace slipway
