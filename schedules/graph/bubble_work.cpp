#include "schedules/graph/bubble_work.h"

#include <stdexcept>

namespace slipway::schedules {

const char* name_of(KfacStage stage) { return stage == KfacStage::curvature ? "curvature" : "inversion"; }

std::string kfac_suffix(const KfacLinear& linear, KfacStage stage, bool of_input) {
  return std::string(".") + linear.name + (stage == KfacStage::inversion ? ".inv" : ".") + (of_input ? "A" : "B");
}

KfacWork kfac_work_of(const TaskGraph& graph, const Work& work) {
  if (work.block != none) {
    const std::vector<KfacLinear> linears = kfac_linears(blocks_of(graph.step.model).at(work.block));
    for (std::size_t l = 0; l < linears.size(); ++l)
      for (const KfacStage stage : {KfacStage::curvature, KfacStage::inversion})
        for (const bool of_input : {true, false})
          if (work.bubble_work == name_of(stage) && work.suffix.ends_with(kfac_suffix(linears[l], stage, of_input)))
            return {stage, l, of_input};
  }
  throw std::runtime_error(work.suffix + " is no work of K-FAC; lower the scenario again");
}

bool reduces_input_factors(const Work& work) { return work.suffix.ends_with(input_reduction_suffix); }

}  // namespace slipway::schedules
