#include "scenarios/search/layout_text.h"

#include <fmt/format.h>

namespace slipway::scenarios {
namespace {

std::string experts_text(const Step& choice) {
  const Layout& l = choice.layout;
  if (!has_experts(choice.model)) return "";
  const std::string cut = l.tensor > 1 ? fmt::format(" x {}", expert_tensor_of(sharding_of(l))) : "";
  return fmt::format(", experts on {}{}", l.expert, cut);
}

}  // namespace

std::string layers_text(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::string recompute_text(const Step& choice) {
  std::string modules;
  for (const auto& each : recomputed_module_names)
    if (choice.levers.recomputed.has(each.value)) modules += (modules.empty() ? "" : "+") + std::string(each.name);
  return modules.empty() ? name_of(choice.recompute) : modules;
}

std::string schedule_text(const Step& choice) { return choice.actions ? "of a CSV" : choice.schedule; }

std::string layout_text(const Step& choice) {
  const Layout& l = choice.layout;
  return fmt::format(
      "tensor {}{}, pipeline {}, chunks {}, context {}, data {}{}, zero {}; {}, micro-batch {}, "
      "recompute {}{}",
      l.tensor, l.sequence_parallel ? " with sequence parallel" : "", l.pipeline, l.chunks, l.context, l.data,
      experts_text(choice), l.zero, schedule_text(choice), choice.micro_batch, recompute_text(choice),
      l.split_list.empty() ? "" : ", layers per stage " + layers_text(l.split_list));
}

}  // namespace slipway::scenarios
