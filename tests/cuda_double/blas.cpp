// libcublas.so.13 without a GPU: PyTorch's calls for products of matrices. They do nothing, but are counted by name
// like kernels.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <thread>

#include "tests/cuda_double/kernels.h"

namespace {

cublasStatus_t done(const char* name) {
  cuda_double::count_call(name);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

// Device memory, because the real one takes some: so none is made while a stream is captured.
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  constexpr auto moment = std::chrono::milliseconds(100);  // a library that is loaded takes its time
  std::this_thread::sleep_for(moment);
  cuda_double::load("cublasCreate");
  void* own = nullptr;
  if (cudaMalloc(&own, 1) != cudaSuccess) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = static_cast<cublasHandle_t>(own);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return cudaFree(handle) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t* mode) {
  *mode = CUBLAS_DEFAULT_MATH;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t, cublasPointerMode_t* mode) {
  *mode = CUBLAS_POINTER_MODE_HOST;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                            const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                            cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t) {
  return done("cublasGemmEx");
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                          const void*, const void*, cudaDataType, int, long long, const void*,
                                          cudaDataType, int, long long, const void*, void*, cudaDataType, int,
                                          long long, int, cublasComputeType_t, cublasGemmAlgo_t) {
  return done("cublasGemmStridedBatchedEx");
}
cublasStatus_t cublasSgemm_v2(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const float*,
                              const float*, int, const float*, int, const float*, float*, int) {
  return done("cublasSgemm");
}
cublasStatus_t cublasDgemm_v2(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const double*,
                              const double*, int, const double*, int, const double*, double*, int) {
  return done("cublasDgemm");
}
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                         const float*, const float*, int, long long, const float*, int, long long,
                                         const float*, float*, int, long long, int) {
  return done("cublasSgemmStridedBatched");
}
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                         const double*, const double*, int, long long, const double*, int, long long,
                                         const double*, double*, int, long long, int) {
  return done("cublasDgemmStridedBatched");
}

}  // extern "C"
