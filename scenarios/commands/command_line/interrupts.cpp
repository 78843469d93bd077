#include "scenarios/commands/command_line/interrupts.h"

#include <unistd.h>

#include <atomic>

namespace slipway::scenarios {

namespace {

// Set by a handler, and asked by every thread of a search. Without a lock, so that a handler may set it.
std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void handle(void (*handler)(int), struct sigaction& old_int, struct sigaction& old_term) {
  struct sigaction action = {};
  action.sa_handler = handler;
  ::sigaction(SIGINT, &action, &old_int);
  ::sigaction(SIGTERM, &action, &old_term);
}

}  // namespace

CatchInterrupts::CatchInterrupts() {
  stop_asked = false;
  handle([](int) { stop_asked = true; }, old_int_, old_term_);
}

CatchInterrupts::~CatchInterrupts() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
}

bool CatchInterrupts::asked() { return stop_asked; }

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

}  // namespace slipway::scenarios
