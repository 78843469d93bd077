#include "scenarios/commands/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <iostream>
#include <mutex>
#include <thread>

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

namespace {

// Planning has no share of itself to report: only that it goes on, told by a thread of its own.
class Ticking {
 public:
  Ticking(std::ostream& err, std::string what) : thread_([&err, what](const std::stop_token& stop) {
    constexpr std::chrono::seconds pause{2};
    std::mutex mutex;
    std::condition_variable_any end;
    std::unique_lock lock(mutex);
    for (auto waited = pause; !end.wait_for(lock, stop, pause, [] { return false; }); waited += pause) {
      if (stop.stop_requested()) return;
      err << fmt::format("{}: {} s\n", what, waited.count()) << std::flush;
    }
  }) {}

 private:
  std::jthread thread_;  // asked to stop and joined at the end
};

}  // namespace

Plan planned(Scenario scenario, std::ostream& err) {
  const Ticking ticking(err, "planning " + scenario.name);
  return plan_of(std::move(scenario));
}

}  // namespace slipway
