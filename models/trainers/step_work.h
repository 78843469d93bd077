// A training step as the figures that formulas of step time need: shapes, layout and what the hardware can
// do. Names are those of the papers (Hagemann 2023, Fujii 2024), so that a formula reads as in print.
//
//   L layers of h, f, a, k │ V │ s tokens × b sequences │ t × c × p × d GPUs │ m micro-batches per pipeline
//
// Plain numbers, because a fit evaluates a formula for each run some ten thousand times.
// Guarded by tests/models/trainer_time_test.cpp.
#pragma once

#include "models/machine/machine.h"
#include "models/model/sharding.h"

namespace slipway::models {

struct Model;

struct StepWork {
  double L = 0, h = 0, f = 0, a = 0, k = 0, V = 0;
  bool gated = false;  // SwiGLU: gate and up
  bool tied = false;   // head's matrix = embedding's
  double s = 0, b = 1, m = 1;
  double t = 1, c = 1, p = 1, d = 1;
  double gpus = 1, gpus_per_node = 8;
  double chunks = 1;  // of a stage, interleaved
  bool sequence_parallel = false;
  bool fp8 = false;  // products of the layers
  int zero = 0;
  double shard_group = 0;  // GPUs that share one set of shards; 0: all of the data-parallel group
  Kernels kernels = Kernels::flash2_rmsnorm;
  Recompute recompute = Recompute::none;
  double gradient_bytes = 4;                    // per parameter
  double peak_flops = 0;                        // of the dtype
  double memory_bandwidth = 0;                  // bytes/s, of the data sheet
  double all_reduce_bytes_per_s = 0;            // the run's own test inside the node; 0: none
  double port_bandwidth = 0, port_latency = 0;  // bytes/s that one GPU's port sustains, s; 0: none known
};

// Requires a model whose layers are all alike; throws std::invalid_argument for others, and for a machine without
// a peak for `dtype` or without memory bandwidth.
StepWork step_work(const Model& model, const Machine& machine, Dtype dtype);

// Tokens of a micro-batch on one context rank.
inline double tokens(const StepWork& work) { return work.b * work.s / work.c; }
// Layers of the fullest stage where they are dealt out evenly: ⌈L/p⌉.
double fullest_layers(const StepWork& work);

// Parameters of one layer's matrices, and of the fullest stage with its embeddings (on all tensor ranks).
double layer_matrix_parameters(const StepWork& work);

// nanotron deals blocks out in order until a stage holds its share of the FLOPs, the head counted as
// V·h/(4h² + 3hf) layers: stages get ⌈(L + head)/p⌉ layers, the last one the head and what is left, maybe
// nothing.
struct CostSplit {
  double full = 0, last = 0;  // layers of a full stage, and of the last one beside the head
};
CostSplit split_by_cost(const StepWork& work);

}  // namespace slipway::models
