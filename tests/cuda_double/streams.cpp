// Streams and events of the CUDA runtime's double. Issued work is done at once, so only NCCL's operations are ever
// waited for: by the thread that started them (tests/cuda_double/nccl.cpp).
#include <dlfcn.h>

#include <memory>
#include <mutex>
#include <set>

#include "tests/cuda_double/kernels.h"
#include "tests/cuda_double/state.h"

using namespace cuda_double;

namespace {

cudaError_t wait_for(cudaStream_t on, const char* call) {
  count_call(call);
  const std::lock_guard lock(everything);
  CUstream_st* stream = stream_of(on);
  if (const cudaError_t error = may_issue(stream)) return error;
  if (!stream->capture) return cudaSuccess;
  stream->capture->broken = true;
  return refuse(cudaErrorStreamCaptureUnsupported);
}

// As a driver, it knows every stream: one that is not destroyed before the process ends is no leak. Under `everything`.
std::set<cudaStream_t>& streams() {
  static auto* const all = new std::set<cudaStream_t>;
  return *all;
}

cudaError_t make_stream(cudaStream_t* stream, unsigned flags) {
  auto made = std::make_unique<CUstream_st>();
  made->device = current_device;
  made->flags = flags;
  *stream = made.release();
  const std::lock_guard lock(everything);
  streams().insert(*stream);
  return cudaSuccess;
}

cudaError_t make_event(cudaEvent_t* event, unsigned flags) {
  auto made = std::make_unique<CUevent_st>();
  made->flags = flags;
  *event = made.release();
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return make_stream(stream, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) { return make_stream(stream, flags); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return make_stream(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    const std::lock_guard lock(everything);
    streams().erase(stream);
  }
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  using Wait = void (*)();
  static const auto wait = reinterpret_cast<Wait>(dlsym(RTLD_DEFAULT, "slipway_double_wait_for_this_thread"));
  const cudaError_t error = wait_for(stream, "cudaStreamSynchronize");
  if (error == cudaSuccess && wait) wait();
  return error;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return wait_for(stream, "cudaStreamQuery"); }
cudaError_t cudaStreamWaitEvent(cudaStream_t on, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(everything);
  CUstream_st* stream = stream_of(on);
  if (const cudaError_t error = may_issue(stream)) return error;
  if (event->capture == 0) {
    if (stream->capture && event->recorded) {  // work outside the capture
      stream->capture->broken = true;
      return refuse(cudaErrorStreamCaptureIsolation);
    }
    return cudaSuccess;
  }
  const auto capture = captures.find(event->capture);
  if (capture == captures.end()) return refuse(cudaErrorCapturedEvent);
  if (stream->capture && stream->capture != capture->second) return refuse(cudaErrorStreamCaptureMerge);
  stream->capture = capture->second;
  stream->capture->streams.insert(stream);
  stream->tips.insert(stream->tips.end(), event->tips.begin(), event->tips.end());
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return make_event(event, 0); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) { return make_event(event, flags); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t on) {
  const std::lock_guard lock(everything);
  CUstream_st* stream = stream_of(on);
  if (const cudaError_t error = may_issue(stream)) return error;
  event->recorded = true;
  event->capture = stream->capture ? stream->capture->id : 0;
  event->tips = stream->tips;
  event->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(everything);
  if (event->capture) return refuse(cudaErrorCapturedEvent);
  return unsafe_call();
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  count_call("cudaEventSynchronize");
  const std::lock_guard lock(everything);
  if (event->capture) return refuse(cudaErrorCapturedEvent);
  return unsafe_call();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const std::lock_guard lock(everything);
  for (const CUevent_st* event : {from, to}) {
    if (!event->recorded || event->capture || (event->flags & cudaEventDisableTiming))
      return refuse(cudaErrorInvalidResourceHandle);
  }
  *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return cudaSuccess;
}

}  // extern "C"
