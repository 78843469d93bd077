// Formulas of step time where all but one thing is free: runs and constants for tests that count a feature's FLOPs or
// bytes.
#pragma once

#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "models/trainers/stack.h"

namespace slipway::test {

inline StepWork llama_13b() {
  StepWork w;
  w.L = 40, w.h = 5120, w.f = 13824, w.a = w.k = 40, w.V = 128000, w.gated = true;
  w.s = 2048, w.b = 1, w.m = 32, w.d = 64, w.gpus = 64;
  w.zero = 1, w.gradient_bytes = 2, w.peak_flops = 312e12, w.memory_bandwidth = 2.039e12;
  return w;
}

inline double seconds_of(const char* trainer, const StepWork& work, std::span<const double> constants) {
  const TimeModel* model = time_model_of(trainer);
  if (model == nullptr || model->parameters.size() != constants.size()) return std::nan("");
  return model->seconds(work, constants);
}

// Products at full peak and everything else free: no memory traffic, no waiting, bandwidth without end.
inline std::vector<double> ideal(const TimeModel& model) {
  std::vector<double> constants;
  for (const TimeParameter& parameter : model.parameters) {
    const std::string_view unit = parameter.unit;
    if (unit == "share of peak" || parameter.name == "recompute" || parameter.name == "head_unsharded" ||
        parameter.name == "pairs" || parameter.name.starts_with("flash_narrow") || unit == "exponent")
      constants.push_back(1);
    else if (unit == "bytes/s")
      constants.push_back(1e30);
    else
      constants.push_back(1e-12);
  }
  return constants;
}

// A run of this trainer whose constants give time only to its products.
inline StepWork ideal_run(const TimeModel& model) {
  StepWork w = llama_13b();
  w.d = w.gpus = 1, w.m = 8, w.V = 1e-6, w.memory_bandwidth = 1e30;
  w.kernels = Kernels::flash2_rmsnorm;
  if (model.trainer == "megatron-lm") w.kernels = Kernels::fused_softmax;
  if (model.trainer == "megatron-deepspeed") w.kernels = Kernels::torch;
  return w;
}

inline double ideal_seconds(const TimeModel& model, const StepWork& w) { return model.seconds(w, ideal(model)); }

inline bool has_pipelines(const TimeModel& model) { return model.trainer != "llm-foundry"; }

}  // namespace slipway::test
