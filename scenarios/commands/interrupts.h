// What Ctrl-C does to long work.
//
// CatchInterrupts: while one lives, SIGINT and SIGTERM end the work and not the process: whoever works asks asked() now and then.
// Guarded by tests/interrupt_test.cpp.
#pragma once

#include <csignal>

namespace slipway {

class CatchInterrupts {
 public:
  CatchInterrupts();
  ~CatchInterrupts();  // the handlers that were there before come back
  CatchInterrupts(const CatchInterrupts&) = delete;
  CatchInterrupts& operator=(const CatchInterrupts&) = delete;
  static bool asked();

 private:
  struct sigaction old_int_, old_term_;
};

// While one lives, SIGINT and SIGTERM end the process at once, with a line on standard error and exit status 1: for
// work of which nothing is known before its end. A CatchInterrupts inside takes precedence.
class ExitOnInterrupt {
 public:
  ExitOnInterrupt();
  ~ExitOnInterrupt();
  ExitOnInterrupt(const ExitOnInterrupt&) = delete;
  ExitOnInterrupt& operator=(const ExitOnInterrupt&) = delete;

 private:
  struct sigaction old_int_, old_term_;
};

}  // namespace slipway
