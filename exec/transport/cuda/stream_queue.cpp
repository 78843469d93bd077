#include "exec/transport/cuda/stream_queue.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "exec/process/clock.h"

namespace slipway::exec {
namespace {

// Streams share hardware queues, by default 8; lanes that share one wait for each other. CUDA reads this at its start.
[[maybe_unused]] const bool queues_for_lanes = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0) == 0;

// Reused events, because making one costs more than recording it.
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

// An event with a known host time. All ranks that share a device use one, so that their times agree.
class Anchor {
 public:
  explicit Anchor(c10::Device device) : device_(device) {
    const c10::cuda::CUDAGuard guard(device.index());
    for (cudaEvent_t* event : {&event_, &next_}) C10_CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDefault));
    int lowest = 0, highest = 0;
    C10_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    C10_CUDA_CHECK(cudaStreamCreateWithPriority(&idle_, cudaStreamNonBlocking, highest));
  }

  // The host times at which the device reached each of `marks`.
  std::vector<Nanoseconds> times_of(const std::vector<DeviceQueue::Mark>& marks) {
    const std::lock_guard lock(mutex_);
    renew();
    std::vector<Nanoseconds> times;
    times.reserve(marks.size());
    for (const DeviceQueue::Mark& mark : marks) {
      float milliseconds = 0;  // negative when the mark came later
      C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(mark.get()), event_));
      times.push_back(at_ - static_cast<Nanoseconds>(static_cast<double>(milliseconds) * 1e6));
    }
    return times;
  }

 private:
  // Takes the best of a few: the closer the two readings of the clock, the surer the time between them. A stream may
  // share a hardware queue with one that waits, and stand there too; then the old anchor is the better one for a while.
  void renew() {
    constexpr Nanoseconds fresh_ns = 100'000'000, stale_ns = 100 * fresh_ns, sure_ns = 50'000;
    constexpr int tries = 5;
    const Nanoseconds age = monotonic_ns() - at_;
    if (at_ != 0 && age < fresh_ns) return;
    const c10::cuda::CUDAGuard guard(device_.index());
    Nanoseconds shortest = at_ != 0 && age < stale_ns ? sure_ns : std::numeric_limits<Nanoseconds>::max();
    for (int i = 0; i < tries; ++i) {
      const Nanoseconds before = monotonic_ns();
      C10_CUDA_CHECK(cudaEventRecord(next_, idle_));
      const Nanoseconds took = reached_after(before, shortest);
      if (took >= shortest) continue;
      shortest = took;
      at_ = before + took / 2;
      std::swap(event_, next_);
    }
  }

  // Time that the device takes to reach `next_`; not much more than `patience`.
  Nanoseconds reached_after(Nanoseconds before, Nanoseconds patience) const {
    for (;;) {
      const cudaError_t state = cudaEventQuery(next_);
      const Nanoseconds took = monotonic_ns() - before;
      if (state != cudaErrorNotReady) C10_CUDA_CHECK(state);
      if (state == cudaSuccess || took > patience) return took;
    }
  }

  c10::Device device_;
  std::mutex mutex_;
  cudaEvent_t event_ = nullptr, next_ = nullptr;
  cudaStream_t idle_ = nullptr;
  Nanoseconds at_ = 0;
};

Anchor& anchor_of(c10::Device device) {
  static std::mutex mutex;
  static auto* const anchors = new std::map<c10::DeviceIndex, Anchor>;  // as the events
  const std::lock_guard lock(mutex);
  return anchors->try_emplace(device.index(), device).first->second;
}

class StreamQueue : public DeviceQueue {
 public:
  explicit StreamQueue(c10::Device device) : device_(device), anchor_(anchor_of(device)) {}

  void begin_lane() override {
    c10::cuda::set_device(device_.index());
    cudaStream_t own = nullptr;  // c10's pool has 32 for all. Never destroyed, because memory may be bound to it
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
  std::vector<std::int64_t> times_ns(const std::vector<Mark>& marks) override { return anchor_.times_of(marks); }

 private:
  static cudaEvent_t event_of(const Mark& mark) { return static_cast<cudaEvent_t>(mark.get()); }
  cudaStream_t stream() const { return c10::cuda::getCurrentCUDAStream(device_.index()).stream(); }

  c10::Device device_;
  Anchor& anchor_;
};

}  // namespace

std::unique_ptr<DeviceQueue> stream_queue(c10::Device device) { return std::make_unique<StreamQueue>(device); }

}  // namespace slipway::exec
