// Rows of numbers in a YAML text that a program wrote, such as a covariance: read as they stand. yaml-cpp's scanner takes
// forty times as long for them, which was a fifth of a whole `simulate`.
//
//   covariance:
//     - "1"                one row a line, in quotes or brackets
//     - [0.5, 1]
//
// Guarded by tests/scenarios/load_constants_test.cpp: the same numbers as by YAML.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

// Takes the rows below the top-level `key` out of the text; their lines stay, empty, so that all others keep their numbers.
// Empty, and the text as it was, where the key is not there or a line below it is no such row.
std::optional<std::vector<std::vector<double>>> take_number_rows(std::string& text, std::string_view key);

}  // namespace slipway::scenarios
