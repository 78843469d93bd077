// AA-Scaling (Hagemann et al. 2023, arXiv 2311.05610): Llama on A100, 1F1B, ZeRO-1, bf16 gradients.
//
//   reduction = bytes · [(nodes / 8)^slowdown / data_bandwidth + 1 / (t · rank_bandwidth)]
//               · (1 + pressure · gate)
//
// Particular about it: five sets of kernels side by side. Without sequence parallelism the element-wise
// work is the same on every tensor rank. Logits are gathered over the tensor group, so the loss is not
// divided by t. Reduction of the gradients slows down with the nodes that a data-parallel group spans, and
// where there is no pipeline part of it hides behind the last backward pass. Runs near the memory limit
// reduce more slowly (the allocator frees and asks again): gate = 1/(1 + e^−(GB − 65)/3) of the predicted
// memory.
#include <cmath>

#include "models/trainers/time_layer.h"

namespace slipway::models {
namespace {

constexpr std::array parameters{
    TimeParameter{"gemm_efficiency", "share of peak", "large matrix products"},
    TimeParameter{"gemm_half", "elements", "smallest side of a product that reaches half of gemm_efficiency"},
    TimeParameter{"flash1_efficiency", "share of peak", "FlashAttention 1, causal FLOPs"},
    TimeParameter{"flash2_efficiency", "share of peak", "FlashAttention 2, causal FLOPs"},
    TimeParameter{"score_efficiency", "share of peak", "products of unfused attention, full FLOPs"},
    TimeParameter{"elementwise_traffic", "factor", "bytes of adds, rotary, activation, fused norms, over their count"},
    TimeParameter{"norm_traffic", "factor", "bytes of unfused norms, over their count"},
    TimeParameter{"softmax_traffic", "factor", "bytes of unfused softmax, over their count"},
    TimeParameter{"fused_softmax_traffic", "factor", "bytes of the fused softmax, over their count"},
    TimeParameter{"accumulate_bytes", "bytes per parameter", "gradient accumulation after each micro-batch"},
    TimeParameter{"loss_bytes", "bytes per logit", "traffic of the loss, forward and backward"},
    TimeParameter{"recompute", "factor", "a recomputed forward pass over a forward pass"},
    TimeParameter{"tensor_bandwidth", "bytes/s", "bus bandwidth of collectives in a tensor group"},
    TimeParameter{"tensor_latency", "s", "of a collective in a tensor group"},
    TimeParameter{"pipeline_bandwidth", "bytes/s", "of a transfer between stages"},
    TimeParameter{"pipeline_latency", "s", "of a transfer between stages"},
    TimeParameter{"data_bandwidth", "bytes/s", "of the gradients' reduction over eight nodes"},
    TimeParameter{"data_slowdown", "exponent", "of nodes / 8 in the reduction's time"},
    TimeParameter{"rank_bandwidth", "bytes/s", "of one rank in the reduction"},
    TimeParameter{"data_exposed", "share", "of the reduction that is exposed without a pipeline"},
    TimeParameter{"memory_pressure", "factor", "longer reduction where memory is full"},
    TimeParameter{"fixed", "s", "per step"},
};

struct Constants {
  LayerConstants layer;
  double loss_bytes, recompute, tensor_bandwidth, tensor_latency, pipeline_bandwidth, pipeline_latency, data_bandwidth,
      data_slowdown, rank_bandwidth, data_exposed, memory_pressure, fixed;
};
static_assert(sizeof(Constants) == parameters.size() * sizeof(double));

double all_reduce(const StepWork& w, const Constants& v, double bytes) {
  const double bandwidth = tensor_ring_bandwidth(w, v.tensor_bandwidth);
  return w.t > 1 ? 2 * bytes * (w.t - 1) / w.t / bandwidth + v.tensor_latency : 0;
}

double context_ring(const StepWork& w, const Constants& v) {
  return context_ring_seconds(w, context_ring_bandwidth(w, v.tensor_bandwidth), v.tensor_latency);
}

double layer(const StepWork& w, const Constants& v) {
  Passes passes = layer_passes(w, v.layer);
  const double reduce = 2 * all_reduce(w, v, 2 * tokens(w) * w.h), ring = context_ring(w, v);
  passes.forward += reduce + ring / 3;
  passes.backward += reduce + ring * 2 / 3;
  return passes.forward + passes.backward + v.recompute * again_seconds(w, passes.forward, passes.attention) +
         accumulation_seconds(w, v.layer, layer_matrix_parameters(w) / w.t);
}

// The loss reads logits of the whole vocabulary on every tensor rank.
double head(const StepWork& w, const Constants& v) {
  const double M = tokens(w);
  double seconds = head_product_seconds(w, v.layer) + v.loss_bytes * M * w.V / streaming_rate(w);
  if (w.t > 1)
    seconds += (2 * M * w.V + (w.sequence_parallel ? 8 : 4) * M * w.h) * (w.t - 1) / w.t /
               tensor_ring_bandwidth(w, v.tensor_bandwidth);
  return seconds;
}

double stage_parameters(const StepWork& w) {
  return fullest_layers(w) * layer_matrix_parameters(w) + w.V * w.h * (w.p > 1 ? 1 : 2);
}

double replicas(const StepWork& w) { return w.d * w.c; }

// Bytes of the fullest stage, with the constants of a fit to this table's verdicts (bytes per token and
// hidden unit 10.6 + 13.6 without norm kernels, 1.10 of the rest, 18 per logit, 1.9 GB of libraries).
double memory_bytes(const StepWork& w) {
  const double M = tokens(w), own = w.sequence_parallel ? w.t : 1;
  const double norms = w.kernels == Kernels::flash2_rmsnorm ? 0 : 13.6;
  const double score_bytes = w.recompute == Recompute::selective   ? 0
                             : w.kernels == Kernels::torch         ? 6.9
                             : w.kernels == Kernels::fused_softmax ? 5.5
                                                                   : 0;
  const double whole = M * w.h * (10.6 + norms) / own + 1.10 * 8 * M * (w.h + w.f) / w.t +
                       score_bytes * w.b * w.a / w.t * w.s * w.s / w.c;
  const bool again = w.recompute == Recompute::full;
  const auto kept = [&](double in_flight) {
    const double layers = in_flight * fullest_layers(w);
    return again ? layers * 2 * M * w.h + whole : layers * whole;
  };
  const double held = stage_parameters(w) / w.t * (4 + 12 / replicas(w)), logits = 18 * M * w.V;
  return std::max(held + kept(std::min(w.p, w.m)) + (w.p > 1 ? 0 : logits), held + kept(1) + logits) + 1.9e9;
}

double reduction(const StepWork& w, const Constants& v) {
  if (replicas(w) <= 1) return 0;
  constexpr double reference_nodes = 8, full_bytes = 65e9, full_width = 3e9;
  const double bytes = stage_parameters(w) * (w.zero > 0 ? 2 + w.gradient_bytes : 2 * w.gradient_bytes);
  const double nodes = std::max(replicas(w) * w.t / w.gpus_per_node, 1.0);
  const double seconds =
      bytes * (std::pow(nodes / reference_nodes, v.data_slowdown) / v.data_bandwidth + 1 / (w.t * v.rank_bandwidth));
  const double gate = 1 / (1 + std::exp(-(memory_bytes(w) - full_bytes) / full_width));
  return seconds * (w.p > 1 ? 1 : v.data_exposed) * (1 + v.memory_pressure * gate);
}

double seconds(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  const double M = tokens(w), rate = streaming_rate(w);
  const double embedding = 10 * M * w.h / rate + all_reduce(w, v, 2 * M * w.h);
  const double transfers = w.p > 1 ? 2 * w.chunks * (2 * M * w.h / v.pipeline_bandwidth + v.pipeline_latency) : 0;
  const double each = layer(w, v), with_head = head(w, v), more = std::fmod(w.L, w.p);
  UnevenPipeline pipe;  // the first stages have a layer more where p does not divide L
  pipe.full = fullest_layers(w) * each + transfers;
  pipe.last = std::floor(w.L / w.p) * each + transfers + with_head;
  pipe.full_stages = more > 0 ? more : std::max(w.p - 1, 1.0);
  pipe.first_extra = embedding;
  pipe.total = w.L * each + with_head + embedding + w.p * transfers;
  pipe.stages = w.p;
  pipe.micro_batches = w.m;
  constexpr double adam_bytes = 28;  // master weight and moments read and written, gradient read
  const double pipeline =
      w.p > 1 ? interleaved(w, uneven_pipeline_seconds(pipe), w.m * std::max(pipe.full, pipe.last)) : w.m * pipe.total;
  const double updated = stage_parameters(w) / w.t / (w.zero > 0 ? replicas(w) : 1);
  return pipeline + reduction(w, v) + updated * adam_bytes / rate + v.fixed;
}

StepParts parts(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  const double M = tokens(w);
  const Passes passes = layer_passes(w, v.layer);
  StepParts result;
  result.layer_forward = passes.forward;
  result.layer_backward = passes.backward + accumulation_seconds(w, v.layer, layer_matrix_parameters(w) / w.t) +
                          v.recompute * again_seconds(w, passes.forward, passes.attention) -
                          (w.recompute == Recompute::full ? passes.forward : 0);
  if (w.t * w.c <= w.gpus_per_node) result.layer_context = context_ring(w, v);
  if (w.t <= w.gpus_per_node) result.layer_tensor = 4 * all_reduce(w, v, 2 * M * w.h);
  result.head = head(w, v);
  result.transfer = 2 * M * w.h / v.pipeline_bandwidth + v.pipeline_latency;
  result.reduction = reduction(w, v);
  result.fixed = v.fixed;
  return result;
}

Reasons outside(const StepWork& w) { return reasons({{w.zero > 1, no_such_zero}}); }

}  // namespace

TimeModel aa_scaling_time() { return {"aa-scaling", parameters, seconds, parts, outside}; }

}  // namespace slipway::models
