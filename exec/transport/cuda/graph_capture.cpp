#include "exec/transport/cuda/graph_capture.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace slipway::exec {
namespace {

// Graphs register with the device's random number generator, which takes no lock. A replay counts it up, which it
// refuses while another recording is under way. So one of the ranks that share a process records, replays or destroys
// at a time. Nothing that is recorded waits for another rank.
std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

class Graph : public SegmentCapture::Recording {
 public:
  // `make_room`: gives back what the allocator keeps for later.
  Graph(c10::MempoolId_t pool, const std::function<void()>& work, bool make_room) {
    const std::lock_guard lock(one_at_a_time());
    if (make_room) c10::cuda::CUDACachingAllocator::emptyCache();
    graph_.emplace();
    graph_->capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    try {
      work();
      graph_->capture_end();
    } catch (const c10::OutOfMemoryError& error) {
      leave();
      throw std::runtime_error(std::string("no memory to record a CUDA graph, which needs room besides what the first "
                                           "two steps keep: run without --cuda-graphs. ") +
                               error.what_without_backtrace());
    } catch (...) {
      leave();
      throw;
    }
  }
  ~Graph() override {
    const std::lock_guard lock(one_at_a_time());
    graph_.reset();
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void replay() override {
    const std::lock_guard lock(one_at_a_time());
    graph_->replay();
  }

 private:
  // If the work breaks, its own error is reported; the stream must leave the capture in any case.
  void leave() {
    try {
      graph_->capture_end();
    } catch (const std::exception&) {  // reports only that the capture is broken
    }
    graph_.reset();
  }

  std::optional<at::cuda::CUDAGraph> graph_;
};

class GraphCapture : public SegmentCapture {
 public:
  explicit GraphCapture(bool may_wait) : may_wait_(may_wait), makes_room_(may_wait) {}
  void begin_program() override { makes_room_ = may_wait_; }
  int new_pool() override {
    pools_.push_back(at::cuda::graph_pool_handle());
    return static_cast<int>(pools_.size()) - 1;
  }
  std::unique_ptr<Recording> record(int pool, const std::function<void()>& work) override {
    return std::make_unique<Graph>(pools_[pool], work, std::exchange(makes_room_, false));
  }

 private:
  const bool may_wait_;
  bool makes_room_;  // before the first of a step program
  std::vector<c10::MempoolId_t> pools_;
};

}  // namespace

std::unique_lock<std::mutex> no_graph_is_recorded() { return std::unique_lock(one_at_a_time()); }

std::unique_ptr<SegmentCapture> graph_capture(bool may_wait) { return std::make_unique<GraphCapture>(may_wait); }

}  // namespace slipway::exec
