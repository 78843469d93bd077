// Where the ranks of this program compute and how they exchange tensors. Two programs, one of each:
//
//   slipway-rank        exec/cpu/     the processor, Gloo; a task is complete when its function returns
//   slipway-rank-cuda   exec/cuda/    one GPU per process, NCCL; every lane has a stream, tasks are only started
//
// Everything else in exec/ is the same for both.
// Guarded by tests/execute_*_test.cpp (CPU) and, over libraries that compute nothing, tests/exec/cuda_host_test.cpp. A third one,
// slipway-rank-ordered, checks on the processor that streams wait for each other where they must
// (tests/exec/execute_stream_order_test.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "exec/lanes/device_queue.h"
#include "exec/lanes/segment_replay.h"
#include "exec/transport/transport.h"
#include "models/model/dtype.h"

namespace slipway::exec {

// The element type of tensors in `dtype`; tf32 is a way to multiply, its tensors are float32.
at::ScalarType torch_dtype(Dtype dtype);

// The device of the process that is number `local_rank` on its node. Throws std::runtime_error, saying how
// many there are, when there is no such GPU.
at::Device device_of_rank(int local_rank);

// Once, before any other thread exists and before device_of_rank. `peers`: other processes take part.
void prepare_device(bool peers, Dtype dtype);

// On the compute lane's thread, before its first task and before its memory is counted: what libraries keep for each thread
// that multiplies matrices, the one of backward passes too (cuBLAS's workspaces), is neither a task's nor the first step's.
// `inverts`: matrices will be inverted (K-FAC), by a library of its own; then also on the main thread before lanes begin,
// so that it is not loaded while a receive waits on the device.
void warm_up(at::Device device, Dtype dtype, bool inverts);

// Null where operators return when they are done.
std::unique_ptr<DeviceQueue> queue_of(at::Device device);

// What records segments on `device`; null where nothing does.
std::unique_ptr<SegmentCapture> capture_of(at::Device device);

// To be called by a lane that reads a tensor which another one has made: its memory is not given away before the lane's
// work so far is done, even when the tensor goes before that. Nothing to do without queues.
void keep_for_this_lane(const at::Tensor& tensor);

// Of a tensor that is complete; what the thread has started since is not waited for.
double number_of(const at::Tensor& scalar);

// sum += left·right, where `sum` may be wider than the matrices (float32 gradients of bfloat16 weights). Tensor cores
// multiply in the matrices' dtype and add up in float32; on the processor the matrices are widened first.
void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right);

// Returns when everything that this thread has started on `device` outside a lane is done.
void finish_work(at::Device device);

// Connects `rank` to the other members; collective over them. Two groups that share members must be
// connected in the same order by all (ascending id), or the connects wait for each other. One thread may
// use it at a time. Throws TransportError. `store_host` tells Gloo the network interface (exec/cpu/).
std::unique_ptr<Transport> connect_transport(const StoreHost& store, const Group& group, int rank,
                                             const std::string& store_host, at::Device device);

}  // namespace slipway::exec
