// Ctrl-C during long work.
//
// While a CatchInterrupts lives, SIGINT and SIGTERM end the work, not the process. The work calls asked() now and then.
// Guarded by tests/scenarios/command_line_test.cpp.
#pragma once

#include <csignal>

#include "models/namespaces.h"

namespace slipway::scenarios {

class CatchInterrupts {
 public:
  CatchInterrupts();
  ~CatchInterrupts();  // restores the previous handlers
  CatchInterrupts(const CatchInterrupts&) = delete;
  CatchInterrupts& operator=(const CatchInterrupts&) = delete;
  static bool asked();

 private:
  struct sigaction old_int_, old_term_;
};

// While one lives, SIGINT and SIGTERM end the process at once, with a line on standard error and exit status 1. For
// work without results before its end. A CatchInterrupts inside takes precedence.
class ExitOnInterrupt {
 public:
  ExitOnInterrupt();
  ~ExitOnInterrupt();
  ExitOnInterrupt(const ExitOnInterrupt&) = delete;
  ExitOnInterrupt& operator=(const ExitOnInterrupt&) = delete;

 private:
  struct sigaction old_int_, old_term_;
};

}  // namespace slipway::scenarios
