// Stack profiles (models/stacks/<trainer>.yaml) as Stack: the `time` section, a set of constants per machine.
//
//   time:
//     a100-80gb:
//       scale: 0.03
//       gemm_efficiency: {value: 0.71, prior: 0.75, spread: 0.1, source: "..."}
//
// Every parameter of the trainer's formula must be there and no other; every one names its source.
// Guarded by tests/stacks_test.cpp: every built-in loads; unknown, missing and sourceless constants are errors.
#pragma once

#include <string>

#include "models/stack.h"
#include "scenarios/document.h"

namespace slipway {

// The built-in stack of a trainer; nullptr when there is none. Lives as long as the program.
const Stack* built_in_stack(std::string_view trainer);

// Empty after an error.
std::optional<Stack> stack_from_yaml(const std::string& text, const std::string& file, const std::string& trainer,
                                     Defects& defects);

}  // namespace slipway
