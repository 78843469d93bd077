// How much memory a rank's tensors take when a task is over, and the most during it.
//
// LibTorch's allocators, that of the processor and the caching one of GPUs, report what they give and take on the
// thread where it happens, to whoever asked for it there (c10::MemoryReportingInfoBase). A rank asks on all of its
// threads; autograd's own threads inherit it from the one that calls them:
//
//   thread of rank 0   │ allocates 4 MB at p │ ···               rank 0: +4 MB
//   thread of rank 1   ······················│ frees p │         rank 0: −4 MB: whose it was counts
//
// A device's own statistics (getDeviceStats, resetPeakStats) would not do: ranks that share a device would see each
// other's tensors, and lanes that run at the same time each other's reset. On a GPU a figure is of the moment when the
// host has started the task, and nothing waits for the device: the allocator hands memory out in that order, and the
// device works in it, so what the task may use is allocated then. Not counted: what the allocator keeps in reserve,
// what recorded segments hold (exec/lanes/segment_replay.h), cuBLAS's workspaces (warm_up, exec/transport/device.h), and the memory of CUDA,
// NCCL and Gloo themselves.
// Guarded by tests/exec/memory_meter_test.cpp and tests/exec/execute_memory_test.cpp.
#pragma once

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "schedules/graph/task_graph.h"

namespace slipway::exec {

struct MemoryStamp {
  int step = 0;
  TaskId task = 0;
  std::int64_t bytes = 0, peak_bytes = 0;  // allocated when it was over; the most meanwhile, by any thread of the rank
};

class MemoryMeter {
 public:
  // Of memory on such devices only. Counts the thread that makes it.
  explicit MemoryMeter(c10::DeviceType device);
  ~MemoryMeter();

  // What this thread allocates from now on, until it ends, is this rank's.
  void count_this_thread();
  // Runs `work`, which is this task, and stamps it. Any thread.
  void measure(TaskId task, int step, const std::function<void()>& work);

  std::int64_t bytes() const;  // now
  std::vector<MemoryStamp> stamps() const;

 private:
  std::shared_ptr<struct MeteredRank> rank_;
};

}  // namespace slipway::exec
