#include "exec/device.h"

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <stdexcept>

#include "exec/cuda/transport_nccl.h"

namespace slipway {

at::Device device_of_rank(int local_rank) {
  const int count = c10::cuda::device_count();
  if (local_rank >= count) {
    throw std::runtime_error("this node has " + std::to_string(count) + " usable GPUs, but this is rank " +
                             std::to_string(local_rank) +
                             " on it; start at most one rank per GPU (CUDA_VISIBLE_DEVICES tells which are "
                             "usable), or run slipway-rank on CPUs");
  }
  return {at::kCUDA, static_cast<c10::DeviceIndex>(local_rank)};
}

void begin_lane(at::Device device) {
  c10::cuda::set_device(device.index());
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(false, device.index()));
}

void finish_work(at::Device device) { c10::cuda::getCurrentCUDAStream(device.index()).synchronize(); }

std::unique_ptr<Transport> connect_transport(const StoreHost& store, const Group& group, int rank,
                                             const std::string&, at::Device device) {
  return connect_nccl(store, group, rank, device);
}

}  // namespace slipway
