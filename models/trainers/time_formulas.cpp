#include "models/trainers/time_formulas.h"

#include <algorithm>
#include <numeric>

namespace slipway::models {

double gemm_seconds(const StepWork& work, double M, double N, double K, double efficiency, double half) {
  return 2 * M * N * K / (work.peak_flops * efficiency) * (1 + half / std::min({M, N, K}));
}

double layer_gemm_seconds(const StepWork& work, double M, double efficiency, double half) {
  const double h = work.h, t = work.t, kv = 2 * h * work.k / work.a, up = work.gated ? 2 * work.f : work.f;
  const auto gemm = [&](double N, double K) { return gemm_seconds(work, M, N, K, efficiency, half); };
  return gemm((h + kv) / t, h) + gemm(h, h / t) + gemm(up / t, h) + gemm(h, work.f / t);
}

double again_seconds(const StepWork& work, double forward, double attention) {
  switch (work.recompute) {
    case Recompute::none:
      return 0;
    case Recompute::selective:
      return attention;
    case Recompute::full:
      return forward;
  }
  return 0;
}

double tensor_ring_bandwidth(const StepWork& w, double inside) {
  if (w.t <= w.gpus_per_node || w.port_bandwidth <= 0) return inside;
  return std::min(inside, w.port_bandwidth * w.gpus_per_node);
}

double context_ring_bandwidth(const StepWork& w, double inside) {
  if (w.t * w.c <= w.gpus_per_node || w.port_bandwidth <= 0) return inside;
  const double groups_of_node = std::min(w.t, w.gpus_per_node);
  return std::min(inside, w.port_bandwidth * w.gpus_per_node / groups_of_node);
}

double context_ring_seconds(const StepWork& w, double bandwidth, double latency) {
  const double bytes = 4 * tokens(w) * (w.h * w.k / w.a) / w.t;
  return 3 * (w.c - 1) * (latency + bytes / bandwidth);
}

Reasons reasons(std::initializer_list<Reason> candidates) {
  Reasons holding;
  for (const Reason& candidate : candidates)
    if (candidate.holds) holding.push_back(candidate.feature);
  return holding;
}

double pipeline_seconds(std::span<const double> stages, double micro_batches) {
  return std::accumulate(stages.begin(), stages.end(), 0.0) +
         (micro_batches - 1) * *std::max_element(stages.begin(), stages.end());
}

double uneven_pipeline_seconds(const UnevenPipeline& p) {
  const double m = p.micro_batches;
  const double bound = p.total + (m - 1) * std::max(p.full, p.last);
  const auto through = [&](double before, double after, double behind) {
    const double covered = std::min(behind, m - 1) * p.full;
    const double path =
        before + m * p.full + std::max(0.0, after - covered / 3) + std::max(0.0, after - 2 * covered / 3);
    return std::min(path, bound);
  };
  const double first = through(p.first_extra, p.total - p.first_extra - p.full, p.stages - 1);
  const double last_full = through(p.first_extra + (p.full_stages - 1) * p.full,
                                   p.total - p.first_extra - p.full_stages * p.full, p.stages - p.full_stages);
  return std::max({first, last_full, p.total - p.last + m * p.last});
}

}  // namespace slipway::models
