// Levers of the layout: its neighbours, with one degree doubled and another one halved, on the same GPUs.
#include "scenarios/search/levers.h"

namespace slipway::scenarios {
namespace {

struct Degree {
  const char* name;
  int Layout::*value;
};
constexpr Degree degrees[] = {{"tensor", &Layout::tensor},
                              {"pipeline", &Layout::pipeline},
                              {"context", &Layout::context},
                              {"data", &Layout::data}};

Lever move(const Degree& up, const Degree& down) {
  return {std::string(up.name) + " x 2, " + down.name + " / 2", [up, down](Scenario& scenario) -> std::string {
            Layout& layout = scenario.step.layout;
            int &more = layout.*up.value, &less = layout.*down.value;
            if (less % 2 != 0) return std::string(down.name) + " " + std::to_string(less) + " cannot be halved";
            more *= 2, less /= 2;
            if (layout.tensor == 1) layout.sequence_parallel = false;
            if (layout.pipeline == 1) {
              set_schedule(scenario.step, default_schedule());
              layout.chunks = 1;
            }
            if (layout.split == SplitKind::balanced) layout.split_list.clear();  // another layout's
            if (layout.split == SplitKind::list) return "layout.split is of this pipeline";
            if (scenario.step.actions != nullptr) return "schedule.csv is of this layout";
            return "";
          }};
}

Lever experts_lever(bool more) {
  return {more ? "expert x 2" : "expert / 2", [more](Scenario& scenario) -> std::string {
            Layout& layout = scenario.step.layout;
            if (!has_experts(scenario.step.model)) return "the model has no experts";
            if (!more && layout.expert % 2 != 0) return "expert " + std::to_string(layout.expert) + " cannot be halved";
            layout.expert = more ? layout.expert * 2 : layout.expert / 2;
            return "";
          }};
}

std::string whole_experts(Scenario& scenario) {
  Layout& layout = scenario.step.layout;
  if (!has_experts(scenario.step.model)) return "the model has no experts";
  if (layout.tensor == 1) return "one tensor rank: experts are whole";
  if (layout.expert_tensor == 1) return "it is the scenario's own";
  layout.expert_tensor = 1;
  return "";
}

}  // namespace

std::vector<Lever> layout_levers() {
  std::vector<Lever> levers;
  for (const Degree& up : degrees)
    for (const Degree& down : degrees)
      if (up.value != down.value) levers.push_back(move(up, down));
  levers.push_back(experts_lever(true));
  levers.push_back(experts_lever(false));
  levers.push_back({"whole experts", whole_experts});
  return levers;
}

}  // namespace slipway::scenarios
