// Other names of built-in models, machines and trainers, as people and tables write them.
//
//   aliases: [H100, H100-SXM5-80GB]      one line of models/machine/profiles/h100-80gb.yaml
//
// Case, blanks and signs do not count: "Llama-3.1-405B" and "llama31_405b" are llama-3.1-405b without an alias. What is
// printed and written has the file's name. The converters of published tables (scenarios/studies/published_runs.py) read
// the same lines. Guarded by tests/scenarios/aliases_test.cpp.
#pragma once

#include <span>
#include <string>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/document.h"

namespace slipway::scenarios {

// The name of the file that is meant; `written` where none is.
std::string canonical_name(std::span<const EmbeddedFile> files, const std::string& written);

// In a scenario whose shorthands are expanded (settings.h): model.name, cluster.machine, cluster.groups.*.machine and
// cluster.trainer.
void use_canonical_names(Value& scenario);

// Takes `aliases` out of the document of such a file.
void drop_aliases(Value& document);

}  // namespace slipway::scenarios
