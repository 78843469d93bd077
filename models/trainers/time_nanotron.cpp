// nanotron (Hugging Face, The Ultra-Scale Playbook 2025): Llama on H100, 1F1B, sequence parallel, fp32
// gradients.
//
//   layer = (gpu^q + host^q)^(1/q)
//   host  = floor + floor_tensor·t + floor_nodes·(nodes of a tensor group − 1)
//
// Particular about it: small models wait for the host, which issues the collectives of a tensor group one
// by one (floor_tensor; runs with an all-reduce test above 440 GB/s are a second environment, where that is
// faster). Blocks are dealt out by FLOPs with the head counted in layers. Sequence parallel gathers once
// more backward. ZeRO-0 reduces gradients in fp32 (8 bytes), ZeRO-1 scatters them and gathers weights (6);
// both pay per member.
#include <cmath>

#include "models/trainers/time_layer.h"

namespace slipway::models {
namespace {

constexpr std::array parameters{
    TimeParameter{"gemm_efficiency", "share of peak", "large matrix products"},
    TimeParameter{"gemm_half", "elements", "smallest side of a product that reaches half of gemm_efficiency"},
    TimeParameter{"flash2_efficiency", "share of peak", "FlashAttention 2, causal FLOPs"},
    TimeParameter{"elementwise_traffic", "factor", "bytes of element-wise kernels over their count"},
    TimeParameter{"accumulate_bytes", "bytes per parameter", "gradient accumulation after each micro-batch"},
    TimeParameter{"loss_bytes", "bytes per logit", "traffic of the loss, forward and backward"},
    TimeParameter{"tensor_bandwidth", "bytes/s", "bus bandwidth of collectives in a tensor group inside a node"},
    TimeParameter{"tensor_bandwidth_nodes", "bytes/s", "bus bandwidth of collectives in a tensor group across nodes"},
    TimeParameter{"floor", "s per layer", "host time, forward and backward"},
    TimeParameter{"floor_tensor", "s per layer and member", "host time with a tensor group"},
    TimeParameter{"floor_nodes", "s per layer and node", "host time for each further node of a tensor group"},
    TimeParameter{"floor_fast", "factor", "of floor_tensor in the second environment"},
    TimeParameter{"floor_head", "layers", "host time of the head"},
    TimeParameter{"floor_sharpness", "exponent", "of the smooth maximum of GPU and host"},
    TimeParameter{"pipeline_bandwidth", "bytes/s", "of a transfer between stages"},
    TimeParameter{"pipeline_latency", "s", "of a transfer between stages"},
    TimeParameter{"data_bandwidth", "bytes/s", "of the gradients' reduction over eight nodes"},
    TimeParameter{"data_slowdown", "exponent", "of nodes / 8 in the reduction's time"},
    TimeParameter{"member_all_reduce", "s per member", "of a data-parallel group, ZeRO-0"},
    TimeParameter{"member_scatter", "s per member", "of a data-parallel group, ZeRO-1"},
    TimeParameter{"fixed", "s", "per step"},
};

struct Constants {
  double gemm_efficiency, gemm_half, flash2_efficiency, elementwise_traffic, accumulate_bytes, loss_bytes,
      tensor_bandwidth, tensor_bandwidth_nodes, floor, floor_tensor, floor_nodes, floor_fast, floor_head,
      floor_sharpness, pipeline_bandwidth, pipeline_latency, data_bandwidth, data_slowdown, member_all_reduce,
      member_scatter, fixed;
};
static_assert(sizeof(Constants) == parameters.size() * sizeof(double));

LayerConstants layer_constants(const Constants& v) {
  LayerConstants layer;
  layer.gemm_efficiency = v.gemm_efficiency;
  layer.gemm_half = v.gemm_half;
  layer.flash2_efficiency = v.flash2_efficiency;
  layer.elementwise_traffic = v.elementwise_traffic;
  layer.accumulate_bytes = v.accumulate_bytes;
  return layer;
}

double smooth_maximum(double a, double b, double q) { return std::pow(std::pow(a, q) + std::pow(b, q), 1 / q); }

double replicas(const StepWork& w) { return w.d * w.c; }

double tensor_bandwidth(const StepWork& w, const Constants& v) {
  return w.t <= w.gpus_per_node ? v.tensor_bandwidth : v.tensor_bandwidth_nodes;
}

double host_floor(const StepWork& w, const Constants& v) {
  constexpr double second_environment = 440e9;
  const double fast = w.all_reduce_bytes_per_s > second_environment ? v.floor_fast : 1;
  return v.floor + (w.t > 1 ? v.floor_tensor * w.t * fast : 0) + v.floor_nodes * (std::ceil(w.t / w.gpus_per_node) - 1);
}

double layer_collectives(const StepWork& w, const Constants& v) {
  if (w.t <= 1) return 0;
  // Forward, backward, the gather of sequence parallelism once more; the forward pass's again under recomputation.
  const int reductions = 2 + 2 + (w.sequence_parallel ? 1 : 0) + (w.recompute == Recompute::full ? 2 : 0);
  return reductions * (4 * tokens(w) * w.h * (w.t - 1) / w.t / tensor_bandwidth(w, v));
}

double context_ring(const StepWork& w, const Constants& v) {
  const double once = context_ring_seconds(w, context_ring_bandwidth(w, v.tensor_bandwidth), 0);
  return once * (w.recompute == Recompute::full ? 4 : 3) / 3;
}

// A third of the host's time is the forward pass's.
double layer_host(const StepWork& w, double host) { return w.recompute == Recompute::full ? host * 4 / 3 : host; }

double layer(const StepWork& w, const Constants& v, double host) {
  const Passes passes = layer_passes(w, layer_constants(v));
  const double gpu = passes.forward + passes.backward + again_seconds(w, passes.forward, passes.attention) +
                     layer_collectives(w, v) + context_ring(w, v) +
                     accumulation_seconds(w, layer_constants(v), layer_matrix_parameters(w) / w.t);
  return smooth_maximum(gpu, layer_host(w, host), v.floor_sharpness);
}

double head(const StepWork& w, const Constants& v, double host) {
  const double M = tokens(w);
  double gpu = head_product_seconds(w, layer_constants(v)) + v.loss_bytes * M * w.V / w.t / streaming_rate(w);
  if (w.t > 1) gpu += 8 * M * w.h * (w.t - 1) / w.t / tensor_bandwidth(w, v);
  return smooth_maximum(gpu, v.floor_head * host, v.floor_sharpness);
}

// Parameters of the fullest stage.
double stage_parameters(const StepWork& w, const CostSplit& split) {
  const double layer = layer_matrix_parameters(w), table = w.V * w.h;
  if (w.p <= 1) return w.L * layer + table * (w.tied ? 1 : 2);
  return std::max(split.full * layer + table, split.last * layer + table);
}

double reduction(const StepWork& w, const Constants& v, double parameters_of_stage) {
  if (replicas(w) <= 1) return 0;
  const bool sharded = w.zero > 0;
  constexpr double reference_nodes = 8;
  const double nodes = std::max(replicas(w) * w.t / w.gpus_per_node, 1.0);
  const double bytes = parameters_of_stage * (sharded ? w.gradient_bytes + 2 : 2 * w.gradient_bytes);
  return bytes * std::pow(nodes / reference_nodes, v.data_slowdown) / v.data_bandwidth +
         (sharded ? v.member_scatter : v.member_all_reduce) * (replicas(w) - 1);
}

double update(const StepWork& w, double parameters_of_stage) {
  const double adam_bytes = w.zero > 0 ? 28 / replicas(w) + 4 : 30;
  return parameters_of_stage / w.t * adam_bytes / streaming_rate(w);
}

double seconds(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  const double host = host_floor(w, v), each = layer(w, v, host);
  const double transfers =
      w.p > 1 ? 2 * w.chunks * (2 * tokens(w) * w.h / w.t / v.pipeline_bandwidth + v.pipeline_latency) : 0;
  const CostSplit split = split_by_cost(w);
  const double with_head = head(w, v, host);
  UnevenPipeline pipe;
  pipe.full = split.full * each + transfers;
  pipe.last = split.last * each + with_head + transfers;
  pipe.full_stages = std::min(std::floor(w.L / split.full), std::max(w.p - 1, 1.0));
  pipe.total = w.L * each + with_head + w.p * transfers;
  pipe.stages = w.p;
  pipe.micro_batches = w.m;
  const double pipeline =
      w.p > 1 ? interleaved(w, uneven_pipeline_seconds(pipe), w.m * std::max(pipe.full, pipe.last)) : w.m * pipe.total;
  const double held = stage_parameters(w, split);
  return pipeline + reduction(w, v, held) + update(w, held) + v.fixed;
}

// What the host's floor adds is shared out like the GPU's time, a third to the forward pass.
StepParts parts(const StepWork& run, std::span<const double> values) {
  const auto v = named<Constants>(values);
  StepWork w = run;
  if (w.recompute == Recompute::full) w.recompute = Recompute::none;
  const double host = host_floor(w, v);
  StepParts result;
  result.layer_tensor = layer_collectives(w, v);
  if (w.t * w.c <= w.gpus_per_node) result.layer_context = context_ring(w, v);
  const double work = std::max(layer(w, v, host) - result.layer_tensor - context_ring(w, v), 0.0);
  result.layer_forward = work / 3;
  result.layer_backward = work - result.layer_forward;
  result.head = head(w, v, host);
  result.transfer = 2 * tokens(w) * w.h / w.t / v.pipeline_bandwidth + v.pipeline_latency;
  result.reduction = reduction(w, v, stage_parameters(w, split_by_cost(w)));
  result.fixed = v.fixed;
  return result;
}

Reasons outside(const StepWork& w) {
  const bool flash2 = w.kernels == Kernels::flash2 || w.kernels == Kernels::flash2_rmsnorm;
  return reasons({{w.zero > 1, no_such_zero}, {!flash2, no_such_kernels}});
}

}  // namespace

TimeModel nanotron_time() { return {"nanotron", parameters, seconds, parts, outside}; }

}  // namespace slipway::models
