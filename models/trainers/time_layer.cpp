#include "models/trainers/time_layer.h"

namespace slipway::models {
namespace {

// FlashAttention skips the masked half and computes the scores again backward: 2.5 forwards. Unfused
// attention computes the full square, its backward is two forwards, and its scores travel through memory.
Passes attention(const StepWork& w, const LayerConstants& v) {
  const double full = 4 * w.b * w.s * w.s * w.h / (w.t * w.c), rate = streaming_rate(w);
  const double scores = w.b * w.a / w.t * w.s * w.s / w.c;
  const auto flash = [&](double efficiency) {
    const double forward = full / 2 / (w.peak_flops * efficiency);
    return Passes{forward, 2.5 * forward, forward};
  };
  const auto unfused = [&](double forward_bytes, double backward_bytes) {
    const double products = full / (w.peak_flops * v.score_efficiency);
    const double forward = products + forward_bytes * scores / rate;
    return Passes{forward, 2 * products + backward_bytes * scores / rate, forward};
  };
  switch (w.kernels) {
    case Kernels::flash2:
    case Kernels::flash2_rmsnorm:
      return flash(v.flash2_efficiency);
    case Kernels::flash1:
      return flash(v.flash1_efficiency);
    case Kernels::torch:
      return unfused(28 * v.softmax_traffic, 28 * v.softmax_traffic);
    case Kernels::fused_softmax:
      return unfused(4 * v.fused_softmax_traffic, 6 * v.fused_softmax_traffic);
  }
  return {};
}

Passes elementwise(const StepWork& w, const LayerConstants& v) {
  const double M = tokens(w), e = v.elementwise_traffic, rate = streaming_rate(w);
  const bool fused = w.kernels == Kernels::flash2_rmsnorm;
  const double forward_norms = fused ? 8 * e : 72 * v.norm_traffic;
  const double backward_norms = fused ? 12 * e : 152 * v.norm_traffic;
  const double own = w.sequence_parallel ? M / w.t : M;
  return {(own * w.h * (12 * e + forward_norms) + e * M * (8 * w.h + 10 * w.f) / w.t) / rate,
          (own * w.h * (12 * e + backward_norms) + e * M * (8 * w.h + 18 * w.f) / w.t) / rate};
}

}  // namespace

Passes layer_passes(const StepWork& w, const LayerConstants& v) {
  const double products = layer_gemm_seconds(w, tokens(w), v.gemm_efficiency, v.gemm_half);
  const Passes scores = attention(w, v), rest = elementwise(w, v);
  return {products + scores.forward + rest.forward, 2 * products + scores.backward + rest.backward, scores.forward};
}

double accumulation_seconds(const StepWork& w, const LayerConstants& v, double parameters) {
  return v.accumulate_bytes * parameters / streaming_rate(w);
}

double head_product_seconds(const StepWork& w, const LayerConstants& v) {
  return 3 * gemm_seconds(w, tokens(w), w.V / w.t, w.h, v.gemm_efficiency, v.gemm_half) +
         accumulation_seconds(w, v, w.V * w.h / w.t);
}

}  // namespace slipway::models
