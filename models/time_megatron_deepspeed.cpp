// Megatron-DeepSpeed (vTrain, MICRO 2024): small GPTs on one node of A100, fp16, full recompute, 1F1B,
// unfused attention, LayerNorm and GELU.
//
//   layer = (gpu^4 + host^4)^(1/4)       host = floor·(1 + unaligned) + floor_tensor where t > 1
//
// Particular about it: layers are so small that the host sets the pace. The fused softmax needs b·a/t
// divisible by 4; else more kernels run (unaligned) on more traffic. Each product is priced in all three of
// its shapes. All-reduces cost what NCCL's own test showed in this node (latency and bandwidth by members),
// the latency times a factor: inside a step their launch is seen too.
#include <array>
#include <cmath>

#include "models/time_formulas.h"

namespace slipway {
namespace {

constexpr std::array parameters{
    TimeParameter{"gemm_efficiency", "share of peak", "large matrix products"},
    TimeParameter{"gemm_half", "elements", "smallest side of a product at which half of that is reached"},
    TimeParameter{"score_efficiency", "share of peak", "products of unfused attention"},
    TimeParameter{"softmax_bytes", "bytes per score", "traffic of the fused softmax, forward and backward"},
    TimeParameter{"unaligned_traffic", "factor", "of it where the fused kernel cannot run"},
    TimeParameter{"elementwise_bytes", "bytes",
                  "per token and hidden unit of a layer, forward and backward"},
    TimeParameter{"all_reduce_latency_2", "s", "of NCCL's all-reduce over 2 GPUs"},
    TimeParameter{"all_reduce_latency_4", "s", "over 4"},
    TimeParameter{"all_reduce_latency_8", "s", "over 8"},
    TimeParameter{"all_reduce_bandwidth_2", "bytes/s", "bus bandwidth of NCCL's all-reduce over 2 GPUs"},
    TimeParameter{"all_reduce_bandwidth_4", "bytes/s", "over 4"},
    TimeParameter{"all_reduce_bandwidth_8", "bytes/s", "over 8"},
    TimeParameter{"latency_factor", "factor", "of an all-reduce's latency inside a step"},
    TimeParameter{"floor", "s per layer", "host time, forward, backward and recompute"},
    TimeParameter{"floor_tensor", "s per layer", "of it with a tensor group"},
    TimeParameter{"floor_unaligned", "share", "more of it where the fused softmax cannot run"},
    TimeParameter{"floor_head", "s", "host time of the head"},
    TimeParameter{"floor_sharpness", "exponent", "of the smooth maximum of GPU and host"},
    TimeParameter{"head_unsharded", "factor", "of the vocabulary product without a tensor group"},
    TimeParameter{"loss_bytes", "bytes per logit", "traffic of the loss, forward and backward"},
    TimeParameter{"embedding_bytes", "bytes", "per token and hidden unit of the embedding"},
    TimeParameter{"embedding_time", "s", "of the embedding besides"},
    TimeParameter{"pipeline_bandwidth", "bytes/s", "of a transfer between stages"},
    TimeParameter{"pipeline_latency", "s", "of each of them"},
    TimeParameter{"gradient_bytes", "bytes per parameter", "reduced over a data-parallel group"},
    TimeParameter{"optimizer_bytes", "bytes per parameter", "traffic of the update"},
    TimeParameter{"fixed", "s", "per step"},
};

struct Constants {
  double gemm_efficiency, gemm_half, score_efficiency, softmax_bytes, unaligned_traffic, elementwise_bytes;
  std::array<double, 3> all_reduce_latency, all_reduce_bandwidth;  // over 2, 4, 8
  double latency_factor, floor, floor_tensor, floor_unaligned, floor_head, floor_sharpness, head_unsharded,
      loss_bytes, embedding_bytes, embedding_time, pipeline_bandwidth, pipeline_latency, gradient_bytes,
      optimizer_bytes, fixed;
};
static_assert(sizeof(Constants) == parameters.size() * sizeof(double));

double smooth_maximum(double a, double b, double q) {
  return std::pow(std::pow(a, q) + std::pow(b, q), 1 / q);
}

double all_reduce(const Constants& v, double members, double bytes) {
  if (members <= 1) return 0;
  const std::size_t size = members <= 2 ? 0 : members <= 4 ? 1 : 2;
  return v.latency_factor * v.all_reduce_latency[size] +
         2 * (members - 1) / members * bytes / v.all_reduce_bandwidth[size];
}

// Forward twice (recompute), gradients of input and weight once each: they are products of other shapes.
double products(const StepWork& w, const Constants& v) {
  const double M = w.b * w.s, h = w.h, t = w.t;
  const auto gemm = [&](double m, double n, double k) {
    return gemm_seconds(w, m, n, k, v.gemm_efficiency, v.gemm_half);
  };
  double seconds = 0;
  for (const auto& [n, k] : {std::array{3 * h / t, h}, {h, h / t}, {w.f / t, h}, {h, w.f / t}})
    seconds += 2 * gemm(M, n, k) + gemm(M, k, n) + gemm(k, n, M);
  return seconds;
}

double layer_collectives(const StepWork& w, const Constants& v) {
  return 6 * all_reduce(v, w.t, 2 * w.b * w.s * w.h);
}

double layer(const StepWork& w, const Constants& v) {
  const double M = w.b * w.s, rate = streaming_rate(w);
  const bool unaligned = std::fmod(w.b * w.a / w.t, 4) != 0;
  constexpr double passes = 4, with_recompute = 4.0 / 3;
  const double attention = passes * 4 * w.b * w.s * w.s * w.h / w.t / (w.peak_flops * v.score_efficiency) +
                           w.b * (w.a / w.t) * w.s * w.s * v.softmax_bytes * with_recompute *
                               (unaligned ? v.unaligned_traffic : 1) / rate;
  const double elementwise = M * (w.h * v.elementwise_bytes + 10 * w.f / w.t) * with_recompute / rate;
  const double gpu = products(w, v) + attention + elementwise + layer_collectives(w, v);
  const double host = v.floor * (1 + (unaligned ? v.floor_unaligned : 0)) + (w.t > 1 ? v.floor_tensor : 0);
  return smooth_maximum(gpu, host, v.floor_sharpness);
}

double head(const StepWork& w, const Constants& v) {
  const double M = w.b * w.s;
  const double gpu = 3 * gemm_seconds(w, M, w.V / w.t, w.h, v.gemm_efficiency, v.gemm_half) *
                         (w.t > 1 ? 1 : v.head_unsharded) +
                     v.loss_bytes * M * w.V / w.t / streaming_rate(w);
  return smooth_maximum(gpu, v.floor_head, v.floor_sharpness);
}

double transfer(const StepWork& w, const Constants& v) {
  return 2 * w.b * w.s * w.h / v.pipeline_bandwidth + v.pipeline_latency;
}

double held_parameters(const StepWork& w) { return (12 * w.h * w.h * w.L / w.p + w.V * w.h) / w.t; }

double seconds(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  const double M = w.b * w.s, rate = streaming_rate(w);
  std::vector<double> stages(static_cast<std::size_t>(w.p), w.L / w.p * layer(w, v));
  stages.front() += M * w.h * v.embedding_bytes / rate + v.embedding_time;
  stages.back() += head(w, v);
  const double transfers = w.p > 1 ? 2 * transfer(w, v) : 0, held = held_parameters(w);
  double step = pipeline_seconds(stages, w.m) + (w.p - 1 + w.m - 1) * transfers;
  step += all_reduce(v, w.d, v.gradient_bytes * held);
  if (w.p > 1) step += all_reduce(v, 2, v.gradient_bytes * w.V * w.h / w.t);  // tied embedding
  return step + held * v.optimizer_bytes / rate + v.fixed;
}

// All runs recompute: a quarter of a layer is its forward pass, a quarter that pass once more.
StepParts parts(const StepWork& w, std::span<const double> values) {
  const auto v = named<Constants>(values);
  StepParts result;
  const double with_again = layer_collectives(w, v);  // two forward, two again, two backward
  const double work = std::max(layer(w, v) - with_again, 0.0);
  result.layer_tensor = with_again * 2 / 3;
  result.layer_forward = work / 4;
  result.layer_backward = work / 2;
  result.head = head(w, v);
  result.transfer = transfer(w, v);
  result.reduction = all_reduce(v, w.d, v.gradient_bytes * held_parameters(w));
  result.fixed = v.fixed;
  return result;
}

}  // namespace

TimeModel megatron_deepspeed_time() { return {"megatron-deepspeed", parameters, seconds, parts}; }

}  // namespace slipway
