// Robust non-negative least squares: a few wild measurements (a page fault, another program) must not move the fit.
//
// Iteratively reweighted: rows whose residual exceeds 1.345 σ are weighted by 1.345 σ/|r|, with σ from the weighted
// median of |r| (Huber 1964; the constant keeps 95 % efficiency on normal errors). Rows must be in relative form,
// prediction/measurement − 1: divide row and right side by the measured value, so that a microsecond and a second count
// alike.
// Guarded by tests/models/least_squares_test.cpp.
#pragma once

#include <span>
#include <vector>

#include "models/fit/least_squares.h"

namespace slipway::models {

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

}  // namespace slipway::models
