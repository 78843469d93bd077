#include "models/trainers/stack.h"

#include <algorithm>

#include "models/trainers/time_formulas.h"

namespace slipway::models {

std::span<const TimeModel> time_models() {
  static const std::vector<TimeModel> models = {
      aa_scaling_time(),         nanotron_time(),    megatron_core_time(),
      megatron_deepspeed_time(), megatron_lm_time(), llm_foundry_time(),
  };
  return models;
}

const TimeModel* time_model_of(std::string_view trainer) {
  const auto models = time_models();
  const auto found =
      std::find_if(models.begin(), models.end(), [&](const TimeModel& model) { return model.trainer == trainer; });
  return found == models.end() ? nullptr : &*found;
}

const StackTime* time_on(const Stack& stack, std::string_view machine) {
  const auto found = std::ranges::find(stack.times, machine, &StackTime::machine);
  return found == stack.times.end() ? nullptr : &*found;
}

std::vector<double> values_of(const StackTime& time) {
  std::vector<double> values;
  for (const StackConstant& constant : time.constants) values.push_back(constant.value);
  return values;
}

}  // namespace slipway::models
