// The one definition of a median, for everything that is measured several times, of a weighted median, of a mean's
// standard error, of a quantile, and of a normal distribution's share.
//
//   {1, 5, 2} ──► 2        {1, 5, 2, 4} ──► 3, the mean of the two middle values
//   value (weight) {1 (1), 5 (3), 2 (1)} ──► 5, the first with half of the weight at or below it
//   5 % of {1, 2, ..., 21} ──► 2       between two values on their line
//   s / √n, s² = Σ(x − mean)² / (n − 1)      unknown for one value
//
// Guarded by tests/models/machine_test.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "models/namespaces.h"

namespace slipway::models {

// Requires values.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// `share` of the values lie below it. Requires values.
inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at), above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

// Takes pairs of value and weight ≥ 0, at least one.
inline double weighted_median(std::vector<std::pair<double, double>> values) {
  std::sort(values.begin(), values.end());
  double half = 0, passed = 0;
  for (const auto& [value, weight] : values) half += weight / 2;
  for (const auto& [value, weight] : values) {
    passed += weight;
    if (passed >= half) return value;
  }
  return values.back().first;
}

inline std::optional<double> standard_error(const std::vector<double>& values) {
  if (values.size() < 2) return std::nullopt;
  const double n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (n - 1) / n);
}

// The share of a normal distribution below `z` standard deviations.
inline double normal_share(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

}  // namespace slipway::models
