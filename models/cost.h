// What one task costs on one machine, in seconds, without contention.
//
//   compute  = task_overhead + Σ over operators [ kernels·launch_overhead
//                + max( FLOPs / (peak·efficiency(shape)), bytes / (memory_bandwidth·memory_efficiency) ) ]
//   transfer = latency + bytes / bandwidth
//   ring all-reduce = 2(n−1)·α + 2(n−1)/n·S/B           (collectives.h)
//
// One function per kind of work; engines add sharing of cores and links on top.
// Guarded by tests/cost_test.cpp and tests/collectives_test.cpp (closed forms).
#pragma once

#include <span>

#include "models/machine.h"
#include "models/operators.h"

namespace slipway {

enum class Direction : std::uint8_t { forward, input_grad, weight_grad, backward };  // backward = both grads

// Share of peak FLOP/s that a GEMM of this shape reaches on `machine`.
double gemm_efficiency(const Machine& machine, std::int64_t m, std::int64_t n, std::int64_t k);

// Seconds of one operator in one direction. Throws std::invalid_argument when the machine has no peak
// for the operator's dtype (a profile never lets a number be invented).
double operator_seconds(const Machine& machine, const Operator& op, Direction direction);

// Seconds of a run of compute operators (communicate entries are skipped; task_overhead not included).
double operators_seconds(const Machine& machine, std::span<const Operator> operators, Direction direction);

// AdamW on `elements` parameters held by this rank: bound by memory traffic.
double optimizer_seconds(const Machine& machine, double elements, Dtype parameter_dtype);

// Sum of squares over `bytes` of gradients.
double norm_seconds(const Machine& machine, double bytes);

// α-β time of a collective over n members, `bytes` = whole (gathered or reduced) tensor.
// ring: all_reduce 2(n−1)α + 2(n−1)/n·S/B; all_gather, reduce_scatter (n−1)α + (n−1)/n·S/B.
// reduce_bandwidth adds (n−1)/n·S/R for the additions where R > 0. n = 1 costs 0.
double ring_seconds(Collective collective, int members, double bytes, double latency, double bandwidth,
                    double reduce_bandwidth);

}  // namespace slipway
