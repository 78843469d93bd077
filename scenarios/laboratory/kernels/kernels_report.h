// The answer of `slipway kernels`: constants of measured kernels with intervals, and how far shapes that a fit did not
// see are off. Guarded by tests/scenarios/kernels_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/laboratory/kernels/kernel_rows.h"
#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

struct FittedKernel {
  KernelRows measured;
  KernelFit fit;
  std::optional<KernelError> built_in = std::nullopt;  // how far the profile of this GPU is off
};

std::string kernels_text(const std::vector<FittedKernel>& kernels);
std::string kernels_json(const std::vector<FittedKernel>& kernels);
// The section `kernels` of a machine profile (scenarios/language/load_kernels.h). All must be of one GPU. `writer`: the
// command. `others`: a GPU of the same kind, whose kernels follow where they were not measured.
std::string kernels_section(const std::vector<FittedKernel>& kernels, const std::string& writer,
                            const Machine* others = nullptr);
// Every shape: GPU, kernel, the columns that name the shape, measured and predicted seconds (by the fit that did not see
// it), and their ratio - 1.
std::string shapes_csv(const std::vector<FittedKernel>& kernels);

// The keys of its --json.
std::vector<AnswerKeys> kernels_answers();

}  // namespace slipway::scenarios
