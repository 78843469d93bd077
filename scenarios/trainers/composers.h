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

}  // namespace slipway::scenarios
