// Captures and graphs of the CUDA runtime's double: what may be issued while a stream is captured, and the result.
#include <atomic>
#include <memory>

#include "tests/cuda_double/kernels.h"
#include "tests/cuda_double/state.h"

namespace cuda_double {

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;
std::map<unsigned long long, CUgraph_st*> captures;

std::size_t this_thread() {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t id = ++threads;
  return id;
}

CUstream_st* legacy_stream() {
  static CUstream_st stream;
  return &stream;
}

CUstream_st* stream_of(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread ? legacy_stream() : stream;
}

cudaError_t unsafe_call() {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (const auto& [id, graph] : captures) {
    const bool mine = graph->thread == this_thread();
    const bool forbidden = (mine && graph->mode != cudaStreamCaptureModeRelaxed) ||
                           (thread_mode == cudaStreamCaptureModeGlobal && graph->mode == cudaStreamCaptureModeGlobal);
    if (!forbidden) continue;
    graph->broken = true;
    return refuse(cudaErrorStreamCaptureUnsupported);
  }
  return cudaSuccess;
}

cudaError_t may_issue(CUstream_st* stream) {
  if (stream != legacy_stream()) {
    if (stream->capture && stream->capture->broken) return refuse(cudaErrorStreamCaptureInvalidated);
    return cudaSuccess;
  }
  for (const auto& [id, graph] : captures) {
    for (const CUstream_st* captured : graph->streams) {
      if (captured->flags & cudaStreamNonBlocking) continue;
      graph->broken = true;
      return refuse(cudaErrorStreamCaptureImplicit);
    }
  }
  return cudaSuccess;
}

namespace {

void add_node(CUstream_st* stream, std::function<void()> work) {
  CUgraph_st& graph = *stream->capture;
  graph.nodes.push_back({stream->tips, std::move(work)});
  stream->tips = {static_cast<int>(graph.nodes.size()) - 1};
}

}  // namespace

cudaError_t issue(cudaStream_t on, std::function<void()> work) {
  const std::lock_guard lock(everything);
  CUstream_st* stream = stream_of(on);
  if (const cudaError_t error = may_issue(stream)) return error;
  if (stream->capture) {
    add_node(stream, std::move(work));
  } else if (work) {
    work();
  }
  return cudaSuccess;
}

}  // namespace cuda_double

using namespace cuda_double;

namespace {

unsigned long long captures_begun = 0;

// True if every node of the graph comes before these nodes or is one of them.
bool reaches(const CUgraph_st& graph, const std::vector<int>& from) {
  std::vector<bool> seen(graph.nodes.size());
  std::vector<int> open = from;
  std::size_t count = 0;
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (seen[node]) continue;
    seen[node] = true;
    ++count;
    const std::vector<int>& after = graph.nodes[node].after;
    open.insert(open.end(), after.begin(), after.end());
  }
  return count == graph.nodes.size();
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t on, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(everything);
  CUstream_st* stream = stream_of(on);
  if (stream == legacy_stream() || stream->capture) return refuse(cudaErrorStreamCaptureUnsupported);
  auto graph = std::make_unique<CUgraph_st>();
  graph->id = ++captures_begun;
  graph->mode = mode;
  graph->thread = this_thread();
  graph->origin = stream;
  graph->streams = {stream};
  stream->tips.clear();
  stream->capture = graph.get();
  captures[graph->id] = graph.get();
  graph.release();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t on, cudaGraph_t* graph) {
  const std::lock_guard lock(everything);
  CUstream_st* stream = stream_of(on);
  CUgraph_st* capture = stream->capture;
  *graph = nullptr;
  if (!capture || capture->origin != stream) return refuse(cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != this_thread())
    return refuse(cudaErrorStreamCaptureWrongThread);
  const bool joined = reaches(*capture, stream->tips);
  for (CUstream_st* captured : capture->streams) {
    captured->capture = nullptr;
    captured->tips.clear();
  }
  captures.erase(capture->id);
  if (capture->broken) return refuse(cudaErrorStreamCaptureInvalidated);
  if (!joined) return refuse(cudaErrorStreamCaptureUnjoined);
  *graph = capture;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  load("cudaGraphInstantiate");
  auto made = std::make_unique<CUgraphExec_st>();
  for (const CUgraph_st::Node& node : graph->nodes) made->works.push_back(node.work);
  *executable = made.release();
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  count_call("cudaGraphLaunch");
  return issue(stream, [executable] {
    for (const auto& work : executable->works) {
      if (work) work();
    }
  });
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  if (nodes) return refuse(cudaErrorNotSupported);
  *count = graph->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t on, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(everything);
  const CUstream_st* stream = stream_of(on);
  if (const cudaError_t error = may_issue(stream_of(on)); error && stream == legacy_stream()) return error;
  *status = !stream->capture          ? cudaStreamCaptureStatusNone
            : stream->capture->broken ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, std::size_t* count) {
  if (const cudaError_t error = cudaStreamIsCapturing(stream, status)) return error;
  const CUgraph_st* capture = stream_of(stream)->capture;
  if (id && capture) *id = capture->id;
  if (graph) *graph = const_cast<CUgraph_st*>(capture);
  if (dependencies) *dependencies = nullptr;
  if (edges) *edges = nullptr;
  if (count) *count = 0;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

}  // extern "C"
