// What stands between a document and its table of keys: --set key=value, the short forms of sections, and paths that
// were typed at the prompt. Guarded by tests/scenarios/document_test.cpp and tests/scenarios/scenario_errors_test.cpp.
#pragma once

#include <span>
#include <string>

#include "scenarios/language/document.h"
#include "scenarios/language/keys.h"

namespace slipway::scenarios {

// "model: gpt2" → "model: {name: gpt2}", for every section of the table that has a shorthand.
void expand_shorthands(Value& document, std::span<const Key> table);
// Makes the relative paths that came through --set absolute: they start at the current folder, while those
// of a file start at its folder.
void anchor_paths(Value& document, std::span<const Key> table);

// "layout.tensor=4", "cluster.groups.0.nodes=2", "layout.split=[3, 5]": the value is YAML; nothing or null
// makes the key unset again.
void apply_override(const std::string& option, std::span<const Key> table, Value& document, Defects& defects);

}  // namespace slipway::scenarios
