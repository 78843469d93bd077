// Non-negative least squares: the x ≥ 0 that minimises ‖A·x − b‖.
//
// Active-set method of Lawson and Hanson 1974 (Solving Least Squares Problems, chapter 23): columns enter while their
// gradient shows that a positive value helps, and leave when they would turn negative. A rate, a latency or an overhead
// below zero has no meaning, and a clipped unconstrained solution would leave the others wrong.
// Guarded by tests/models/least_squares_test.cpp (cases solved by hand, and the optimality conditions on random ones).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/namespaces.h"

namespace slipway::models {

// A dense matrix, row after row.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;
  Matrix() = default;
  Matrix(std::size_t row_count, std::size_t column_count)
      : rows(row_count), columns(column_count), values(row_count * column_count, 0.0) {}
  double& at(std::size_t row, std::size_t column) { return values[row * columns + column]; }
  double at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

// Throws std::invalid_argument when the sizes do not match or a number is not finite.
std::vector<double> nonnegative_least_squares(const Matrix& a, std::span<const double> b);

}  // namespace slipway::models
