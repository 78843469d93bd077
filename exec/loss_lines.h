// The lines "step samples loss learning-rate ..." that rank 0 writes, for those who only ask how far a run has
// come: a last line without its end may look whole ("12" of "123") and is left out, and so is what does not
// begin with a step. (Who shows losses reads them whole, and calls such a line an error:
// scenarios/execution/run_folder.h.) Plain C++, no LibTorch. Guarded by tests/run_folder_test.cpp and
// tests/set_aside_test.cpp.
#pragma once

#include <charconv>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace slipway {

// A number as ranks write them, "nan" and denormal ones too, which streams and std::stod refuse. Throws std::runtime_error
// that names `what`.
inline double number_from(const std::string& text, const char* what) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::runtime_error(std::string("the ") + what + " is no number: \"" + text + "\"");
  return number;
}

struct LossLine {
  std::int64_t step = 0;  // of the training, from 0
  std::string text;       // without its end
};

// None where there is no such file.
inline std::vector<LossLine> loss_lines(const std::string& path) {
  std::vector<LossLine> lines;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text) && !file.eof();) {
    std::int64_t step = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, step);
    if (error == std::errc() && after != end && *after == ' ') lines.push_back({step, text});
  }
  return lines;
}

// Those of the steps before `step`, as they stand there.
inline std::string losses_before(const std::string& path, std::int64_t step) {
  std::string kept;
  for (const LossLine& line : loss_lines(path))
    if (line.step < step) kept += line.text + '\n';
  return kept;
}

}  // namespace slipway
