// LLM Foundry (MosaicML's throughput tables): MPT models under PyTorch's fully sharded data parallelism
// (FSDP) on A100 and H100, flash attention, LayerNorm and GELU in fused kernels.
//
//   step = m · max(compute, traffic) + m · exposed · min(compute, traffic) + update + fixed
//   traffic of a micro-batch = 2 bytes · parameters · passes / bandwidth
//   passes = gathers forward and backward, and the scatter of the gradients (ZeRO-2: one gather less; without
//            shards: the all-reduce of the gradients). Shards inside a node (HYBRID_SHARD): gradients' shards are
//            reduced across the nodes besides
//
// Particular about it: each layer's weights are gathered ahead of its use, so only what is longer than the
// layers' own work is seen, and a share of the rest. Inside a node the ring runs over NVLink; across nodes
// NCCL lays a ring through every port, each byte of a ring leaves a node once, and a GPU sees the bandwidth
// of all its node's ports. Recomputation is non-reentrant (activation_checkpointing_reentrant: false), which
// stops when the last tensor that was saved is there again (torch.utils.checkpoint, early_stop): the last
// product of a block saves nothing behind it and is not run a second time. Products in fp8 (Transformer Engine) are
// `fp8_speedup` faster, attention stays in bf16. Narrow heads (64) keep a share of the attention kernel's efficiency.
#include <cmath>

#include "models/trainers/time_formulas.h"

namespace slipway::models {
namespace {

constexpr std::array parameters{
    TimeParameter{"gemm_efficiency", "share of peak", "large matrix products"},
    TimeParameter{"gemm_half", "elements", "smallest side of a product that reaches half of gemm_efficiency"},
    TimeParameter{"flash_efficiency", "share of peak", "flash attention, causal FLOPs, heads of 128"},
    TimeParameter{"flash_narrow", "factor", "of flash_efficiency with heads of 64"},
    TimeParameter{"elementwise_bytes", "bytes", "per token and hidden unit of a layer, forward and backward"},
    TimeParameter{"loss_bytes", "bytes per logit", "traffic of the loss, forward and backward"},
    TimeParameter{"fp8_speedup", "factor", "of products in fp8"},
    TimeParameter{"node_bandwidth", "bytes/s", "of gathers and scatters inside a node, per GPU"},
    TimeParameter{"network_bandwidth", "bytes/s", "of gathers and scatters across nodes: all ports of a node"},
    TimeParameter{"exposed", "share", "exposed part of the shorter of work and traffic"},
    TimeParameter{"optimizer_bytes", "bytes per parameter", "traffic of the update"},
    TimeParameter{"fixed", "s", "per step"},
};

struct Constants {
  double gemm_efficiency, gemm_half, flash_efficiency, flash_narrow, elementwise_bytes, loss_bytes, fp8_speedup,
      node_bandwidth, network_bandwidth, exposed, optimizer_bytes, fixed;
};
static_assert(sizeof(Constants) == parameters.size() * sizeof(double));

double model_parameters(const StepWork& w) { return w.L * layer_matrix_parameters(w) + w.V * w.h; }

double product_speedup(const StepWork& w, const Constants& v) { return w.fp8 ? v.fp8_speedup : 1; }

// Seconds of one layer; a third of the element-wise bytes is the forward pass's.
Passes layer_passes(const StepWork& w, const Constants& v) {
  const double M = w.b * w.s;
  const double products = layer_gemm_seconds(w, M, v.gemm_efficiency, v.gemm_half) / product_speedup(w, v);
  constexpr double narrow = 64;
  const double efficiency = v.flash_efficiency * (w.h / w.a <= narrow ? v.flash_narrow : 1);
  const double attention = 2 * w.b * w.s * w.s * w.h / (w.peak_flops * efficiency);
  const double elementwise = M * (w.h * v.elementwise_bytes + 10 * w.f) / streaming_rate(w);
  return {products + attention + elementwise / 3, 2 * products + 2.5 * attention + elementwise * 2 / 3, attention};
}

// What a recomputed forward pass leaves out: the product from f back to h.
double last_product(const StepWork& w, const Constants& v) {
  return gemm_seconds(w, w.b * w.s, w.h, w.f, v.gemm_efficiency, v.gemm_half) / product_speedup(w, v);
}

double head(const StepWork& w, const Constants& v) {
  const double M = w.b * w.s;
  return 3 * gemm_seconds(w, M, w.V, w.h, v.gemm_efficiency, v.gemm_half) + v.loss_bytes * M * w.V / streaming_rate(w);
}

double compute(const StepWork& w, const Constants& v) {
  const Passes layer = layer_passes(w, v);
  const double again = again_seconds(w, layer.forward - last_product(w, v), layer.attention);
  return w.L * (layer.forward + layer.backward + again) + head(w, v);
}

// GPUs of one set of shards.
double shards(const StepWork& w) { return w.shard_group > 0 ? std::min(w.shard_group, w.d) : w.d; }

double bandwidth(const StepWork& w, const Constants& v) {
  return shards(w) > w.gpus_per_node ? v.network_bandwidth : v.node_bandwidth;
}

double traffic(const StepWork& w, const Constants& v) {
  const double n = shards(w), copies = w.d / n, bytes = 2 * model_parameters(w);
  const double passes = w.zero == 3 ? 3 : 2;
  double seconds = passes * bytes * (n - 1) / n / bandwidth(w, v);
  // An all-reduce of a shard, n of them at once over the ports of each node.
  if (copies > 1) seconds += 2 * bytes * (copies - 1) / copies / v.network_bandwidth;
  return seconds;
}

double seconds(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  const double work = compute(w, v), moved = traffic(w, v);
  return w.m * (std::max(work, moved) + v.exposed * std::min(work, moved)) +
         model_parameters(w) / (w.zero > 0 ? shards(w) : 1) * v.optimizer_bytes / streaming_rate(w) + v.fixed;
}

StepParts parts(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  const Passes layer = layer_passes(w, v);
  StepParts result;
  result.layer_forward = layer.forward;
  const double again = again_seconds(w, layer.forward - last_product(w, v), layer.attention);
  result.layer_backward = layer.backward + again - (w.recompute == Recompute::full ? layer.forward : 0);
  result.head = head(w, v);
  result.data_bandwidth = bandwidth(w, v);
  result.fixed = v.fixed;
  return result;
}

Reasons outside(const StepWork& w) {
  const bool flash = !writes_scores(w.kernels);
  return reasons({{w.t > 1, "tensor parallelism"},
                  {w.c > 1, no_context},
                  {w.p > 1, "pipeline stages"},
                  {!flash, no_such_kernels}});
}

}  // namespace

TimeModel llm_foundry_time() { return {"llm-foundry", parameters, seconds, parts, outside, true}; }

}  // namespace slipway::models
