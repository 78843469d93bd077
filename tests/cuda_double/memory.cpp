// Memory and copies of the CUDA runtime's double. Memory that was never written is zero.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "tests/cuda_double/kernels.h"
#include "tests/cuda_double/state.h"

using namespace cuda_double;

namespace {

struct Allocation {
  std::size_t bytes = 0;
  int device = 0;
  cudaMemoryType type = cudaMemoryTypeDevice;
};

std::map<char*, Allocation> allocations;
std::map<int, std::size_t> used;  // by device; -1: the host

const Allocation* allocation_of(const void* pointer) {
  const auto after = allocations.upper_bound(const_cast<char*>(static_cast<const char*>(pointer)));
  if (after == allocations.begin()) return nullptr;
  const auto& [begin, allocation] = *std::prev(after);
  return static_cast<const char*>(pointer) < begin + allocation.bytes ? &allocation : nullptr;
}

cudaError_t allocate(void** pointer, std::size_t bytes, cudaMemoryType type) {
  count_call(type == cudaMemoryTypeDevice ? "cudaMalloc" : "cudaHostAlloc");
  const std::lock_guard lock(everything);
  if (const cudaError_t error = unsafe_call()) return error;
  std::size_t& in_use = used[type == cudaMemoryTypeDevice ? current_device : -1];
  if (type == cudaMemoryTypeDevice && in_use + bytes > memory_of_device()) return refuse(cudaErrorMemoryAllocation);
  void* memory = mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return refuse(cudaErrorMemoryAllocation);
  in_use += bytes;
  allocations[static_cast<char*>(memory)] = {bytes, current_device, type};
  *pointer = memory;
  return cudaSuccess;
}

cudaError_t release(void* pointer) {
  const std::lock_guard lock(everything);
  if (pointer == nullptr) return cudaSuccess;
  if (const cudaError_t error = unsafe_call()) return error;
  const auto found = allocations.find(static_cast<char*>(pointer));
  if (found == allocations.end()) return refuse(cudaErrorInvalidValue);
  const Allocation allocation = found->second;
  used[allocation.type == cudaMemoryTypeDevice ? allocation.device : -1] -= allocation.bytes;
  munmap(pointer, std::max<std::size_t>(allocation.bytes, 1));
  allocations.erase(found);
  return cudaSuccess;
}

cudaError_t may_copy(const void* to, const void* from, std::size_t bytes, cudaStream_t stream, bool waits) {
  const std::lock_guard lock(everything);
  if (waits && stream_of(stream)->capture == nullptr) {
    if (const cudaError_t error = unsafe_call()) return error;
  }
  const bool pageable = bytes > 0 && (!allocation_of(to) || !allocation_of(from));
  count_call(waits ? "cudaMemcpy" : pageable ? "cudaMemcpyAsync, pageable" : "cudaMemcpyAsync");
  CUgraph_st* capture = stream_of(stream)->capture;
  if (capture == nullptr || !(pageable || waits)) return cudaSuccess;
  capture->broken = true;
  return refuse(cudaErrorStreamCaptureUnsupported);
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream, bool waits) {
  if (const cudaError_t error = may_copy(to, from, bytes, stream, waits)) return error;
  return issue(stream, [=] { std::memmove(to, from, bytes); });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) { return allocate(pointer, bytes, cudaMemoryTypeDevice); }
cudaError_t cudaFree(void* pointer) {
  if (pointer) count_call("cudaFree");
  return release(pointer);
}
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return allocate(pointer, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaFreeHost(void* pointer) { return release(pointer); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(everything);
  *total = memory_of_device();
  *free = *total - used[current_device];
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* of, const void* pointer) {
  const std::lock_guard lock(everything);
  const Allocation* allocation = allocation_of(pointer);
  *of = {};
  of->type = allocation ? allocation->type : cudaMemoryTypeUnregistered;
  of->device = allocation ? allocation->device : -1;
  of->devicePointer = allocation ? const_cast<void*>(pointer) : nullptr;
  of->hostPointer = allocation && allocation->type == cudaMemoryTypeDevice ? nullptr : const_cast<void*>(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  return copy(to, from, bytes, nullptr, true);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return copy(to, from, bytes, stream, false);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, cudaStream_t stream) {
  return copy(to, from, bytes, stream, false);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind, cudaStream_t stream) {
  if (const cudaError_t error = may_copy(to, from, width * height, stream, false)) return error;
  return issue(stream, [=] {
    for (std::size_t row = 0; row < height; ++row)
      std::memmove(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  });
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return issue(nullptr, [=] { std::memset(to, value, bytes); });
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return issue(stream, [=] { std::memset(to, value, bytes); });
}

}  // extern "C"
