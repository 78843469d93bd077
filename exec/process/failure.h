// The first cause of a failed run, and where it is written down so that every rank can name it.
//
//   store key "failed"          the verdict: whoever comes first wins, everybody else repeats it
//   DIR/failure                 the same, for those who have lost the store
//   DIR/rank-<r>.error          the cause of rank r in its own words (or the launcher's, who collected it)
// Guarded by tests/exec/heartbeat_test.cpp and tests/exec/execute_failure_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "exec/process/process.h"

namespace slipway::exec {

struct Failure {
  int rank = 0;       // who failed; -1: the launcher's agent that hosts the store
  std::string cause;  // one line
};

// LibTorch's errors end with the stack of their callers and, those of CUDA, with advice for debugging LibTorch: what stands
// before both.
std::string without_stack(const std::string& message);

std::string to_text(const Failure& failure);
Failure failure_from_text(const std::string& text);  // throws std::runtime_error

// "rank 2 stops: rank 1 failed: killed by signal 9 (process 4711 on host x)"; the failing rank itself says
// "rank 1 failed: ...".
std::string line_of(int rank, const Failure& failure);

// Removes what an earlier run left in `directory` for this rank; rank 0 also the verdict. Called before any
// rank can depend on them.
void forget_failures(const std::string& directory, int rank);
void write_own_error(const std::string& directory, int rank, const std::string& cause);
void write_verdict(const std::string& directory, const Failure& failure);  // the first one stays
std::optional<Failure> read_verdict(const std::string& directory);

// Why the visible process of a rank ended; waits up to `seconds` for the kernel or the launcher to tell
// more than that it is gone. Empty while it lives.
std::optional<Failure> failure_of_ended(const ProcessIdentity& process, int rank, const std::string& directory,
                                        double seconds);

}  // namespace slipway::exec
