#include "exec/run/loss_lines.h"

#include <charconv>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace slipway::exec {

double number_from(const std::string& text, const char* what) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::runtime_error(std::string("the ") + what + " is no number: \"" + text + "\"");
  return number;
}

std::vector<LossLine> loss_lines(const std::string& path) {
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

std::string losses_before(const std::string& path, std::int64_t step) {
  std::string kept;
  for (const LossLine& line : loss_lines(path))
    if (line.step < step) kept += line.text + '\n';
  return kept;
}

}  // namespace slipway::exec
