// The device on which the ranks of this program compute and the way in which they exchange tensors. There are two
// programs:
//
//   slipway-rank        exec/transport/cpu/     the processor, Gloo; a task is complete when its function returns
//   slipway-rank-cuda   exec/transport/cuda/    one GPU per process, NCCL; every lane has a stream, tasks only start
//
// Everything else in exec/ is shared.
// Guarded by tests/exec/execute_*_test.cpp (CPU) and, over libraries that compute nothing,
// tests/exec/cuda_host_test.cpp. A third program, slipway-rank-ordered, checks on the processor that streams wait for
// each other where they must (tests/exec/execute_stream_order_test.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "exec/lanes/device_queue.h"
#include "exec/lanes/segment_replay.h"
#include "exec/process/store.h"
#include "exec/transport/transport.h"
#include "models/model/dtype.h"

namespace slipway::exec {

// The element type of tensors in `dtype`. tf32 is a way to multiply; its tensors are float32.
at::ScalarType torch_dtype(Dtype dtype);

// The device of the process with number `local_rank` on its node. Throws std::runtime_error with the number of GPUs
// when there is no such GPU.
at::Device device_of_rank(int local_rank);

// Called once, before any other thread exists and before device_of_rank. `peers`: other processes take part.
void prepare_device(bool peers, Dtype dtype);

// Called on the compute lane's thread, before its first task and before its memory is counted. Libraries keep memory
// for each thread that multiplies matrices, also that of backward passes (cuBLAS's workspaces); no task or step must
// count it. `inverts`: matrices will be inverted (K-FAC), by a further library.
void warm_up(at::Device device, Dtype dtype, bool inverts);

// Null where operators return when they are done.
std::unique_ptr<DeviceQueue> queue_of(at::Device device);

// Records segments on `device`; null where that is impossible.
std::unique_ptr<SegmentCapture> capture_of(at::Device device);

// A lane calls this when it reads a tensor of another lane. The tensor's memory is then kept until the lane's work so
// far is done, even when the tensor is freed earlier. Without queues it does nothing.
void keep_for_this_lane(const at::Tensor& tensor);

// The value of a complete tensor. It does not wait for what the thread has started since.
double number_of(const at::Tensor& scalar);

// sum += left·right, where `sum` may be wider than the matrices (float32 gradients of bfloat16 weights). Tensor cores
// multiply in the matrices' dtype and add in float32; on the processor the matrices are widened first.
void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right);

// Returns when everything that this thread has started on `device` outside a lane is done.
void finish_work(at::Device device);

// Connects `rank` to the other members; collective over them. All must connect groups with common members in the same
// order (ascending id), or the connects wait for each other. One thread may use the transport at a time. Throws
// TransportError. `store_host` gives Gloo the network interface (exec/transport/cpu/).
std::unique_ptr<Transport> connect_transport(const StoreHost& store, const Group& group, int rank,
                                             const std::string& store_host, at::Device device);

}  // namespace slipway::exec
