#include "scenarios/trainers/composers.h"

#include "scenarios/trainers/compose_megatron.h"
#include "scenarios/trainers/compose_torchtitan.h"
#include "scenarios/trainers/launch_composers.h"

#include <algorithm>
#include <array>

namespace slipway::scenarios {

namespace {

template <typename Function>
struct NamedFunction {
  std::string_view name;
  Function function;
};

constexpr std::array importers{NamedFunction<ImportComposer>{"megatron-split", megatron_split},
                               NamedFunction<ImportComposer>{"megatron-vocabulary", megatron_vocabulary},
                               NamedFunction<ImportComposer>{"megatron-window", megatron_window},
                               NamedFunction<ImportComposer>{"megatron-rotary-share", megatron_rotary_share},
                               NamedFunction<ImportComposer>{"megatron-head-width", megatron_head_width},
                               NamedFunction<ImportComposer>{"megatron-mlp", megatron_mlp},
                               NamedFunction<ImportComposer>{"megatron-balance", megatron_balance},
                               NamedFunction<ImportComposer>{"megatron-capacity", megatron_capacity},
                               NamedFunction<ImportComposer>{"megatron-batches", megatron_batches},
                               NamedFunction<ImportComposer>{"megatron-recomputation", megatron_recomputation},
                               NamedFunction<ImportComposer>{"megatron-graphs", megatron_graphs},
                               NamedFunction<ImportComposer>{"megatron-tokens", megatron_tokens},
                               NamedFunction<ImportComposer>{"megatron-rate", megatron_rate},
                               NamedFunction<ImportComposer>{"torchtitan-model", torchtitan_model},
                               NamedFunction<ImportComposer>{"torchtitan-expert-tensor", torchtitan_expert_tensor},
                               NamedFunction<ImportComposer>{"torchtitan-data", torchtitan_data},
                               NamedFunction<ImportComposer>{"torchtitan-pipeline", torchtitan_pipeline},
                               NamedFunction<ImportComposer>{"torchtitan-batch", torchtitan_batch},
                               NamedFunction<ImportComposer>{"torchtitan-converters", torchtitan_converters},
                               NamedFunction<ImportComposer>{"torchtitan-betas", torchtitan_betas},
                               NamedFunction<ImportComposer>{"torchtitan-length", torchtitan_length}};

constexpr std::array launchers{NamedFunction<LaunchComposer>{"megatron-groups", launch_megatron_groups},
                               NamedFunction<LaunchComposer>{"megatron-length", launch_megatron_length},
                               NamedFunction<LaunchComposer>{"megatron-config-fields", launch_megatron_config_fields},
                               NamedFunction<LaunchComposer>{"torchtitan-model", launch_torchtitan_model},
                               NamedFunction<LaunchComposer>{"torchtitan-pipeline", launch_torchtitan_pipeline},
                               NamedFunction<LaunchComposer>{"torchtitan-rate", launch_torchtitan_rate}};

template <typename Table>
auto function_of(const Table& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& each) { return each.name == name; });
  return found == table.end() ? nullptr : found->function;
}

template <typename Table>
std::string names_of(const Table& table) {
  std::string text;
  for (const auto& each : table) text += (text.empty() ? "" : ", ") + std::string(each.name);
  return text;
}

}  // namespace

ImportComposer import_composer(std::string_view name) { return function_of(importers, name); }
LaunchComposer launch_composer(std::string_view name) { return function_of(launchers, name); }
std::string composer_names(bool of_launch) { return of_launch ? names_of(launchers) : names_of(importers); }

}  // namespace slipway::scenarios
