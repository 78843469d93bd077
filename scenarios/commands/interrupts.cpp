#include "scenarios/commands/interrupts.h"

#include <unistd.h>

namespace slipway {
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

}  // namespace slipway
