// The data files inside the program: machine profiles (models/machine/profiles/*.yaml), built-in models
// (models/model/library/*.yaml), families of config.json files (models/model/families/*.yaml), trainers (models/trainers/*.yaml), the fitted constants of steps and of memory, and the tables of the study folders
// (scenarios/studies/*/runs.csv), and the page of --report (scenarios/report/page/). The build copies their text into a generated source file. So a new GPU or model is
// one new YAML file, and the program can be copied to another machine.
// Invariant: text is the file byte for byte; entries are sorted by name.
// Guarded by tests/repository/repository_test.cpp.
#pragma once

#include <span>
#include <string_view>

#include "models/namespaces.h"

namespace slipway::scenarios {

struct EmbeddedFile {
  std::string_view name;  // file name without extension: "a100-80gb"
  std::string_view path;  // its place in the source tree, for error messages
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_machines();
std::span<const EmbeddedFile> embedded_models();
std::span<const EmbeddedFile> embedded_families();   // models/model/families/<model_type>.yaml
std::span<const EmbeddedFile> embedded_trainers();   // models/trainers/<trainer>.yaml
std::span<const EmbeddedFile> embedded_constants();  // models/machine/fitted_constants.yaml
std::span<const EmbeddedFile> embedded_memory();     // models/memory/pooled.yaml
std::span<const EmbeddedFile> embedded_tables();     // the runs.csv that fitted_constants.yaml names; by study
std::span<const EmbeddedFile> embedded_page();       // scenarios/report/page/; the name is the file's, with extension

}  // namespace slipway::scenarios
