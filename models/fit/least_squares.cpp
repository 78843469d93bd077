#include "models/fit/least_squares.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace slipway::models {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void check(const Matrix& a, std::span<const double> b) {
  if (a.values.size() != a.rows * a.columns || b.size() != a.rows) {
    throw std::invalid_argument("least squares: " + std::to_string(a.rows) + " × " + std::to_string(a.columns) +
                                " matrix of " + std::to_string(a.values.size()) + " numbers, right side of " +
                                std::to_string(b.size()));
  }
  for (const double value : a.values) {
    if (!std::isfinite(value))
      throw std::invalid_argument("least squares: the matrix holds a number that is not finite");
  }
  for (const double value : b) {
    if (!std::isfinite(value))
      throw std::invalid_argument("least squares: the right side holds a number that is not finite");
  }
}

class ActiveSet {
 public:
  ActiveSet(const Eigen::MatrixXd& a, const Eigen::VectorXd& b)
      : a_(a), b_(b), x_(Eigen::VectorXd::Zero(a.cols())), free_(a.cols(), false) {}

  Eigen::VectorXd solve() {
    // Columns have norm 1, so gradients compare with the norm of b.
    const double tolerance = 1e-12 * std::max(b_.norm(), 1e-300);
    const auto most_rounds = 10 * a_.cols() + 10;  // rounding could make a column enter and leave for ever
    for (Eigen::Index round = 0; round < most_rounds; ++round) {
      const Eigen::Index entering = steepest(tolerance);
      if (entering < 0) break;
      free_[entering] = true;
      settle();
    }
    return x_;
  }

 private:
  Eigen::Index steepest(double tolerance) const {
    const Eigen::VectorXd gradient = a_.transpose() * (b_ - a_ * x_);
    Eigen::Index best = -1;
    for (Eigen::Index i = 0; i < gradient.size(); ++i) {
      if (free_[i] || gradient[i] <= tolerance) continue;
      if (best < 0 || gradient[i] > gradient[best]) best = i;
    }
    return best;
  }

  // Moves towards the unconstrained solution of the free columns. Columns that reach zero on the way become bound.
  void settle() {
    for (;;) {
      std::vector<Eigen::Index> columns;
      for (Eigen::Index i = 0; i < a_.cols(); ++i) {
        if (free_[i]) columns.push_back(i);
      }
      if (columns.empty()) return;
      const Eigen::VectorXd target = Eigen::MatrixXd(a_(Eigen::all, columns)).colPivHouseholderQr().solve(b_);
      double step = 1;
      for (std::size_t k = 0; k < columns.size(); ++k) {
        const double goal = target[static_cast<Eigen::Index>(k)], now = x_[columns[k]];
        if (goal <= 0) step = std::min(step, now > goal ? now / (now - goal) : 0.0);
      }
      for (std::size_t k = 0; k < columns.size(); ++k) {
        x_[columns[k]] += step * (target[static_cast<Eigen::Index>(k)] - x_[columns[k]]);
      }
      if (step >= 1) return;
      for (std::size_t k = 0; k < columns.size(); ++k) {
        if (target[static_cast<Eigen::Index>(k)] > 0 || x_[columns[k]] > 1e-14 * x_.cwiseAbs().maxCoeff()) continue;
        x_[columns[k]] = 0;
        free_[columns[k]] = false;
      }
    }
  }

  const Eigen::MatrixXd& a_;
  const Eigen::VectorXd& b_;
  Eigen::VectorXd x_;
  std::vector<bool> free_;
};

}  // namespace

std::vector<double> nonnegative_least_squares(const Matrix& a, std::span<const double> b) {
  check(a, b);
  Eigen::MatrixXd scaled = Eigen::Map<const RowMajor>(a.values.data(), static_cast<Eigen::Index>(a.rows),
                                                      static_cast<Eigen::Index>(a.columns));
  // Columns in units as different as FLOPs and launches: scale each to norm 1.
  Eigen::VectorXd norms = scaled.colwise().norm();
  for (Eigen::Index i = 0; i < norms.size(); ++i) {
    if (norms[i] > 0) scaled.col(i) /= norms[i];
  }
  const Eigen::VectorXd right = Eigen::Map<const Eigen::VectorXd>(b.data(), static_cast<Eigen::Index>(b.size()));
  const Eigen::VectorXd solution = ActiveSet(scaled, right).solve();
  std::vector<double> x(a.columns, 0.0);
  for (std::size_t i = 0; i < a.columns; ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    if (norms[at] > 0) x[i] = solution[at] / norms[at];
  }
  return x;
}

}  // namespace slipway::models
