// Reads the lines "step samples loss learning-rate ..." that rank 0 writes, to find how far a run has come. A last line
// without its end may look whole ("12" of "123"), so it is left out, like a line that does not begin with a step.
// (Where losses are shown, scenarios/commands/execute/run_folder.h reads them whole and reports such a line as an error.)
// Plain C++, no LibTorch. Guarded by tests/scenarios/run_folder_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/namespaces.h"

namespace slipway::exec {

// A number as ranks write them, also "nan" and denormal ones, which streams and std::stod refuse. Throws
// std::runtime_error that names `what`.
double number_from(const std::string& text, const char* what);

struct LossLine {
  std::int64_t step = 0;  // of the training, from 0
  std::string text;       // without its end
};

// Empty if there is no such file.
std::vector<LossLine> loss_lines(const std::string& path);

// The lines of the steps before `step`, unchanged.
std::string losses_before(const std::string& path, std::int64_t step);

}  // namespace slipway::exec
