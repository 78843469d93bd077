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

// Robust non-negative least squares: a few wild measurements (a page fault, another program) must not move the fit.
//
// Iteratively reweighted: rows whose residual exceeds 1.345 σ are weighted by 1.345 σ/|r|, with σ from the weighted
// median of |r| (Huber 1964; the constant keeps 95 % efficiency on normal errors). Rows must be in relative form,
// prediction/measurement − 1: divide row and right side by the measured value, so that a microsecond and a second count
// alike.
// Guarded by tests/models/least_squares_test.cpp.

struct RobustFit {
  std::vector<double> solution;   // ≥ 0
  std::vector<double> residuals;  // A·x − b, per row
  std::vector<double> weights;    // Huber's, times the given ones
  double loss = 0;                // Σ weight · Huber(residual) at a fixed threshold, to compare fits
};

// `weights` per row, ≥ 0.
RobustFit robust_fit(const Matrix& a, std::span<const double> b, std::span<const double> weights);

// Standard errors of the columns of `a` at a fit with these residuals and weights, valid where some kinds of rows
// scatter more than others: (AᵀWA)⁻¹·AᵀW²R²A·(AᵀWA)⁻¹, R the residuals (White 1980), times rows over degrees of
// freedom. Columns that are zero, depend on earlier ones or hang on a single row get infinity.
std::vector<double> standard_errors(const Matrix& a, std::span<const double> residuals,
                                    std::span<const double> weights);

// The columns that the rows determine. In the given order, a column counts if the accepted ones leave more than `share`
// of its norm unexplained.
std::vector<bool> identified(const Matrix& a, std::span<const double> weights, double share = 1e-3);

// The 97.5 % point of Student's t: the half-width of a 95 % interval in standard errors, when the error itself comes
// from few values.
//
//   degrees of freedom    2      5      10     20     endless
//   standard errors       4.30   2.57   2.23   2.09   1.96
//
// Guarded by tests/models/least_squares_test.cpp against the table of Abramowitz & Stegun 1964, 26.10.

// `degrees` ≥ 1.
double student_975(std::size_t degrees);

}  // namespace slipway::models
