// Work that a device runs while the host goes on. Every lane's thread has one queue there (a CUDA stream), which keeps
// the order in which the thread started things. A mark joins two queues:
//
//   lane a   │ start F0 │ mark m │ start F1 │ ...          host: never waits for the device
//   lane b   ············ │ wait_for m │ start F0.send     device: F0.send begins when F0 has ended
//
// A mark also gives, later, the time when the device reached it. Where operators return when they are done (the
// processor) there is no such queue, only a null pointer, and everything that a thread has started is over.
// Plain C++, no LibTorch. Guarded by tests/exec/lanes_device_test.cpp and tests/exec/local_transport_test.cpp with a
// device of threads; exec/transport/cuda/stream_queue.cpp by tests/exec/cuda_host_test.cpp.
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
  // Called on every lane's thread before its first task: the thread gets a queue.
  virtual void begin_lane() = 0;
  // Marks everything that this thread has started so far.
  virtual Mark mark() = 0;
  // Work that this thread starts from now on begins after `mark`, which any thread may have made. The host does not
  // wait.
  virtual void wait_for(const Mark& mark) = 0;
  // The host waits until the device has reached the mark.
  virtual void finish(const Mark& mark) = 0;
  // Times when finished marks were reached, on CLOCK_MONOTONIC. All use one comparison of the clocks, so that the later
  // of two marks never gets the earlier time.
  virtual std::vector<std::int64_t> times_ns(const std::vector<Mark>& marks) = 0;
};

}  // namespace slipway::exec
