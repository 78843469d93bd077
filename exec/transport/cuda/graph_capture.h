// A lane's stream as the device that records (exec/lanes/segment_replay.h): a recording is a CUDA graph.
//
// Capture is of this thread only (cudaStreamCaptureModeThreadLocal): lanes of other threads go on to wait for events and
// to allocate meanwhile, which would break a global capture. Autograd's own thread may put its work into the capture all
// the same, because it uses the stream of the forward pass. What is allocated on a captured stream comes from the pool
// that was named, by whichever thread (c10/cuda/CUDACachingAllocator, beginAllocateToPool).
// Guarded by tests/exec/cuda_host_test.cpp, where nothing is computed; on a GPU it has not run (tests/gpu has a case).
#pragma once

#include <memory>
#include <mutex>

#include "exec/lanes/segment_replay.h"

namespace slipway::exec {

// Recordings have memory of their own, which what earlier steps keep cached is not part of. `may_wait`: before the first
// one the cache is given back, for which the device must become idle; not where a receive of another process may be
// waiting on it.
std::unique_ptr<SegmentCapture> graph_capture(bool may_wait);

// While it is held, no thread of this process records. What c10's allocator is told of a tensor's use on another stream
// while any stream is captured, it takes for a part of the capture, and forgets when that ends.
std::unique_lock<std::mutex> no_graph_is_recorded();

}  // namespace slipway::exec
