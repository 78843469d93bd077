// Stack profiles (models/trainers/<trainer>.yaml) as Stack: `time`, a set of constants per machine, and `memory`, facts
// that hold on every machine.
//
//   time:
//     a100-80gb:
//       scale: 0.03
//       gemm_efficiency: {value: 0.71, prior: 0.75, spread: 0.1, source: "..."}
//   memory:
//     loss: {value: plain, source: "..."}
//
// One of the two may be missing. In `time` every parameter of the trainer's formula must be there and no
// other; in `memory` what is missing is as MemoryFacts has it. Every constant and fact names its source. Guarded by
// tests/models/trainers_test.cpp: every built-in loads; unknown, missing and sourceless entries are errors.
#pragma once

#include <string>

#include "models/trainers/stack.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {

// The built-in stack of a trainer; nullptr when there is none. Lives as long as the program.
const Stack* built_in_stack(std::string_view trainer);

// A built-in name or the path of a profile, whose name is then the trainer's. Empty after an error.
std::optional<Stack> load_stack(const std::string& name_or_path, const Reference& from, Defects& defects);
std::optional<Stack> stack_from_yaml(const std::string& text, const std::string& file, const std::string& trainer,
                                     Defects& defects);

}  // namespace slipway::scenarios
