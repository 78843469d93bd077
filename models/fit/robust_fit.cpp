#include "models/fit/robust_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "models/trace/statistics.h"

namespace slipway::models {

namespace {

constexpr double huber_constant = 1.345;
constexpr double normal_mad = 0.6745;    // median |x| of a standard normal
constexpr double smallest_sigma = 1e-4;  // below it rows are exact and all count
constexpr double loss_threshold = 0.02;  // relative: the scale on which fits are compared

double huber(double residual, double threshold) {
  const double size = std::abs(residual);
  return size <= threshold ? size * size / 2 : threshold * (size - threshold / 2);
}

std::vector<double> residuals_of(const Matrix& a, std::span<const double> b, const std::vector<double>& x) {
  std::vector<double> residuals(a.rows);
  for (std::size_t row = 0; row < a.rows; ++row) {
    double sum = -b[row];
    for (std::size_t column = 0; column < a.columns; ++column) sum += a.at(row, column) * x[column];
    residuals[row] = sum;
  }
  return residuals;
}

std::vector<double> weighted_solution(const Matrix& a, std::span<const double> b, const std::vector<double>& weights) {
  Matrix scaled = a;
  std::vector<double> right(b.begin(), b.end());
  for (std::size_t row = 0; row < a.rows; ++row) {
    const double root = std::sqrt(weights[row]);
    for (std::size_t column = 0; column < a.columns; ++column) scaled.at(row, column) *= root;
    right[row] *= root;
  }
  return nonnegative_least_squares(scaled, right);
}

// Weighted columns of `a`.
Eigen::MatrixXd weighted(const Matrix& a, std::span<const double> weights) {
  Eigen::MatrixXd result(static_cast<Eigen::Index>(a.rows), static_cast<Eigen::Index>(a.columns));
  for (std::size_t row = 0; row < a.rows; ++row) {
    for (std::size_t column = 0; column < a.columns; ++column) {
      result(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(column)) =
          a.at(row, column) * std::sqrt(weights[row]);
    }
  }
  return result;
}

// A row of leverage 1 is met exactly whatever was measured, so its residual of 0 has no information about its column.
bool hangs_on_one_row(const Eigen::MatrixXd& a, const Eigen::MatrixXd& inverse, Eigen::Index column) {
  for (Eigen::Index row = 0; row < a.rows(); ++row) {
    const double leverage = a.row(row) * inverse * a.row(row).transpose();
    if (leverage > 1 - 1e-6 && std::abs(a(row, column)) > 1e-3) return true;
  }
  return false;
}

}  // namespace

RobustFit robust_fit(const Matrix& a, std::span<const double> b, std::span<const double> weights) {
  RobustFit fit;
  fit.weights.assign(weights.begin(), weights.end());
  constexpr int most_rounds = 50;
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<double> solution = weighted_solution(a, b, fit.weights);
    fit.residuals = residuals_of(a, b, solution);
    std::vector<std::pair<double, double>> sizes;
    for (std::size_t row = 0; row < a.rows; ++row) sizes.emplace_back(std::abs(fit.residuals[row]), weights[row]);
    const double sigma = weighted_median(std::move(sizes)) / normal_mad;
    const double threshold = huber_constant * std::max(sigma, smallest_sigma);
    for (std::size_t row = 0; row < a.rows; ++row) {
      fit.weights[row] = weights[row] * std::min(1.0, threshold / std::max(std::abs(fit.residuals[row]), 1e-300));
    }
    double change = 0;
    for (std::size_t i = 0; i < solution.size() && !fit.solution.empty(); ++i) {
      change = std::max(change, std::abs(solution[i] - fit.solution[i]) / std::max(std::abs(solution[i]), 1e-300));
    }
    const bool settled = !fit.solution.empty() && change < 1e-10;
    fit.solution = std::move(solution);
    if (settled) break;
  }
  for (std::size_t row = 0; row < a.rows; ++row) fit.loss += weights[row] * huber(fit.residuals[row], loss_threshold);
  return fit;
}

std::vector<double> standard_errors(const Matrix& a, std::span<const double> residuals,
                                    std::span<const double> weights) {
  std::vector<double> errors(a.columns, std::numeric_limits<double>::infinity());
  const std::vector<bool> known = identified(a, weights);
  std::vector<Eigen::Index> columns;
  for (std::size_t i = 0; i < a.columns; ++i) {
    if (known[i]) columns.push_back(static_cast<Eigen::Index>(i));
  }
  const auto rows =
      static_cast<double>(std::count_if(weights.begin(), weights.end(), [](double weight) { return weight > 0; }));
  const double freedom = rows - static_cast<double>(columns.size());
  if (columns.empty() || freedom < 1) return errors;
  Eigen::MatrixXd kept = weighted(a, weights)(Eigen::all, columns);
  const Eigen::VectorXd norms = kept.colwise().norm();
  for (Eigen::Index i = 0; i < kept.cols(); ++i) kept.col(i) /= norms[i];
  const Eigen::MatrixXd inverse = (kept.transpose() * kept).inverse();
  Eigen::MatrixXd scored = kept;
  for (Eigen::Index row = 0; row < kept.rows(); ++row) {
    const auto at = static_cast<std::size_t>(row);
    scored.row(row) *= residuals[at] * std::sqrt(weights[at]);
  }
  const Eigen::MatrixXd covariance = inverse * (scored.transpose() * scored) * inverse * (rows / freedom);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    if (!hangs_on_one_row(kept, inverse, at)) {
      errors[columns[i]] = std::sqrt(covariance(at, at)) / norms[at];
    }
  }
  return errors;
}

std::vector<bool> identified(const Matrix& a, std::span<const double> weights, double share) {
  const Eigen::MatrixXd columns = weighted(a, weights);
  Eigen::MatrixXd basis(columns.rows(), 0);
  std::vector<bool> known(a.columns, false);
  for (Eigen::Index i = 0; i < columns.cols(); ++i) {
    const double norm = columns.col(i).norm();
    if (!(norm > 0)) continue;
    Eigen::VectorXd rest = columns.col(i);
    rest -= basis * (basis.transpose() * rest);
    if (rest.norm() <= share * norm) continue;
    known[i] = true;
    basis.conservativeResize(Eigen::NoChange, basis.cols() + 1);
    basis.col(basis.cols() - 1) = rest.normalized();
  }
  return known;
}

}  // namespace slipway::models
