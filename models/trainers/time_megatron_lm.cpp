// Megatron-LM as its papers measured it: GPTs in fp16, unfused attention with the fused scaled softmax, tensor
// parallelism, interleaved 1F1B (Narayanan et al. 2021,
// arXiv 2104.04473), gradients reduced after the last backward pass.
//
//   step = Σ S + (m − 1)·max S, the bubble divided by the chunks, + transfers + reduction + update + fixed
//
// Particular about it: without sequence parallelism element-wise kernels between the products of a layer work on
// all tokens on every tensor rank; the runs of the fit recompute all layers, other runs are counted; transfers between
// stages are scattered over the tensor group and gathered inside the node.
#include <cmath>
#include <vector>

#include "models/trainers/time_formulas.h"

namespace slipway::models {
namespace {

constexpr std::array parameters{
    TimeParameter{"gemm_efficiency", "share of peak", "large matrix products"},
    TimeParameter{"gemm_half", "elements", "smallest side of a product that reaches half of gemm_efficiency"},
    TimeParameter{"score_efficiency", "share of peak", "products of unfused attention"},
    TimeParameter{"softmax_bytes", "bytes per score", "traffic of the fused softmax and dropout, forward and backward"},
    TimeParameter{"elementwise_bytes", "bytes", "per token and hidden unit of a layer, forward and backward"},
    TimeParameter{"loss_bytes", "bytes per logit", "traffic of the loss, forward and backward"},
    TimeParameter{"tensor_bandwidth", "bytes/s", "bus bandwidth of collectives in a tensor group"},
    TimeParameter{"tensor_latency", "s", "of a collective in a tensor group"},
    TimeParameter{"pipeline_bandwidth", "bytes/s", "of a transfer between stages, per GPU"},
    TimeParameter{"data_bandwidth", "bytes/s", "of the gradients' reduction, one node"},
    TimeParameter{"fixed", "s", "per step"},
};

struct Constants {
  double gemm_efficiency, gemm_half, score_efficiency, softmax_bytes, elementwise_bytes, loss_bytes, tensor_bandwidth,
      tensor_latency, pipeline_bandwidth, data_bandwidth, fixed;
};
static_assert(sizeof(Constants) == parameters.size() * sizeof(double));

double collective(const StepWork& w, const Constants& v) {
  const double bandwidth = tensor_ring_bandwidth(w, v.tensor_bandwidth);
  return w.t > 1 ? 4 * w.b * w.s * w.h * (w.t - 1) / w.t / bandwidth + v.tensor_latency : 0;
}

// Without its collectives. A third of products and traffic is the forward pass's.
Passes layer_passes(const StepWork& w, const Constants& v) {
  const double M = w.b * w.s, rate = streaming_rate(w), own = w.sequence_parallel ? w.t : 1;
  const double products = layer_gemm_seconds(w, M, v.gemm_efficiency, v.gemm_half);
  const double attention = 4 * w.b * w.s * w.s * w.h / w.t / (w.peak_flops * v.score_efficiency) +
                           w.b * (w.a / w.t) * w.s * w.s * v.softmax_bytes / rate / 3;
  const double elementwise = M * (w.h * v.elementwise_bytes / own + 10 * w.f / w.t) / rate / 3;
  const double forward = products + attention + elementwise;
  return {forward, 2 * forward, attention};
}

double layer(const StepWork& w, const Constants& v) {
  const Passes passes = layer_passes(w, v);
  const double reduce = 2 * collective(w, v);  // in each pass
  return passes.forward + passes.backward + 2 * reduce + again_seconds(w, passes.forward + reduce, passes.attention);
}

double head(const StepWork& w, const Constants& v) {
  const double M = w.b * w.s;
  return 3 * gemm_seconds(w, M, w.V / w.t, w.h, v.gemm_efficiency, v.gemm_half) +
         v.loss_bytes * M * w.V / w.t / streaming_rate(w);
}

double transfer(const StepWork& w, const Constants& v) { return 2 * w.b * w.s * w.h / w.t / v.pipeline_bandwidth; }

double pipeline(const StepWork& w, const Constants& v) {
  const double each = layer(w, v);
  const double transfers = w.p > 1 ? 2 * w.chunks * transfer(w, v) : 0;
  const double longest = fullest_layers(w) * each + head(w, v) + transfers;
  return w.m * longest + (w.p - 1) * (w.L / w.p * each + transfers) / w.chunks;
}

double held_parameters(const StepWork& w) { return (fullest_layers(w) * layer_matrix_parameters(w) + w.V * w.h) / w.t; }

double reduction(const StepWork& w, const Constants& v) {
  // A distributed optimizer scatters gradients and gathers weights.
  const double bytes = (w.zero > 0 ? w.gradient_bytes + 2 : 2 * w.gradient_bytes) * held_parameters(w);
  return w.d > 1 ? bytes * (w.d - 1) / w.d * std::min(w.gpus_per_node, w.gpus) / v.data_bandwidth : 0;
}

double step_end(const StepWork& w, const Constants& v) {
  double seconds = held_parameters(w) * 30 / (w.zero > 0 ? w.d : 1) / streaming_rate(w) + reduction(w, v);
  if (w.p > 1) seconds += 2 * w.gradient_bytes * w.V * w.h / w.t * w.gpus_per_node / 2 / v.data_bandwidth;
  return seconds;
}

double seconds(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  return pipeline(w, v) + step_end(w, v) + v.fixed;
}

StepParts parts(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  StepParts result;
  const Passes passes = layer_passes(w, v);
  result.layer_forward = passes.forward;
  result.layer_backward = passes.backward + again_seconds(w, 0, passes.attention);
  if (w.t <= w.gpus_per_node) result.layer_tensor = 4 * collective(w, v);
  result.head = head(w, v);
  result.transfer = transfer(w, v);
  result.reduction = reduction(w, v);
  result.fixed = v.fixed;
  return result;
}

Reasons outside(const StepWork& w) {
  return reasons(
      {{w.c > 1, no_context}, {w.zero > 1, no_such_zero}, {w.kernels != Kernels::fused_softmax, no_such_kernels}});
}

}  // namespace

TimeModel megatron_lm_time() { return {"megatron-lm", parameters, seconds, parts, outside}; }

}  // namespace slipway::models
