// How ranks exchange tensors: one Transport per communicator of the graph. c10d process groups behind
// it (Gloo on CPUs, NCCL on GPUs); nothing else in exec/ knows which. All calls block the calling lane's
// thread until the operation is complete on this rank (Gloo) or enqueued on the lane's stream (NCCL).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace slipway {

class Transport {
 public:
  virtual ~Transport() = default;
  // All tensors contiguous. Errors throw c10::Error or std::runtime_error naming communicator and peer.
  virtual void all_reduce(at::Tensor& tensor) = 0;                          // sum, in place
  virtual void all_gather(at::Tensor& whole, const at::Tensor& part) = 0;   // along dimension 0, rank order
  virtual void reduce_scatter(at::Tensor& part, const at::Tensor& whole) = 0;  // sum, along dimension 0
  virtual void send(const at::Tensor& tensor, int member) = 0;              // member = index in communicator
  virtual void receive(at::Tensor& tensor, int member) = 0;
  virtual void barrier() = 0;
  virtual void shutdown() = 0;
};

}  // namespace slipway
