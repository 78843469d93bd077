// Work that a device goes on with while the host does: every lane's thread has a queue of its own there (a CUDA
// stream), which keeps the order in which the thread started things. What joins two queues is a mark:
//
//   lane a   │ start F0 │ mark m │ start F1 │ ...          host: never waits for the device
//   lane b   ············ │ wait_for m │ start F0.send     device: F0.send begins when F0 has ended
//
// A mark also tells, later, when the device came by. Where operators return when they are done (the processor) there
// is no such queue: a null pointer stands for it, and whatever a thread has started is over.
// Plain C++, no LibTorch. Guarded by tests/exec/lanes_device_test.cpp and tests/exec/local_transport_test.cpp with a device of threads,
// exec/transport/cuda/stream_queue.cpp by tests/exec/cuda_host_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/namespaces.h"

namespace slipway::exec {

class DeviceQueue {
 public:
  using Mark = std::shared_ptr<void>;

  virtual ~DeviceQueue() = default;
  // On every lane's thread before its first task: the thread gets a queue of its own.
  virtual void begin_lane() = 0;
  // Everything that this thread has started so far.
  virtual Mark mark() = 0;
  // What this thread starts from now on begins after `mark`, which any thread may have made; the host goes on.
  virtual void wait_for(const Mark& mark) = 0;
  // The host waits until the device has come by.
  virtual void finish(const Mark& mark) = 0;
  // When that was, on CLOCK_MONOTONIC. Only of marks that are finished. All by one comparison of the clocks, so that of
  // two marks the later one never seems the earlier.
  virtual std::vector<std::int64_t> times_ns(const std::vector<Mark>& marks) = 0;
};

}  // namespace slipway::exec
