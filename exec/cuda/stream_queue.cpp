#include "exec/cuda/stream_queue.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "exec/clock.h"

namespace slipway {
namespace {

// Streams share hardware queues, 8 unless CUDA is told otherwise before it begins; lanes that share one wait for each other.
[[maybe_unused]] const bool queues_for_lanes = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0) == 0;

// Events that are used again and again: making one costs more than recording it.
class EventPool {
 public:
  cudaEvent_t take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        const cudaEvent_t event = free_.back();
        free_.pop_back();
        return event;
      }
    }
    cudaEvent_t event = nullptr;
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventBlockingSync));
    return event;
  }
  void give(cudaEvent_t event) {
    const std::lock_guard lock(mutex_);
    free_.push_back(event);
  }

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;  // for the life of the process
};

EventPool& pool() {
  static EventPool* const events = new EventPool;  // marks may outlive statics
  return *events;
}

// An event of which the host's clock is known.
class Anchor {
 public:
  explicit Anchor(c10::Device device) : device_(device) {
    const c10::cuda::CUDAGuard guard(device.index());
    for (cudaEvent_t* event : {&event_, &next_}) C10_CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDefault));
    C10_CUDA_CHECK(cudaStreamCreateWithFlags(&idle_, cudaStreamNonBlocking));
  }
  ~Anchor() {
    cudaEventDestroy(event_);
    cudaEventDestroy(next_);
    cudaStreamDestroy(idle_);
  }
  Anchor(const Anchor&) = delete;
  Anchor& operator=(const Anchor&) = delete;

  // When the device came by `event`.
  Nanoseconds time_of(cudaEvent_t event) {
    const std::lock_guard lock(mutex_);
    renew();
    float milliseconds = 0;  // negative when the event came later
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, event, event_));
    return at_ - static_cast<Nanoseconds>(static_cast<double>(milliseconds) * 1e6);
  }

 private:
  // The best of a few: the nearer the two readings of the clock, the surer what it was between them.
  void renew() {
    constexpr Nanoseconds fresh_ns = 100'000'000;
    constexpr int tries = 5;
    if (at_ != 0 && monotonic_ns() - at_ < fresh_ns) return;
    const c10::cuda::CUDAGuard guard(device_.index());
    Nanoseconds shortest = 0;
    for (int i = 0; i < tries; ++i) {
      const Nanoseconds before = monotonic_ns();
      C10_CUDA_CHECK(cudaEventRecord(next_, idle_));
      C10_CUDA_CHECK(cudaEventSynchronize(next_));
      const Nanoseconds took = monotonic_ns() - before;
      if (i > 0 && took >= shortest) continue;
      shortest = took;
      at_ = before + took / 2;
      std::swap(event_, next_);
    }
  }

  c10::Device device_;
  std::mutex mutex_;
  cudaEvent_t event_ = nullptr, next_ = nullptr;
  cudaStream_t idle_ = nullptr;
  Nanoseconds at_ = 0;
};

class StreamQueue : public DeviceQueue {
 public:
  explicit StreamQueue(c10::Device device) : device_(device), anchor_(device) {}

  void begin_lane() override {
    c10::cuda::set_device(device_.index());
    cudaStream_t own = nullptr;  // c10's pool has 32 for all; it is never destroyed, for memory may be bound to it
    C10_CUDA_CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromExternal(own, device_.index()));
  }
  Mark mark() override {
    const Mark mark(pool().take(), [](void* event) { pool().give(static_cast<cudaEvent_t>(event)); });
    C10_CUDA_CHECK(cudaEventRecord(event_of(mark), stream()));
    return mark;
  }
  void wait_for(const Mark& mark) override { C10_CUDA_CHECK(cudaStreamWaitEvent(stream(), event_of(mark), 0)); }
  void finish(const Mark& mark) override { C10_CUDA_CHECK(cudaEventSynchronize(event_of(mark))); }
  std::int64_t time_ns(const Mark& mark) override { return anchor_.time_of(event_of(mark)); }

 private:
  static cudaEvent_t event_of(const Mark& mark) { return static_cast<cudaEvent_t>(mark.get()); }
  cudaStream_t stream() const { return c10::cuda::getCurrentCUDAStream(device_.index()).stream(); }

  c10::Device device_;
  Anchor anchor_;
};

}  // namespace

std::unique_ptr<DeviceQueue> stream_queue(c10::Device device) { return std::make_unique<StreamQueue>(device); }

}  // namespace slipway
