#include "exec/transport/device.h"

#include <ATen/ATen.h>

#include "exec/transport/cpu/transport_gloo.h"

namespace slipway::exec {

void prepare_device(bool, Dtype) {}
at::Device device_of_rank(int) { return at::kCPU; }

// No queue: operators return when they are done.
std::unique_ptr<DeviceQueue> queue_of(at::Device) { return nullptr; }
std::unique_ptr<SegmentCapture> capture_of(at::Device) { return nullptr; }
void warm_up(at::Device, Dtype, bool) {}
void keep_for_this_lane(const at::Tensor&) {}
double number_of(const at::Tensor& scalar) { return scalar.item<double>(); }
void finish_work(at::Device) {}

void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  sum.addmm_(left.to(sum.scalar_type()), right.to(sum.scalar_type()));
}

std::unique_ptr<Transport> connect_transport(const StoreHost& store, const Group& group, int rank,
                                             const std::string& store_host, at::Device) {
  return connect_gloo(store, group, rank, store_host);
}

}  // namespace slipway::exec
