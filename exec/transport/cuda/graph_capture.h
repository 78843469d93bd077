// A lane's stream as the device that records (exec/lanes/segment_replay.h): a recording is a CUDA graph.
//
// Only this thread is captured (cudaStreamCaptureModeThreadLocal). Lanes of other threads meanwhile wait for events and
// allocate, which would break a global capture. Autograd's own thread may still put its work into the capture, because
// it uses the stream of the forward pass. Allocations on a captured stream come from the named pool, whichever thread
// makes them (c10/cuda/CUDACachingAllocator, beginAllocateToPool).
// Guarded by tests/exec/cuda_host_test.cpp, where nothing is computed; on a GPU it has not run (tests/gpu has a case).
#pragma once

#include <memory>
#include <mutex>

#include "exec/lanes/segment_replay.h"

namespace slipway::exec {

// Recordings have separate memory, without what earlier steps keep cached. `may_wait`: before the first recording the
// cache is given back, for which the device must become idle. It must be false where a receive of another process may
// wait on the device.
std::unique_ptr<SegmentCapture> graph_capture(bool may_wait);

// While it is held, no thread of this process records. While any stream is captured, c10's allocator takes uses of a
// tensor on another stream for a part of the capture. It forgets them when that ends.
std::unique_lock<std::mutex> no_graph_is_recorded();

}  // namespace slipway::exec
