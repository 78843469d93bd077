// Numbers with units, as people write them in scenario files and machine profiles:
//
//   "450 GB/s" → 4.5e11     "400 Gbit/s" → 5e10     "2 us" → 2e-6     "3 days" → 259200     "80 GiB" → 85899345920
//
// number, optional space, decimal or binary prefix, unit. A bare number is in SI base units. Case counts
// (b is refused: write bit or B), so that nothing is guessed.
// Guarded by tests/scenarios/document_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/namespaces.h"

namespace slipway::scenarios {

constexpr double hour_s = 3600, day_s = 24 * hour_s;

enum class Unit : std::uint8_t { pure, bytes, bytes_per_second, flops, seconds, tokens };

// "bytes/s" and so on: how tables and errors name the base unit; empty for pure numbers.
std::string_view name_of(Unit unit);
// Examples of what may be written: "'450 GB/s', '400 Gbit/s' or bytes/s as a plain number".
std::string_view examples_of(Unit unit);

// The value in base units; empty when `text` is not a finite number with a unit of this kind.
std::optional<double> quantity(std::string_view text, Unit unit);
// A whole number in decimal digits; empty when it is not one or does not fit.
std::optional<std::int64_t> whole_number(std::string_view text);
// Shortest text that reads back as the same double: "4.5e+11", "0.25", "8".
std::string number_text(double value);

}  // namespace slipway::scenarios
