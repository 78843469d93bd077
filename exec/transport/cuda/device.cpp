#include "exec/transport/device.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <stdexcept>

#include "exec/transport/cuda/graph_capture.h"
#include "exec/transport/cuda/stream_queue.h"
#include "exec/transport/cuda/transport_nccl.h"

namespace slipway::exec {
namespace {

bool has_peers = false;  // written before other threads exist

}  // namespace

// A kernel that is loaded at first use waits for running ones, and a receive runs until its peer sends. The first steps
// take care of that (exec/lanes/turns.h). What they may not have used, such as a checkpoint's copies, is loaded at the
// start when there are peers; attention does not use cuDNN's kernels, which are compiled at first use.
void prepare_device(bool peers, Dtype dtype) {
  has_peers = peers;
  if (peers) {
    for (const char* loading : {"CUDA_MODULE_LOADING", "CUDA_MODULE_DATA_LOADING"}) setenv(loading, "EAGER", 0);
    at::globalContext().setSDPUseCuDNN(false);
  }
  at::globalContext().setAllowTF32CuBLAS(dtype == Dtype::tf32);
}

at::Device device_of_rank(int local_rank) {
  const int count = c10::cuda::device_count();
  if (local_rank >= count) {
    throw std::runtime_error("this node has " + std::to_string(count) + " usable GPUs, but this is process " +
                             std::to_string(local_rank) +
                             " on it; start at most one process per GPU (CUDA_VISIBLE_DEVICES says which are "
                             "usable) with several ranks each (--ranks-per-process), or run slipway-rank on CPUs");
  }
  const auto index = static_cast<c10::DeviceIndex>(local_rank);
  c10::cuda::set_device(index);  // of this thread
  return {at::kCUDA, index};
}

void warm_up(at::Device device, Dtype dtype, bool inverts) {
  const at::AutoGradMode with_gradients(true);
  const at::Tensor matrix = at::ones({16, 16}, at::TensorOptions().device(device).dtype(torch_dtype(dtype)));
  matrix.set_requires_grad(true);
  at::mm(matrix, matrix).sum().backward();
  if (!inverts) return;
  const at::NoGradGuard no_grad;  // as exec/rank/kfac.cpp inverts, in the dtypes of factors
  const at::Tensor unit = at::eye(16, matrix.options().dtype(dtype == Dtype::float64 ? at::kDouble : at::kFloat));
  at::Tensor columns = at::eye(16, unit.options());
  at::linalg_solve_triangular_out(columns, std::get<0>(at::linalg_cholesky_ex(unit)), columns, /*upper=*/false);
}

std::unique_ptr<DeviceQueue> queue_of(at::Device device) { return stream_queue(device); }

std::unique_ptr<SegmentCapture> capture_of(at::Device) { return graph_capture(!has_peers); }

void keep_for_this_lane(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return;
  const auto lock = no_graph_is_recorded();
  tensor.record_stream(c10::cuda::getCurrentCUDAStream(tensor.device().index()).unwrap());
}

// Uses a separate stream, because work that the lane has started since need not be over.
double number_of(const at::Tensor& scalar) {
  const c10::cuda::CUDAStreamGuard aside(c10::cuda::getStreamFromPool(true, scalar.device().index()));
  return scalar.item<double>();
}

void finish_work(at::Device device) { c10::cuda::getCurrentCUDAStream(device.index()).synchronize(); }

// Not widened: a product of float32 matrices has a fourteenth of the speed of bfloat16's (H100).
void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  at::addmm_out(sum, sum, left, right, sum.scalar_type());
}

std::unique_ptr<Transport> connect_transport(const StoreHost& store, const Group& group, int rank, const std::string&,
                                             at::Device device) {
  return connect_nccl(store, group, rank, device);
}

}  // namespace slipway::exec
