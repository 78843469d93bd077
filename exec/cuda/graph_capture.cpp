#include "exec/cuda/graph_capture.h"

#include <ATen/cuda/CUDAGraph.h>

#include <vector>

namespace slipway {
namespace {

class Graph : public SegmentCapture::Recording {
 public:
  // When `work` breaks, its own error is what counts; the stream must leave the capture in any case.
  Graph(c10::MempoolId_t pool, const std::function<void()>& work) {
    graph_.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      try {
        graph_.capture_end();
      } catch (const std::exception&) {  // says only that the capture is broken
      }
      throw;
    }
    graph_.capture_end();
  }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

class GraphCapture : public SegmentCapture {
 public:
  int new_pool() override {
    pools_.push_back(at::cuda::graph_pool_handle());
    return static_cast<int>(pools_.size()) - 1;
  }
  std::unique_ptr<Recording> record(int pool, const std::function<void()>& work) override {
    return std::make_unique<Graph>(pools_[static_cast<std::size_t>(pool)], work);
  }

 private:
  std::vector<c10::MempoolId_t> pools_;
};

}  // namespace

std::unique_ptr<SegmentCapture> graph_capture() { return std::make_unique<GraphCapture>(); }

}  // namespace slipway
