// Megatron-Core (Fujii et al. 2024, arXiv 2411.06465): Llama with tensor, context and pipeline parallelism,
// flash attention, fused norms, sequence parallel, distributed optimizer, gradients reduced in fp32 while
// the last backward pass runs.
//
//   step = Σ S(i) + Σ transfers + (m − 1)·(max S + max transfers) + what of the reduction nothing hides
//          + delay · (c·p/2)^growth · √(m/b) · E[slowest of d]
//
// Particular about it: three of four all-reduces of a layer are seen (6 half volumes; the rest hides behind
// weight gradients). NVLink of a node without a switch is shared out over pairs (`pairs`, TSUBAME4.0: 1/3).
// Transfers between stages cross the network only where a node ends. Ranks of one replica wait for each
// other's random delays, which add up as √m; the slowest of d replicas sets the step (E: mean of the
// largest of d normal deviates, Blom 1958).
#include <array>
#include <cmath>

#include "models/trainers/time_formulas.h"

namespace slipway::models {
namespace {

constexpr std::array parameters{
    TimeParameter{"gemm_efficiency", "share of peak", "large matrix products"},
    TimeParameter{"gemm_half", "elements", "smallest side of a product that reaches half of gemm_efficiency"},
    TimeParameter{"flash2_efficiency", "share of peak", "FlashAttention 2"},
    TimeParameter{"elementwise_bytes", "bytes", "per token and hidden unit of a layer, forward and backward"},
    TimeParameter{"accumulate_bytes", "bytes per parameter", "gradient accumulation after each micro-batch"},
    TimeParameter{"loss_bytes", "bytes per logit", "traffic of the loss, forward and backward"},
    TimeParameter{"tensor_bandwidth", "bytes/s", "inside a node, all links of a GPU"},
    TimeParameter{"tensor_latency", "s", "of a collective in a tensor group"},
    TimeParameter{"pairs", "share", "of a GPU's links that lead to one other GPU"},
    TimeParameter{"context_latency", "s", "of a step of the ring of keys and values"},
    TimeParameter{"pipeline_bandwidth", "bytes/s", "of a transfer between stages across nodes"},
    TimeParameter{"pipeline_latency", "s", "of a transfer between stages"},
    TimeParameter{"data_bandwidth", "bytes/s", "of the gradients' reduction, one node"},
    TimeParameter{"delay", "s", "random delay of a micro-batch that others wait for"},
    TimeParameter{"delay_growth", "exponent", "of c·p/2 in the delay"},
};

struct Constants {
  double gemm_efficiency, gemm_half, flash2_efficiency, elementwise_bytes, accumulate_bytes, loss_bytes,
      tensor_bandwidth, tensor_latency, pairs, context_latency, pipeline_bandwidth, pipeline_latency, data_bandwidth,
      delay, delay_growth;
};
static_assert(sizeof(Constants) == parameters.size() * sizeof(double));

// Mean of the largest of n standard normal deviates: the deviate at (n − 0.375)/(n + 0.25).
double mean_of_largest(double n) {
  const double share = (n - 0.375) / (n + 0.25);
  double low = -10, high = 10;
  while (high - low > 1e-9) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < share ? low : high) = middle;
  }
  return low;
}

// Seconds of a number of half all-reduces.
double tensor_collectives(const StepWork& w, const Constants& v, int halves) {
  if (w.t <= 1) return 0;
  const double share = std::min(1.0, (w.t - 1) * v.pairs);
  const double bandwidth = tensor_ring_bandwidth(w, v.tensor_bandwidth * share);
  return halves * (2 * tokens(w) * w.h * (w.t - 1) / w.t / bandwidth + v.tensor_latency);
}
constexpr int seen_halves = 6, forward_halves = 4;

double context_ring(const StepWork& w, const Constants& v) {
  return context_ring_seconds(w, context_ring_bandwidth(w, v.tensor_bandwidth * v.pairs), v.context_latency);
}

// Compute; a third of the element-wise bytes and 1 of 3.5 attentions are the forward pass's.
Passes layer_passes(const StepWork& w, const Constants& v) {
  const double M = tokens(w), rate = streaming_rate(w), own = w.sequence_parallel ? w.t : 1;
  const double attention = 2 * w.b * w.s * w.s * w.h / (w.c * w.t) / (w.peak_flops * v.flash2_efficiency);
  const double elementwise = M * (w.h * v.elementwise_bytes / own + 28 * w.f / w.t) / rate;
  const double products = layer_gemm_seconds(w, M, v.gemm_efficiency, v.gemm_half);
  return {products + attention + elementwise / 3,
          2 * products + 2.5 * attention + elementwise * 2 / 3 +
              v.accumulate_bytes * layer_matrix_parameters(w) / w.t / rate,
          attention};
}

double layer(const StepWork& w, const Constants& v) {
  const Passes passes = layer_passes(w, v);
  const double ring = context_ring(w, v);
  const double forward = passes.forward + tensor_collectives(w, v, forward_halves) + ring / 3;
  return passes.forward + passes.backward + tensor_collectives(w, v, seen_halves) + ring +
         again_seconds(w, forward, passes.attention);
}

double head(const StepWork& w, const Constants& v) {
  const double M = tokens(w);
  return 3 * gemm_seconds(w, M, w.V / w.t, w.h, v.gemm_efficiency, v.gemm_half) +
         v.loss_bytes * M * w.V / w.t / streaming_rate(w);
}

// Both directions between a stage and the next.
double transfers(const StepWork& w, const Constants& v, int stage) {
  const double ranks = w.t * w.c, bytes = 2 * tokens(w) * w.h / w.t;
  const bool crosses = std::floor((stage + 1) * ranks / w.gpus_per_node) != std::floor(stage * ranks / w.gpus_per_node);
  const double bandwidth = crosses ? v.pipeline_bandwidth : v.tensor_bandwidth * v.pairs;
  return 2 * (bytes / bandwidth + v.pipeline_latency);
}

double pipeline(const StepWork& w, const Constants& v) {
  const double each = fullest_layers(w) * layer(w, v), with_head = head(w, v);
  double all = w.L * layer(w, v) + with_head, longest_transfers = 0;
  for (int stage = 0; stage + 1 < static_cast<int>(w.p); ++stage) {
    all += transfers(w, v, stage);
    longest_transfers = std::max(longest_transfers, transfers(w, v, stage));
  }
  const double busiest = each + with_head + longest_transfers;  // chunks cross a boundary once each
  return interleaved(w, all + (w.m - 1) * busiest, w.m * busiest) + w.m * (w.chunks - 1) * longest_transfers;
}

double held_parameters(const StepWork& w) {
  return (layer_matrix_parameters(w) * fullest_layers(w) + w.h * w.V * (w.p > 1 ? 1 : 2)) / w.t;
}

double reduction(const StepWork& w, const Constants& v) {
  const double replicas = w.d * w.c, held = held_parameters(w);
  const double bytes = held * (w.zero > 0 ? w.gradient_bytes + 2 : 2 * w.gradient_bytes) * (replicas - 1) / replicas;
  const bool inside = replicas * w.t * w.p <= w.gpus_per_node;
  return inside ? bytes / (v.tensor_bandwidth * v.pairs) : bytes * w.gpus_per_node / v.data_bandwidth;
}

double step_end(const StepWork& w, const Constants& v) {
  const double hidden = fullest_layers(w) * layer(w, v);  // behind the last micro-batch
  return std::max(reduction(w, v) - hidden, 0.0) +
         held_parameters(w) * 30 / (w.zero > 0 ? w.d * w.c : 1) / streaming_rate(w);
}

double delays(const StepWork& w, const Constants& v) {
  return v.delay * std::pow(w.c * w.p / 2, v.delay_growth) * std::sqrt(w.m / w.b) * mean_of_largest(w.d);
}

double seconds(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  return pipeline(w, v) + step_end(w, v) + delays(w, v);
}

// A transfer: the mean over the boundaries between stages.
StepParts parts(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  const Passes passes = layer_passes(w, v);
  StepParts result;
  result.layer_forward = passes.forward;
  result.layer_backward = passes.backward + again_seconds(w, 0, passes.attention);
  if (w.t <= w.gpus_per_node) result.layer_tensor = tensor_collectives(w, v, seen_halves);
  if (w.t * w.c <= w.gpus_per_node) result.layer_context = context_ring(w, v);
  result.head = head(w, v);
  for (int stage = 0; stage + 1 < static_cast<int>(w.p); ++stage)
    result.transfer += transfers(w, v, stage) / 2 / (w.p - 1);
  result.reduction = reduction(w, v);
  result.fixed = delays(w, v);
  return result;
}

Reasons outside(const StepWork& w) {
  const bool flash2 = w.kernels == Kernels::flash2 || w.kernels == Kernels::flash2_rmsnorm;
  return reasons({{w.zero > 1, no_such_zero}, {!flash2, no_such_kernels}});
}

}  // namespace

TimeModel megatron_core_time() { return {"megatron-core", parameters, seconds, parts, outside, true}; }

}  // namespace slipway::models
