// The formulas of step time, one per trainer (time_<trainer>.cpp), and the terms that they share.
//
//   step = pipeline of 1F1B (S = all work of a micro-batch on a stage; Σ S + (m − 1)·max S where all alike)
//          + reduction of gradients + optimizer + fixed
//
// A constant enters a formula once and means the same in all of them. Private to models.
// Guarded by tests/models/trainer_time_test.cpp and, feature by feature, tests/models/trainers_test.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "models/machine/kernels.h"
#include "models/trainers/stack.h"

namespace slipway::models {

TimeModel aa_scaling_time();
TimeModel nanotron_time();
TimeModel megatron_core_time();
TimeModel megatron_deepspeed_time();
TimeModel megatron_lm_time();
TimeModel llm_foundry_time();

struct Passes {
  double forward = 0, backward = 0;
  double attention = 0;  // of the forward pass
};

// What runs a second time ahead of the backward pass: all of a layer's forward pass under full recomputation,
// attention alone under selective (Korthikanti et al. 2022, arXiv 2205.05198).
double again_seconds(const StepWork& work, double forward, double attention);

// 2·M·N·K FLOPs at gemm_efficiency of peak, which only large products reach: half of it where the smallest
// side is `half`.
double gemm_seconds(const StepWork& work, double M, double N, double K, double efficiency, double half);
// The four products of a layer, forward; M tokens per rank.
double layer_gemm_seconds(const StepWork& work, double M, double efficiency, double half);

// Share of memory bandwidth that element-wise kernels reach; the fits to published step times hold it here.
constexpr double streaming_share = 0.8;
inline double streaming_rate(const StepWork& work) { return streaming_share * work.memory_bandwidth; }

// Bus bandwidth of a ring over a tensor or a context group: `inside` a node. A group that leaves it crosses its
// border once per ring and direction, over the ports of all its GPUs there, which it shares with the other
// groups of the node; never faster than inside.
double tensor_ring_bandwidth(const StepWork& work, double inside);
double context_ring_bandwidth(const StepWork& work, double inside);
// Keys and values around a context group's ring, once forward and twice backward.
double context_ring_seconds(const StepWork& work, double bandwidth, double latency);

// Chunks divide the bubble: what of a step is not the busiest stage's own work (Narayanan et al. 2021, arXiv
// 2104.04473).
inline double interleaved(const StepWork& work, double step, double busiest) {
  return busiest + (step - busiest) / work.chunks;
}

// Features that only one formula or none prices, as the reasons that TimeModel::outside gives.
constexpr const char* no_context = "context parallelism";
constexpr const char* no_such_zero = "ZeRO 2 and 3";
constexpr const char* no_such_kernels = "its attention kernels (no run of the fit had them)";
using Reasons = std::vector<const char*>;
struct Reason {
  bool holds;
  const char* feature;
};
Reasons reasons(std::initializer_list<Reason> candidates);  // those that hold

// Σ S(i) + (m − 1)·max S(i): at least the time of 1F1B, and exact where no stage waits behind a longer one.
double pipeline_seconds(std::span<const double> stages, double micro_batches);

// 1F1B with equal full stages, a different last one and extra work on the first: the longest path through
// the first, the last full or the last stage. What follows a stage is waited for only as far as its own
// backward passes do not fill the time (forward : backward = 1 : 2). Against a replay of 1F1B: never short,
// at most 2 % too long (8 % with fewer micro-batches than stages).
struct UnevenPipeline {
  double full = 0, last = 0;  // seconds of a full stage and of the last one, one micro-batch
  double full_stages = 1;     // how many stages are full
  double first_extra = 0;     // on the first stage besides
  double total = 0;           // all stages together
  double stages = 1, micro_batches = 1;
};
double uneven_pipeline_seconds(const UnevenPipeline& pipeline);

}  // namespace slipway::models
