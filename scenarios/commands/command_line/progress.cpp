#include "scenarios/commands/command_line/progress.h"

#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <semaphore>

#include "scenarios/predict/readable.h"

namespace slipway::scenarios {

namespace {

// Held while a thread ticks, and while a process forks. A child has only the thread that forked: a lock that another one
// held at that moment stays locked there (the allocator's under AddressSanitizer).
std::mutex& ticks() {
  static std::mutex* const held = [] {
    static std::mutex mutex;
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
    return &mutex;
  }();
  return *held;
}

// Calls `tick` every `pause` until the thread is asked to stop. Returns when the thread sleeps for the first time.
std::jthread ticker(std::chrono::duration<double> pause, std::function<void()> tick) {
  std::mutex& forks_wait = ticks();
  std::binary_semaphore sleeps(0);
  std::jthread thread([&forks_wait, &sleeps, pause, tick = std::move(tick)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any end;
    std::unique_lock lock(mutex);
    bool first = true;
    const auto never = [&] {  // `sleeps` is gone after the first call
      if (std::exchange(first, false)) sleeps.release();
      return false;
    };
    while (!end.wait_for(lock, stop, pause, never) && !stop.stop_requested()) {
      const std::lock_guard no_fork(forks_wait);
      tick();
    }
  });
  sleeps.acquire();
  return thread;
}

std::string rate_text(double rate) { return rate < 100 ? fmt::format("{:.2g}", rate) : readable_count(rate); }

}  // namespace

Pace pace_of(const std::ostream& err) {
  if (const auto* const paced = dynamic_cast<const PacedStream*>(&err)) return paced->pace();
  Pace pace;
  pace.terminal = &err == &std::cerr && ::isatty(STDERR_FILENO) != 0;
  winsize size = {};
  if (pace.terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0) pace.columns = size.ws_col;
  return pace;
}

ProgressLine::ProgressLine(std::ostream& err, std::string what, Pace pace)
    : err_(err), what_(std::move(what)), pace_(std::move(pace)) {
  constexpr double shortest_s = 0.01;
  began_s_ = shown_s_ = now_s();
  if (pace_.clock) return;
  thread_ = ticker(std::chrono::duration<double>(std::max(pace_.quiet_s, shortest_s)), [this] {
    const std::scoped_lock lock(mutex_);
    if (now_s() - shown_s_ >= pace_.quiet_s) show();
  });
}

ProgressLine::~ProgressLine() {
  thread_ = {};  // stops and joins
  if (shown_ && pace_.terminal) err_ << '\n';
}

double ProgressLine::now_s() const {
  if (pace_.clock) return pace_.clock();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void ProgressLine::report(double done_share, const std::string& detail) {
  const std::scoped_lock lock(mutex_);
  share_ = done_share;
  detail_ = detail;
  const double now = now_s();
  if (now - began_s_ < pace_.quiet_s || (!pace_.terminal && now - shown_s_ < pace_.quiet_s)) return;
  show();
}

void ProgressLine::counts(double all, std::string units) {
  const std::scoped_lock lock(mutex_);
  all_ = all, units_ = std::move(units);
}

void ProgressLine::expects(double seconds, std::string what) {
  const std::scoped_lock lock(mutex_);
  expected_s_ = seconds, what_ += ", " + std::move(what);
}

void ProgressLine::show() {
  shown_s_ = now_s();
  shown_ = true;
  const double past_s = shown_s_ - began_s_;
  if (pace_.show) return pace_.show({what_, detail_, share_, past_s});
  std::string line = what_ + ": ";
  if (share_) line += fmt::format("{}{:.0f} % after ", detail_.empty() ? "" : detail_ + ", ", 100 * *share_);
  line += fmt::format("{:.0f} s", past_s);
  if (!share_ && expected_s_ > past_s) line += fmt::format(" of about {:.0f} s", expected_s_);
  if (all_ > 0 && share_ > 0 && past_s > 0)
    line += fmt::format(", {} {}/s", rate_text(all_ * *share_ / past_s), units_);
  if (share_ >= 0.01 && share_ < 1) line += fmt::format(", about {:.0f} s left", past_s * (1 / *share_ - 1));
  if (pace_.columns > 1) line = line.substr(0, static_cast<std::size_t>(pace_.columns) - 1);
  const std::string rest(pace_.terminal && line.size() < width_ ? width_ - line.size() : 0, ' ');
  width_ = line.size();
  err_ << (pace_.terminal ? "\r" + line + rest : line + "\n") << std::flush;
}

}  // namespace slipway::scenarios
