// Kernels of the CUDA runtime's double: a launch leaves the kernel's name.
#include <string_view>
#include <vector>

#include "tests/cuda_double/kernels.h"
#include "tests/cuda_double/state.h"

using namespace cuda_double;

namespace {

// True for launch shapes that an H100 allows.
bool can_be(dim3 grid, dim3 block, std::size_t shared) {
  constexpr unsigned most_threads = 1024, most_yz = 65535;
  constexpr std::size_t most_shared = 227 << 10;
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.y <= most_yz && grid.z <= most_yz && block.x > 0 &&
         block.y > 0 && block.z > 0 && block.x * block.y * block.z <= most_threads && shared <= most_shared;
}

cudaError_t launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream) {
  if (!can_be(grid, block, shared)) return refuse(cudaErrorInvalidConfiguration);
  count_launch(kernel);
  return issue(stream, nullptr);
}

struct CallConfiguration {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<CallConfiguration> configurations;

int made_tensor_map() { return 0; }

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  name_kernel(host, name);
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, struct CUstream_st* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  const CallConfiguration last = configurations.back();
  configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void**, std::size_t shared,
                               cudaStream_t stream) {
  return launch(kernel, grid, block, shared, stream);
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void**, std::size_t shared,
                             cudaStream_t stream) {
  return launch(kernel, grid, block, shared, stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void**, std::size_t shared,
                                        cudaStream_t stream) {
  return launch(kernel, grid, block, shared, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void* kernel, void**) {
  return launch(kernel, how->gridDim, how->blockDim, how->dynamicSmemBytes, how->stream);
}
// Driver entry for kernels that copy by tensor maps. A map describes where rows lie; nothing is copied here.
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  const bool known = std::string_view(name) == "cuTensorMapEncodeTiled";
  *function = known ? reinterpret_cast<void*>(&made_tensor_map) : nullptr;
  if (found) *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* of, const void*) {
  *of = {};
  of->maxThreadsPerBlock = 1024;
  of->numRegs = 32;
  of->binaryVersion = of->ptxVersion = 90;
  of->maxDynamicSharedSizeBytes = 227 << 10;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, std::size_t) {
  *blocks = 2;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, std::size_t,
                                                                   unsigned) {
  *blocks = 2;
  return cudaSuccess;
}

}  // extern "C"
