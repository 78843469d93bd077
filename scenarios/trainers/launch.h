// A scenario as the command line of a trainer, by its dictionary: the way back of reading.h.
//
//   Scenario ──► values: every bound key, the model's, and what follows from several
//            ──► terms in the dictionary's order ──► arguments;   its `launch` steps ──► refused, missing, to add
//
// A term of effect `key` without `launch` is given where its key has a value other than the trainer's `default`. Terms
// with `launch` are given as that says. All others are left out.
// Guarded by tests/scenarios/launch_arguments_test.cpp and tests/scenarios/trainer_arguments_test.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/trainers/dictionary.h"

namespace slipway::scenarios {

struct LaunchArguments {
  std::string version;                      // of the trainer that has these names
  std::vector<std::string> environment;     // "CUDA_DEVICE_MAX_CONNECTIONS=1"
  std::string program;                      // "pretrain_gpt.py"
  std::vector<std::string> arguments;       // each with its value
  std::vector<std::string> refused;         // why the trainer may refuse this layout, or run another one
  std::vector<std::string> refused_anyway;  // why it refuses the arguments with any layout
  std::vector<std::string> missing;         // settings of the scenario that it has no option for, in words
  std::vector<std::string> to_add;          // options that a scenario does not hold, and defaults of slipway
};

// `version`: of the dictionary; empty: the last one.
LaunchArguments arguments_for(const Dictionary& dictionary, const std::string& version, const Scenario& scenario);

// The reasons why the trainer cannot train the scenario in any layout; empty: it can.
std::vector<std::string> impossible_for(const Dictionary& dictionary, const Scenario& scenario);

// Values of the model's keys, and of any name of a dictionary's `launch`: a scenario key, or one of launch_values.cpp
// ("launch.first_ffn"). Nothing where it is absent.
using LaunchValues = std::map<std::string, std::string, std::less<>>;
LaunchValues model_values(const Scenario& scenario);
std::optional<std::string> launch_value(const Scenario& scenario, const LaunchValues& model, std::string_view name);
// Names that are no scenario keys.
bool is_launch_value(std::string_view name);

// Dictionaries that --emit writes. nullptr where there is no such one.
const Dictionary* launched_dictionary(const std::string& name);
std::vector<std::string> launched_names();
// The version that the scenario's trainer names, where it is one of that dictionary; else empty.
std::string dictionary_version(const Dictionary& dictionary, const Scenario& scenario);

}  // namespace slipway::scenarios
