// Numbers that depend on a seed and an index only, so that every rank and every layout draws the same ones.
#pragma once

#include <cstdint>
#include <string_view>

namespace slipway {

// 64 random bits that depend on both arguments (splitmix64, Steele 2014), and on a text (FNV-1a).
std::uint64_t mix(std::uint64_t seed, std::uint64_t index);
std::uint64_t mix(std::uint64_t seed, std::string_view text);

}  // namespace slipway
