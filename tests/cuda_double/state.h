// Common state of the CUDA runtime's double: streams, events, captures and allocated memory.
//
// It is libcudart.so.13 without a GPU, as far as PyTorch's allocator, streams, events and graphs need it. Device memory
// is host memory; a copy is made when it is issued; a kernel leaves only its name. So everything that the host does on
// a GPU happens, in the same order, and nothing is computed. It refuses what CUDA refuses: synchronising or copying
// pageable memory while a stream is captured, calls that a capture's mode forbids, events without times, streams that
// were not joined, more memory than there is.
//   SLIPWAY_DOUBLE_GPUS      how many GPUs there are (1)
//   SLIPWAY_DOUBLE_MEMORY    bytes of each (16 GiB; pages that are never touched cost nothing)
//   SLIPWAY_DOUBLE_LAUNCHES  a folder: at the end, the launched kernels and their counts, one file per process
// Used by tests/exec/cuda_host_test.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

// A graph, captured or under capture. Nodes hold their predecessors, so that a stream that never joined shows.
struct CUgraph_st {
  struct Node {
    std::vector<int> after;
    std::function<void()> work;  // of a copy; kernels do nothing
  };
  std::vector<Node> nodes;
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::size_t thread = 0;  // the thread that began it
  CUstream_st* origin = nullptr;
  bool broken = false;
  std::set<CUstream_st*> streams;
};

struct CUgraphExec_st {
  std::vector<std::function<void()>> works;
};

struct CUstream_st {
  int device = 0;
  unsigned flags = 0;
  CUgraph_st* capture = nullptr;
  std::vector<int> tips;  // nodes that the next one comes after
};

struct CUevent_st {
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  unsigned long long capture = 0;  // id of the capture in which it was recorded, whether or not that has ended
  std::vector<int> tips;
};

namespace cuda_double {

extern std::mutex everything;  // guards all state except what belongs to a thread
extern thread_local int current_device;
extern thread_local cudaStreamCaptureMode thread_mode;
extern std::map<unsigned long long, CUgraph_st*> captures;  // under way, by id

// Notes the thread's last error and returns it.
cudaError_t refuse(cudaError_t error);
int gpus();
std::size_t memory_of_device();

std::size_t this_thread();
CUstream_st* legacy_stream();
CUstream_st* stream_of(cudaStream_t stream);  // null: the legacy stream

// With `everything` locked: a capture forbids calls that may need the device's cooperation; such a call also breaks it.
cudaError_t unsafe_call();
// With `everything` locked: nothing is issued into a broken capture. Nor to the legacy stream, which waits for all
// blocking streams, while one of those is captured.
cudaError_t may_issue(CUstream_st* stream);
// Does `work` at once, or when the graph is launched.
cudaError_t issue(cudaStream_t on, std::function<void()> work);

}  // namespace cuda_double
