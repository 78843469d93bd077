// The one definition of a median, for everything that is measured several times.
//
//   {1, 5, 2} ──► 2        {1, 5, 2, 4} ──► 3, the mean of the two middle values
//
// Guarded by tests/step_times_test.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace slipway {

// `values` is not empty.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace slipway
