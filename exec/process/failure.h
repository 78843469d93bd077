// The first cause of a failed run, and the places where every rank can read it.
//
//   store key "failed"          the verdict: the first claim wins, and all others repeat it
//   DIR/failure                 the same, for ranks that have lost the store
//   DIR/rank-<r>.error          the cause of rank r in its own words (or the launcher's, which collected it)
// Guarded by tests/exec/heartbeat_test.cpp and tests/exec/execute_failure_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "exec/process/process.h"

namespace slipway::exec {

struct Failure {
  int rank = 0;       // the rank that failed; -1: the launcher's agent that hosts the store
  std::string cause;  // one line
};

// Returns the message without LibTorch's stack of callers, and without CUDA's advice for debugging LibTorch. Both stand
// at the end.
std::string without_stack(const std::string& message);

std::string to_text(const Failure& failure);
Failure failure_from_text(const std::string& text);  // throws std::runtime_error

// "rank 2 stops: rank 1 failed: killed by signal 9 (process 4711 on host x)"; on the failing rank "rank 1 failed: ...".
std::string line_of(int rank, const Failure& failure);

// Removes what an earlier run left in `directory` for this rank; on rank 0 also the verdict. Must run before any rank
// can depend on them.
void forget_failures(const std::string& directory, int rank);
void write_own_error(const std::string& directory, int rank, const std::string& cause);
void write_verdict(const std::string& directory, const Failure& failure);  // the first one stays
std::optional<Failure> read_verdict(const std::string& directory);

// The reason why the visible process of a rank ended. Waits up to `seconds` for the kernel's or the launcher's details.
// Empty while it lives.
std::optional<Failure> failure_of_ended(const ProcessIdentity& process, int rank, const std::string& directory,
                                        double seconds);

}  // namespace slipway::exec
