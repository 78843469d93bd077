// Two kinds of host work that exclude each other, while libraries still load kernels onto a device.
//
// A library that is loaded at first use waits until the device has nothing to do (cublasCreate on an H200 with CUDA 13,
// 2026-11-27: both processes of a pipeline stood in cuLibraryLoadData for ever). A receive keeps the device busy until
// its peer sends, and the peer may be loading too. So in the first steps of a program (BundleRun::may_load) a message to
// another process begins when all its members have come to it, and the two kinds of work take turns on the host:
//
//   compute     │ start F0 │················│ start F1 │    may load: no message is on the device meanwhile
//   pp.forward  ···········│ send F0, done? │               ends on the device before the turn ends
//
// Whoever holds a turn ends it without the other kind: a task's start waits for no message, and a message's members
// have all come. Hence at least one of them can always proceed (no deadlock). Any number of one kind may hold turns
// together. Left out: an exchange of tokens starts some work between its messages, beside messages of other
// communicators. Plain C++, no LibTorch. Guarded by tests/exec/turns_test.cpp, and with two processes by
// tests/exec/cuda_host_test.cpp.
#pragma once

#include <array>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "models/namespaces.h"

namespace slipway::exec {

enum class TurnOf { starts, messages };

class Turns {
 public:
  // Ends with its life. An empty one holds nothing.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)), kind_(other.kind_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn();

   private:
    friend class Turns;
    Turn(Turns* turns, TurnOf kind) : turns_(turns), kind_(kind) {}
    Turns* turns_ = nullptr;
    TurnOf kind_ = TurnOf::starts;
  };

  // Waits until no turn of the other kind is held. May be called from any thread.
  Turn take(TurnOf kind);

 private:
  int& held(TurnOf kind) { return held_[static_cast<std::size_t>(kind)]; }

  std::mutex mutex_;
  std::condition_variable ended_;
  std::array<int, 2> held_{};
};

}  // namespace slipway::exec
