// The `kernels` of a machine profile: constants of its kernels (models/machine/kernels.h), each set under the name of its
// kernel.
//
//   kernels:
//     source: "1,938 products timed on this GPU, ..."
//     gemm bfloat16: {share: 0.738, area: 648, memory: 0.618, launch: 2.37e-06, deviation: [0.004, 0.2, 0.05, 0.03], left_out: 0.061}
//     collective all-reduce: {share: 0.95, own: 0.551, launch: 5.83e-06, hop: 1.11e-06, ramp: 6.74e-09, ...}
//   kernels: {as: a100-80gb, source: "the same processor"}        those of another built-in profile
//
// `deviation`: standard deviation of each value's logarithm after the fit. `left_out`: mean error of shapes that the fit
// did not see. Both are for people. `slipway kernels --profile` writes the section.
// Guarded by tests/scenarios/scenario_profiles_test.cpp.
#pragma once

#include <optional>

#include "models/machine/kernels.h"
#include "scenarios/language/document.h"

namespace slipway::scenarios {

// "gemm bfloat16", "attention fp8 64", "collective all-reduce"; nothing for another text.
std::optional<KernelKey> kernel_key_named(const std::string& name);

// Adds defects, and returns what could be read. `section` is the map under the key `kernels`.
MachineKernels kernels_from(const Value& section, Defects& defects);

}  // namespace slipway::scenarios
