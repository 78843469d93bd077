// Arguments in a TOML file. Guarded by tests/scenarios/import_arguments_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/language/document.h"
#include "scenarios/trainers/given_arguments.h"

namespace slipway::scenarios {

// The tables and keys of a TOML file as "table.key".
std::vector<Argument> toml_arguments(const std::string& path, Defects& defects);

}  // namespace slipway::scenarios
