// Functions for what several arguments mean together where a dictionary cannot state it as data: arithmetic, lists and
// texts. A dictionary names these functions (`compose: megatron-split`), in the order in which they are called.
// Guarded by tests/scenarios/import_command_test.cpp and tests/scenarios/launch_arguments_test.cpp.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/trainers/launch.h"
#include "scenarios/trainers/reading.h"

namespace slipway::scenarios {

// From arguments to keys. nullptr where there is no such function.
using ImportComposer = void (*)(Reading& reading);
ImportComposer import_composer(std::string_view name);
// From a scenario to arguments.
using LaunchComposer = void (*)(const Scenario& scenario, LaunchArguments& launch);
LaunchComposer launch_composer(std::string_view name);
// "megatron-split, megatron-window"
std::string composer_names(bool of_launch);

// compose_megatron.cpp
void megatron_split(Reading& reading);
void megatron_vocabulary(Reading& reading);
void megatron_window(Reading& reading);
void megatron_rotary_share(Reading& reading);
void megatron_head_width(Reading& reading);
void megatron_mlp(Reading& reading);
void megatron_balance(Reading& reading);
void megatron_capacity(Reading& reading);
void megatron_batches(Reading& reading);
void megatron_recomputation(Reading& reading);
void megatron_graphs(Reading& reading);
void megatron_tokens(Reading& reading);
void megatron_rate(Reading& reading);
// compose_torchtitan.cpp
void torchtitan_model(Reading& reading);
void torchtitan_expert_tensor(Reading& reading);
void torchtitan_data(Reading& reading);
void torchtitan_pipeline(Reading& reading);
void torchtitan_batch(Reading& reading);
void torchtitan_converters(Reading& reading);
void torchtitan_betas(Reading& reading);
void torchtitan_length(Reading& reading);
// Adds what a config of torchtitan's registry sets (--module llama3 --config llama3_8b) and no argument overrides.
void add_torchtitan_registry(const Dictionary& dictionary, Arguments& arguments, Defects& defects);
// launch_composers.cpp
void launch_megatron_groups(const Scenario& scenario, LaunchArguments& launch);
void launch_megatron_length(const Scenario& scenario, LaunchArguments& launch);
void launch_megatron_config_fields(const Scenario& scenario, LaunchArguments& launch);
void launch_torchtitan_model(const Scenario& scenario, LaunchArguments& launch);
void launch_torchtitan_pipeline(const Scenario& scenario, LaunchArguments& launch);
void launch_torchtitan_rate(const Scenario& scenario, LaunchArguments& launch);

}  // namespace slipway::scenarios
