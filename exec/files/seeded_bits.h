// Random bits that depend on a seed and an index only, so that every rank and every layout draws the same numbers.
// Guarded by tests/exec/execute_inputs_test.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/namespaces.h"

namespace slipway::exec {

// 64 random bits that depend on both arguments (splitmix64, Steele 2014); a text is hashed with FNV-1a.
std::uint64_t mix(std::uint64_t seed, std::uint64_t index);
std::uint64_t mix(std::uint64_t seed, std::string_view text);

}  // namespace slipway::exec
