// Devices and errors of the CUDA runtime's double.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "tests/cuda_double/kernels.h"
#include "tests/cuda_double/state.h"

namespace cuda_double {

std::mutex everything;
thread_local int current_device = 0;

namespace {

thread_local cudaError_t last_error = cudaSuccess;

long long number(const char* variable, long long otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

}  // namespace

cudaError_t refuse(cudaError_t error) {
  last_error = error;
  return error;
}

int gpus() {
  static const int count = static_cast<int>(number("SLIPWAY_DOUBLE_GPUS", 1));
  return count;
}

std::size_t memory_of_device() {
  static const auto bytes = static_cast<std::size_t>(number("SLIPWAY_DOUBLE_MEMORY", 16LL << 30));
  return bytes;
}

}  // namespace cuda_double

using namespace cuda_double;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = gpus();
  return *count > 0 ? cudaSuccess : refuse(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= gpus()) return refuse(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* of, int device) {
  if (device < 0 || device >= gpus()) return refuse(cudaErrorInvalidDevice);
  *of = {};
  std::snprintf(of->name, sizeof of->name, "CUDA double (no GPU: kernels do nothing)");
  of->totalGlobalMem = memory_of_device();
  of->major = 9;  // as an H100
  of->minor = 0;
  of->multiProcessorCount = 132;
  of->warpSize = 32;
  of->maxThreadsPerBlock = 1024;
  of->maxThreadsPerMultiProcessor = 2048;
  of->maxThreadsDim[0] = of->maxThreadsDim[1] = 1024;
  of->maxThreadsDim[2] = 64;
  of->maxGridSize[0] = 2147483647;
  of->maxGridSize[1] = of->maxGridSize[2] = 65535;
  of->sharedMemPerBlock = 48 << 10;
  of->sharedMemPerBlockOptin = 227 << 10;
  of->sharedMemPerMultiprocessor = 228 << 10;
  of->reservedSharedMemPerBlock = 1 << 10;
  of->regsPerBlock = of->regsPerMultiprocessor = 65536;
  of->l2CacheSize = 50 << 20;
  of->textureAlignment = 512;
  of->memoryBusWidth = 5120;
  of->concurrentKernels = 1;
  of->asyncEngineCount = 3;
  of->unifiedAddressing = 1;
  of->managedMemory = 1;
  of->cooperativeLaunch = 1;
  of->maxBlocksPerMultiProcessor = 32;
  of->streamPrioritiesSupported = 1;
  of->pciDeviceID = device;
  of->uuid.bytes[0] = static_cast<char>(device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp of;
  if (const cudaError_t error = cudaGetDeviceProperties(&of, device)) return error;
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = of.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = of.minor;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = of.multiProcessorCount;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = of.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = of.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(of.sharedMemPerBlock);
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(of.sharedMemPerBlockOptin);
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(of.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      *value = static_cast<int>(of.reservedSharedMemPerBlock);
      break;
    case cudaDevAttrMaxGridDimX:
      *value = of.maxGridSize[0];
      break;
    case cudaDevAttrMaxGridDimY:
      *value = of.maxGridSize[1];
      break;
    case cudaDevAttrMaxGridDimZ:
      *value = of.maxGridSize[2];
      break;
    case cudaDevAttrMaxRegistersPerBlock:
      *value = of.regsPerBlock;
      break;
    case cudaDevAttrWarpSize:
      *value = of.warpSize;
      break;
    case cudaDevAttrL2CacheSize:
      *value = of.l2CacheSize;
      break;
    case cudaDevAttrCooperativeLaunch:
      *value = of.cooperativeLaunch;
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      *value = of.maxBlocksPerMultiProcessor;
      break;
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrGPUDirectRDMASupported:
      *value = 0;
      break;
    default:
      std::fprintf(stderr, "cuda double: device attribute %d is unknown here\n", static_cast<int>(attribute));
      return refuse(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = 0;
  *highest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  count_call("cudaDeviceSynchronize");
  const std::lock_guard lock(everything);
  if (captures.empty()) return cudaSuccess;
  for (const auto& [id, graph] : captures) graph->broken = true;
  return refuse(cudaErrorStreamCaptureUnsupported);
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }
const char* cudaGetErrorString(cudaError_t error) {
  static const std::map<int, const char*> texts = {
      {cudaSuccess, "no error"},
      {cudaErrorInvalidValue, "invalid argument"},
      {cudaErrorMemoryAllocation, "out of memory"},
      {cudaErrorNoDevice, "no CUDA-capable device is detected"},
      {cudaErrorInvalidDevice, "invalid device ordinal"},
      {cudaErrorInvalidResourceHandle, "invalid resource handle"},
      {cudaErrorNotReady, "device not ready"},
      {cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"},
      {cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"},
      {cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"},
      {cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream"},
      {cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"},
      {cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread"},
  };
  const auto found = texts.find(error);
  return found == texts.end() ? "an error of the CUDA double" : found->second;
}

}  // extern "C"
