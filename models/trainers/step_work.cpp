#include "models/trainers/step_work.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/model/model.h"

namespace slipway::models {

StepWork step_work(const Model& model, const Machine& machine, Dtype dtype) {
  if (model.runs.size() != 3)
    throw std::invalid_argument("model " + model.name +
                                " has layers of several shapes; formulas of step time are for equal layers, "
                                "`slipway simulate` for others");
  const Block& layer = model.runs[1].block;
  if (layer.experts > 0)
    throw std::invalid_argument(
        "model " + model.name +
        " has experts; formulas of step time are for plain MLPs, `slipway simulate` without cluster.stack for others");
  StepWork work;
  work.L = static_cast<double>(model.runs[1].count);
  work.h = static_cast<double>(layer.hidden);
  work.f = static_cast<double>(layer.ffn);
  work.a = static_cast<double>(layer.heads);
  work.k = static_cast<double>(layer.kv_heads);
  work.V = static_cast<double>(model.runs[0].block.vocab);
  work.s = static_cast<double>(model.sequence);
  work.gated = layer.mlp == Mlp::swiglu;
  work.tied = model.runs[2].block.tied;
  work.peak_flops = machine.peak_flops[static_cast<std::size_t>(dtype)];
  work.memory_bandwidth = machine.memory_bandwidth;
  constexpr double sustained = 0.8;  // of a port, as the book values of the profiles have it
  work.port_bandwidth = sustained * machine.network_link.bandwidth;
  work.port_latency = machine.network_link.latency;
  if (!(work.peak_flops > 0) || !(work.memory_bandwidth > 0))
    throw std::invalid_argument("machine " + machine.name + " has no peak_flops for " + name_of(dtype) +
                                " or no memory_bandwidth; add them to its profile");
  return work;
}

double fullest_layers(const StepWork& work) { return std::ceil(work.L / work.p - 1e-9); }

double layer_matrix_parameters(const StepWork& work) {
  const double matrices = work.gated ? 3 : 2;
  return 2 * work.h * work.h * (1 + work.k / work.a) + matrices * work.h * work.f;
}

CostSplit split_by_cost(const StepWork& work) {
  if (work.p <= 1) return {work.L, work.L};
  const double head = work.V * work.h / (4 * work.h * work.h + 3 * work.h * work.f);
  const double full = std::ceil((work.L + head) / work.p - 1e-9);
  return {full, std::max(0.0, work.L - (work.p - 1) * full)};
}

}  // namespace slipway::models
