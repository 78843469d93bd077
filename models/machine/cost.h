// Seconds of one task on one machine, without contention.
//
//   compute  = task_overhead + Σ over operators [ kernels·launch_overhead
//                + max( FLOPs / (peak·efficiency(shape)), bytes / R ) + element-wise bytes / R ]
//   R = memory_bandwidth·memory_efficiency
//   transfer, collectives: ring.h, collectives.h
//
// One function per kind of work; engines add sharing of cores and links on top.
// Guarded by tests/models/cost_test.cpp (closed forms).
#pragma once

#include <cstdint>
#include <span>

#include "models/machine/machine.h"
#include "models/model/operators.h"

namespace slipway::models {

enum class Direction : std::uint8_t { forward, input_grad, weight_grad, backward };  // backward = both grads

// Share of peak FLOP/s that a GEMM of this shape reaches on `machine`:
// gemm_efficiency / (1 + gemm_half / min(m, n, k)), half of the limit where the smallest side is gemm_half.
double gemm_efficiency(const Machine& machine, std::int64_t m, std::int64_t n, std::int64_t k);

// Seconds of one operator in one direction; 0 if it has no work in it. A weight gradient is only the GEMM; everything
// else of the backward pass is input_grad; backward = input_grad + weight_grad. Throws std::invalid_argument for a
// communicate operator, and when the machine has no peak for the operator's dtype or no memory bandwidth: a profile's
// missing number is never invented.
double operator_seconds(const Machine& machine, const Operator& op, Direction direction);

// Seconds that the host needs to launch an operator's kernels; 0 without measured kernels: their launches are then part
// of the operator's own time.
double host_seconds(const Machine& machine, const Operator& op, Direction direction);

// Seconds of a run of compute operators (communicate entries are skipped; task_overhead not included).
double operators_seconds(const Machine& machine, std::span<const Operator> operators, Direction direction);

// Seconds of AdamW on `elements` parameters of this rank: one fused kernel bound by memory traffic. It reads and writes master weight and two moments and reads the gradient, all in fp32 or wider. It
// writes the weight once more where parameters have a narrower dtype. That is 30 bytes an element in bfloat16, 28 in
// float32.
// Moments of 2 bytes leave 22 of the 30.
double optimizer_seconds(const Machine& machine, double elements, Dtype parameter_dtype,
                         Dtype moment_dtype = Dtype::float32);

// Seconds of the same on the cores of the host, at this GPU's share of the host's memory bandwidth. Throws
// std::invalid_argument when the machine has no host_memory_bandwidth.
double host_update_seconds(const Machine& machine, double elements, Dtype parameter_dtype, Dtype moment_dtype);

// Seconds of casts that move `bytes`, bound by memory traffic. Their launches are left out.
double cast_seconds(const Machine& machine, double bytes);

// Seconds of a sum of squares over `bytes` of gradients, which are read once.
double norm_seconds(const Machine& machine, double bytes);

// Seconds of the sum of two tensors of `bytes`, one kernel bound by memory traffic: it reads both and writes the sum.
double adding_seconds(const Machine& machine, double bytes);

}  // namespace slipway::models
