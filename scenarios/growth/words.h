// Words that the answers of `slipway growth` share. Guarded by tests/command_growth_test.cpp.
#pragma once

#include <fmt/format.h>

#include <string>

#include "scenarios/readable.h"

namespace slipway {

// "1 token", "43.0 M tokens"
inline std::string tokens_text(double tokens) {
  return readable_count(tokens) + (tokens == 1 ? " token" : " tokens");
}

// How the noise scale goes with the loss: "~ loss^-4.76", "constant".
inline std::string power_text(double noise_exponent) {
  return noise_exponent == 0 ? "constant" : fmt::format("~ loss^-{:.3g}", noise_exponent);
}

}  // namespace slipway
