#include "scenarios/command_line/progress.h"

#include <malloc.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <iostream>
#include <mutex>

#include "scenarios/answers/readable.h"

namespace slipway::scenarios {

namespace {

volatile std::sig_atomic_t stop_asked = 0;

void handle(void (*handler)(int), struct sigaction& old_int, struct sigaction& old_term) {
  struct sigaction action = {};
  action.sa_handler = handler;
  ::sigaction(SIGINT, &action, &old_int);
  ::sigaction(SIGTERM, &action, &old_term);
}

}  // namespace

CatchInterrupts::CatchInterrupts() {
  stop_asked = 0;
  handle([](int) { stop_asked = 1; }, old_int_, old_term_);
}

CatchInterrupts::~CatchInterrupts() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
}

bool CatchInterrupts::asked() { return stop_asked != 0; }

ExitOnInterrupt::ExitOnInterrupt() {
  const auto end = [](int) {
    constexpr char line[] = "slipway: interrupted before the answer was known\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, sizeof line - 1);
    ::_exit(1);
  };
  handle(end, old_int_, old_term_);
}

ExitOnInterrupt::~ExitOnInterrupt() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
}

bool is_terminal(const std::ostream& err) { return &err == &std::cerr && ::isatty(STDERR_FILENO); }

namespace {

// Calls `tick` every `pause` until the thread is asked to stop.
std::jthread ticker(std::chrono::duration<double> pause, std::function<void()> tick) {
  return std::jthread([pause, tick = std::move(tick)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any end;
    std::unique_lock lock(mutex);
    while (!end.wait_for(lock, stop, pause, [] { return false; }) && !stop.stop_requested()) tick();
  });
}

std::string rate_text(double rate) { return rate < 100 ? fmt::format("{:.2g}", rate) : readable_count(rate); }

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

ProgressLine::ProgressLine(std::ostream& err, std::string what, bool terminal, double quiet_s)
    : err_(err), what_(std::move(what)), terminal_(terminal), quiet_s_(quiet_s) {
  constexpr double shortest_s = 0.01;
  began_ = reported_ = std::chrono::steady_clock::now();
  thread_ = ticker(std::chrono::duration<double>(std::max(quiet_s, shortest_s)), [this] {
    const std::scoped_lock lock(mutex_);
    if (seconds_between(reported_, std::chrono::steady_clock::now()) >= quiet_s_) show();
  });
}

ProgressLine::~ProgressLine() {
  thread_.request_stop();
  thread_.join();
  if (shown_ && terminal_) err_ << '\n';
}

void ProgressLine::report(double done_share, const std::string& detail) {
  const std::scoped_lock lock(mutex_);
  share_ = done_share;
  detail_ = detail;
  const auto now = std::chrono::steady_clock::now();
  if (seconds_between(began_, now) < quiet_s_ || (!terminal_ && seconds_between(reported_, now) < quiet_s_)) return;
  show();
}

void ProgressLine::counts(double all, std::string units) {
  const std::scoped_lock lock(mutex_);
  all_ = all, units_ = std::move(units);
}

void ProgressLine::show() {
  reported_ = std::chrono::steady_clock::now();
  shown_ = true;
  const double past_s = seconds_between(began_, reported_);
  std::string line = what_ + ": ";
  if (share_) line += fmt::format("{}{:.0f} % after ", detail_.empty() ? "" : detail_ + ", ", 100 * *share_);
  line += fmt::format("{:.0f} s", past_s);
  if (all_ > 0 && share_ > 0 && past_s > 0)
    line += fmt::format(", {} {}/s", rate_text(all_ * *share_ / past_s), units_);
  if (share_ >= 0.01 && share_ < 1) line += fmt::format(", about {:.0f} s left", past_s * (1 / *share_ - 1));
  const std::string rest(terminal_ && line.size() < width_ ? width_ - line.size() : 0, ' ');
  width_ = line.size();
  err_ << (terminal_ ? "\r" + line + rest : line + "\n") << std::flush;
}

Ticking::Ticking(std::ostream& err, std::string what, std::chrono::milliseconds pause)
    : thread_(ticker(pause, [&err, what = std::move(what), began = std::chrono::steady_clock::now()] {
        err << fmt::format("{}: {:.0f} s\n", what, seconds_between(began, std::chrono::steady_clock::now()))
            << std::flush;
      })) {}

PreparedStep prepared_showing(Scenario scenario, std::ostream& err, const PrepareOptions& options,
                              std::chrono::milliseconds pause) {
  const Ticking ticking(err, "preparing " + scenario.name, pause);
  return prepared_step(std::move(scenario), options);
}

void keep_freed_memory() {
#ifdef M_MMAP_MAX
  constexpr int lent_at_once = 64 << 20;  // bytes
  mallopt(M_MMAP_MAX, 0);                 // no block returns to the system by itself
  mallopt(M_TRIM_THRESHOLD, -1);          // nor does the end of the heap
  mallopt(M_TOP_PAD, lent_at_once);
#endif
}

void give_back_freed_memory() {
#ifdef M_MMAP_MAX
  malloc_trim(0);
#endif
}

}  // namespace slipway::scenarios
