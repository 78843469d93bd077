// The memory of a rank's tensors at the end of a task, and the most during it.
//
// LibTorch's allocators, that of the processor and the caching one of GPUs, report allocations and frees on the thread
// where they happen, to a listener of that thread (c10::MemoryReportingInfoBase). A rank listens on all of its threads.
// Autograd's own threads inherit the listener of the thread that calls them:
//
//   thread of rank 0   │ allocates 4 MB at p │ ···               rank 0: +4 MB
//   thread of rank 1   ······················│ frees p │         rank 0: −4 MB: the allocating rank counts
//
// A device's own statistics (getDeviceStats, resetPeakStats) would not do: ranks that share a device would see each
// other's tensors, and parallel lanes each other's resets. On a GPU a value belongs to the moment when the host has
// started the task, without a wait for the device. The allocator hands memory out in that order, and the device works
// in it, so all memory of the task is allocated then. Not counted: the allocator's reserve, recorded segments
// (exec/lanes/segment_replay.h), cuBLAS's workspaces (warm_up, exec/transport/device.h), and the memory of CUDA, NCCL
// and Gloo themselves.
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
  std::int64_t bytes = 0, peak_bytes = 0;  // allocated at its end; the most meanwhile, by any thread of the rank
};

class MemoryMeter {
 public:
  // Meters memory on such devices only. Counts the thread that makes it.
  explicit MemoryMeter(c10::DeviceType device);
  ~MemoryMeter();

  // Counts this thread's allocations from now on, until it ends, for this rank.
  void count_this_thread();
  // Runs `work`, which is this task, and stamps it. From any thread.
  void measure(TaskId task, int step, const std::function<void()>& work);

  std::int64_t bytes() const;  // now
  std::vector<MemoryStamp> stamps() const;

 private:
  std::shared_ptr<struct MeteredRank> rank_;
};

}  // namespace slipway::exec
