// Megatron-DeepSpeed (vTrain, MICRO 2024): small GPTs on one node of A100, fp16, full recompute, 1F1B,
// unfused attention, LayerNorm and GELU.
//
//   layer = (gpu^4 + host^4)^(1/4)       host = floor·(1 + unaligned) + floor_tensor where t > 1
//
// All runs of the fit recompute; of one that does not, GPU and host do three passes of four, and six collectives
// are four.
//
// Particular about it: layers are so small that the host sets the pace. The fused softmax needs b·a/t
// divisible by 4; else more kernels run (unaligned) on more traffic. Each product is priced in all three of
// its shapes. All-reduces cost what NCCL's own test showed in this node (latency and bandwidth by members),
// the latency times a factor: inside a step their launch is seen too.
#include <array>
#include <cmath>

#include "models/trainers/time_formulas.h"

namespace slipway::models {
namespace {

constexpr std::array parameters{
    TimeParameter{"gemm_efficiency", "share of peak", "large matrix products"},
    TimeParameter{"gemm_half", "elements", "smallest side of a product that reaches half of gemm_efficiency"},
    TimeParameter{"score_efficiency", "share of peak", "products of unfused attention"},
    TimeParameter{"softmax_bytes", "bytes per score", "traffic of the fused softmax, forward and backward"},
    TimeParameter{"unaligned_traffic", "factor", "of softmax_bytes where the fused kernel cannot run"},
    TimeParameter{"elementwise_bytes", "bytes", "per token and hidden unit of a layer, forward and backward"},
    TimeParameter{"all_reduce_latency_2", "s", "of NCCL's all-reduce over 2 GPUs"},
    TimeParameter{"all_reduce_latency_4", "s", "over 4"},
    TimeParameter{"all_reduce_latency_8", "s", "over 8"},
    TimeParameter{"all_reduce_bandwidth_2", "bytes/s", "bus bandwidth of NCCL's all-reduce over 2 GPUs"},
    TimeParameter{"all_reduce_bandwidth_4", "bytes/s", "over 4"},
    TimeParameter{"all_reduce_bandwidth_8", "bytes/s", "over 8"},
    TimeParameter{"latency_factor", "factor", "of an all-reduce's latency inside a step"},
    TimeParameter{"floor", "s per layer", "host time, forward, backward and recompute"},
    TimeParameter{"floor_tensor", "s per layer", "host time with a tensor group"},
    TimeParameter{"floor_unaligned", "share", "more host time where the fused softmax cannot run"},
    TimeParameter{"floor_head", "s", "host time of the head"},
    TimeParameter{"floor_sharpness", "exponent", "of the smooth maximum of GPU and host"},
    TimeParameter{"head_unsharded", "factor", "of the vocabulary product without a tensor group"},
    TimeParameter{"loss_bytes", "bytes per logit", "traffic of the loss, forward and backward"},
    TimeParameter{"embedding_bytes", "bytes", "per token and hidden unit of the embedding"},
    TimeParameter{"embedding_time", "s", "further time of the embedding"},
    TimeParameter{"pipeline_bandwidth", "bytes/s", "of a transfer between stages"},
    TimeParameter{"pipeline_latency", "s", "of a transfer between stages"},
    TimeParameter{"gradient_bytes", "bytes per parameter", "reduced over a data-parallel group"},
    TimeParameter{"optimizer_bytes", "bytes per parameter", "traffic of the update"},
    TimeParameter{"fixed", "s", "per step"},
};

struct Constants {
  double gemm_efficiency, gemm_half, score_efficiency, softmax_bytes, unaligned_traffic, elementwise_bytes;
  std::array<double, 3> all_reduce_latency, all_reduce_bandwidth;  // over 2, 4, 8
  double latency_factor, floor, floor_tensor, floor_unaligned, floor_head, floor_sharpness, head_unsharded, loss_bytes,
      embedding_bytes, embedding_time, pipeline_bandwidth, pipeline_latency, gradient_bytes, optimizer_bytes, fixed;
};
static_assert(sizeof(Constants) == parameters.size() * sizeof(double));

double smooth_maximum(double a, double b, double q) { return std::pow(std::pow(a, q) + std::pow(b, q), 1 / q); }

// Over members that `span` GPUs hold. Beyond a node: a ring through the node's ports, with the network's latency in
// each of its steps, which as many groups share as a node has members of different ones.
double all_reduce(const StepWork& w, const Constants& v, double members, double span, double bytes) {
  if (members <= 1) return 0;
  if (span > w.gpus_per_node && w.port_bandwidth > 0) {
    const double groups_of_node = std::min(span / members, w.gpus_per_node);
    return 2 * (members - 1) * w.port_latency +
           2 * (members - 1) / members * bytes / (w.port_bandwidth * w.gpus_per_node / groups_of_node);
  }
  const std::size_t size = members <= 2 ? 0 : members <= 4 ? 1 : 2;
  return v.latency_factor * v.all_reduce_latency[size] +
         2 * (members - 1) / members * bytes / v.all_reduce_bandwidth[size];
}

struct Products {
  double forward = 0, backward = 0;
};

// Gradients of input and weight are products of other shapes.
Products products(const StepWork& w, const Constants& v) {
  const double M = w.b * w.s, h = w.h, t = w.t;
  const auto gemm = [&](double m, double n, double k) {
    return gemm_seconds(w, m, n, k, v.gemm_efficiency, v.gemm_half);
  };
  Products seconds;
  for (const auto& [n, k] : {std::array{3 * h / t, h}, {h, h / t}, {w.f / t, h}, {h, w.f / t}}) {
    seconds.forward += gemm(M, n, k);
    seconds.backward += gemm(M, k, n) + gemm(k, n, M);
  }
  return seconds;
}

// In each pass.
double layer_collectives(const StepWork& w, const Constants& v) {
  return 2 * all_reduce(w, v, w.t, w.t, 2 * w.b * w.s * w.h);
}

bool unaligned(const StepWork& w) { return std::fmod(w.b * w.a / w.t, 4) != 0; }

// Without collectives. A third of attention and of traffic is the forward pass's.
Passes layer_passes(const StepWork& w, const Constants& v) {
  const double M = w.b * w.s, rate = streaming_rate(w), own = w.sequence_parallel ? w.t : 1;
  const double attention =
      4 * w.b * w.s * w.s * w.h / w.t / (w.peak_flops * v.score_efficiency) +
      w.b * (w.a / w.t) * w.s * w.s * v.softmax_bytes / 3 * (unaligned(w) ? v.unaligned_traffic : 1) / rate;
  const double elementwise = M * (w.h * v.elementwise_bytes / own + 10 * w.f / w.t) / 3 / rate;
  const Products product = products(w, v);
  return {product.forward + attention + elementwise, product.backward + 2 * (attention + elementwise), attention};
}

// The floors are those of four passes.
double layer_host(const StepWork& w, const Constants& v) {
  const double host = v.floor * (1 + (unaligned(w) ? v.floor_unaligned : 0)) + (w.t > 1 ? v.floor_tensor : 0);
  return w.recompute == Recompute::full ? host : host * 3 / 4;
}

double layer(const StepWork& w, const Constants& v) {
  const Passes passes = layer_passes(w, v);
  const double reduce = layer_collectives(w, v);
  const double gpu =
      passes.forward + passes.backward + 2 * reduce + again_seconds(w, passes.forward + reduce, passes.attention);
  return smooth_maximum(gpu, layer_host(w, v), v.floor_sharpness);
}

double head(const StepWork& w, const Constants& v) {
  const double M = w.b * w.s;
  const double gpu =
      3 * gemm_seconds(w, M, w.V / w.t, w.h, v.gemm_efficiency, v.gemm_half) * (w.t > 1 ? 1 : v.head_unsharded) +
      v.loss_bytes * M * w.V / w.t / streaming_rate(w);
  return smooth_maximum(gpu, v.floor_head, v.floor_sharpness);
}

// Between stages in different nodes, if there are such, a transfer goes over the port of the GPU.
double transfer(const StepWork& w, const Constants& v) {
  const bool leaves = w.t * w.d * w.p > w.gpus_per_node && w.port_bandwidth > 0;
  const double bandwidth = leaves ? std::min(v.pipeline_bandwidth, w.port_bandwidth) : v.pipeline_bandwidth;
  return 2 * w.b * w.s * w.h / bandwidth + v.pipeline_latency + (leaves ? w.port_latency : 0);
}

double held_parameters(const StepWork& w) { return (12 * w.h * w.h * fullest_layers(w) + w.V * w.h) / w.t; }

double reduction(const StepWork& w, const Constants& v) {
  return all_reduce(w, v, w.d, w.t * w.d, v.gradient_bytes * held_parameters(w));
}

double seconds(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  const double M = w.b * w.s, rate = streaming_rate(w);
  const double each = layer(w, v), more = std::fmod(w.L, w.p);  // on the first stages
  std::vector<double> stages;
  for (int i = 0; i < static_cast<int>(w.p); ++i) stages.push_back((std::floor(w.L / w.p) + (i < more ? 1 : 0)) * each);
  stages.front() += M * w.h * v.embedding_bytes / rate + v.embedding_time;
  stages.back() += head(w, v);
  const double transfers = w.p > 1 ? 2 * transfer(w, v) : 0;
  const double busiest = w.m * *std::max_element(stages.begin(), stages.end());
  double step = interleaved(w, pipeline_seconds(stages, w.m), busiest) + (w.p - 1 + (w.m - 1) * w.chunks) * transfers;
  step += reduction(w, v);
  if (w.p > 1)  // tied embedding
    step += all_reduce(w, v, 2, w.t * w.d * w.p, v.gradient_bytes * w.V * w.h / w.t);
  return step + held_parameters(w) / (w.zero > 0 ? w.d : 1) * v.optimizer_bytes / rate + v.fixed;
}

// What the host's floor adds is shared out evenly: of a layer that is recomputed a quarter is its forward pass and a
// quarter that pass once more; else a third is.
StepParts parts(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  StepParts result;
  const double reduce = layer_collectives(w, v);
  const double passes = w.recompute == Recompute::full ? 4 : 3;
  const double collectives = (passes - 1) * reduce;
  const double work = std::max(layer(w, v) - collectives, 0.0);
  result.layer_tensor = 2 * reduce;
  result.layer_forward = work / passes;
  result.layer_backward = (work - result.layer_forward) * 2 / (passes - 1);
  result.head = head(w, v);
  result.transfer = transfer(w, v);
  result.reduction = reduction(w, v);
  result.fixed = v.fixed;
  return result;
}

Reasons outside(const StepWork& w) {
  return reasons({{w.c > 1, no_context}, {w.zero > 1, no_such_zero}, {w.kernels != Kernels::torch, no_such_kernels}});
}

}  // namespace

TimeModel megatron_deepspeed_time() { return {"megatron-deepspeed", parameters, seconds, parts, outside}; }

}  // namespace slipway::models
