// A communicator as a NCCL process group of c10d; one GPU per member.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "exec/process/store.h"
#include "exec/transport/transport.h"

namespace slipway::exec {

// Like connect_transport (exec/transport/device.h); tensors are on `device`.
std::unique_ptr<Transport> connect_nccl(const StoreHost& store, const Group& group, int rank, at::Device device);

}  // namespace slipway::exec
