// Arguments of a trainer as a scenario.
//
//   files, command line ──► arguments.h ──► a trainer's dictionary (scenarios/trainers) ──► keys ──► cluster ──► YAML
//                                                    │
//                                                    └──► notes and defects
//
// Guarded by tests/scenarios/import_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/trainers/published.h"
#include "scenarios/trainers/reading.h"

namespace slipway::scenarios {

struct Imported {
  std::string yaml;
  std::vector<ImportNote> notes;
  Defects defects;
  std::optional<PublishedRun> published;  // where the dictionary has one of all these arguments
};
// `files` are read in this order; `line` is a command line, empty: none. `output` is the scenario's file: its folder is
// that of relative paths. `recipe`: a list of arguments by name, which those given hold against; empty: none.
Imported imported(const std::vector<std::string>& files, const std::string& line, const ImportChoices& choices,
                  const std::string& output, const std::string& recipe = "");

}  // namespace slipway::scenarios