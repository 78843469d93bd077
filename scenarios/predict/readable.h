// Numbers as text for people: three or four significant digits and a unit.
//
//   readable_seconds(0.4123) = "412 ms"    readable_bytes(3.2e9) = "2.98 GiB"    readable_share(0.05) = "5.0 %"
//
// Exact values are in --json and in traces. Guarded by tests/scenarios/answers_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

std::string readable_seconds(double seconds);    // "0 s", "12.3 µs", "412 ms", "1.23 s", "3.4 h", "12.3 days"
std::string readable_bytes(double bytes);        // binary units
std::string readable_share(double share);        // a fraction of one
std::string readable_count(double count);        // "12,345", "10.4 M"
std::string readable_flops(double flops_per_s);  // "91.2 GFLOP/s"
// For a column of numbers that may be absent: NaN is "-".
std::function<std::string(double)> or_dash(std::function<std::string(double)> text);
// For a column of flags.
std::string yes_no(bool yes);
// Singular or plural: "1 rank", "4 ranks", "12,345 tasks".
std::string counted(std::int64_t count, const std::string& noun);

// Characters on a terminal; counts UTF-8 sequences, not bytes.
std::size_t display_width(const std::string& text);

// Rows of cells with aligned columns: the first to the left, all others to the right, two spaces apart.
// The first row is the heading. Each line starts with `indent`.
std::string aligned_table(const std::vector<std::vector<std::string>>& rows, const std::string& indent = "");

}  // namespace slipway::scenarios
