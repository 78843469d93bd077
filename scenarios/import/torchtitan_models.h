// torchtitan's models by name and flavor, and the configs of its registry. A new one is one row.
//
//   {"llama3", "8B", "llama3_8b", {{"name", "llama-3.1-8b"}}}                 a built-in model
//   {"llama3", "debugmodel", "llama3_debugmodel", {{"family", "llama"}, ...}} shapes
//
// Shapes of torchtitan/models/<name>/__init__.py, configs of torchtitan/models/<name>/config_registry.py (0.3).
// Guarded by tests/scenarios/import_command_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

struct TorchtitanModel {
  std::string_view name, flavor;
  std::string_view config;                                             // of the registry; empty: none
  std::vector<std::pair<std::string_view, std::string_view>> shape;    // keys of `model`
  std::vector<std::pair<std::string_view, std::string_view>> presets;  // settings of the config other than the defaults
};

const TorchtitanModel* torchtitan_model(std::string_view name, std::string_view flavor);
// By the registry's name of a config; nullptr where import does not know it.
const TorchtitanModel* torchtitan_config(std::string_view module, std::string_view config);
// The entry of a built-in model of ours that has a config; nullptr where there is none.
const TorchtitanModel* torchtitan_entry_of(std::string_view built_in);
// "llama3 8B, llama3 70B, ..."
std::string torchtitan_model_names();

// Of a built-in model by its name; `otherwise` where there is no name.
std::int64_t model_layers(const std::string& built_in, std::int64_t otherwise);
bool is_mixture(const std::string& built_in, std::int64_t experts);

}  // namespace slipway::scenarios
