// From a scenario to several arguments together (composers.h).
// Guarded by tests/scenarios/launch_arguments_test.cpp.
#pragma once

#include "scenarios/language/scenario.h"
#include "scenarios/trainers/launch.h"

namespace slipway::scenarios {

void launch_megatron_groups(const Scenario& scenario, LaunchArguments& launch);
void launch_megatron_length(const Scenario& scenario, LaunchArguments& launch);
void launch_megatron_config_fields(const Scenario& scenario, LaunchArguments& launch);
void launch_torchtitan_model(const Scenario& scenario, LaunchArguments& launch);
void launch_torchtitan_pipeline(const Scenario& scenario, LaunchArguments& launch);
void launch_torchtitan_rate(const Scenario& scenario, LaunchArguments& launch);

}  // namespace slipway::scenarios
