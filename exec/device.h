// Where the ranks of this program compute and how they exchange tensors. Two programs, one of each:
//
//   slipway-rank        exec/cpu/     the processor, Gloo
//   slipway-rank-cuda   exec/cuda/    one GPU per rank of a node, NCCL
//
// Everything else in exec/ is the same for both. A task is complete when its work on the device is: the
// lane waits for its own stream, so that times are true and a task on another lane may read the result.
// Guarded by tests/execute_*_test.cpp (CPU); the GPU program is compiled and linked where nvcc 13 is.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "exec/transport.h"

namespace slipway {

// The device of the rank that is number `local_rank` on its node. Throws std::runtime_error, saying how
// many there are, when there is no such GPU.
at::Device device_of_rank(int local_rank);

// To be called on every lane's thread before its first task: a GPU's lane gets a stream of its own.
void begin_lane(at::Device device);

// Returns when everything that this thread has started on `device` is done.
void finish_work(at::Device device);

// Connects `rank` to the other members; collective over them. Two groups that share members must be
// connected in the same order by all (ascending id), or the connects wait for each other. One thread may
// use it at a time. Throws TransportError. `store_host` tells Gloo the network interface (exec/cpu/).
std::unique_ptr<Transport> connect_transport(const StoreHost& store, const Group& group, int rank,
                                             const std::string& store_host, at::Device device);

}  // namespace slipway
