#include "models/fit/robust.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace slipway {
namespace {

// y = 2 + 3x on x = 0.1, 0.2, ..., in relative form.
struct Line {
  Matrix a;
  std::vector<double> b, weights;
};

Line line(std::size_t points, double noise, std::size_t every_nth_is_wild) {
  Line result{Matrix(points, 2), std::vector<double>(points, 1.0), std::vector<double>(points, 1.0)};
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0, noise);
  for (std::size_t i = 0; i < points; ++i) {
    const double x = 0.1 * static_cast<double>(i + 1);
    double y = (2 + 3 * x) * (1 + normal(random));
    if (every_nth_is_wild > 0 && i % every_nth_is_wild == 0)
      y *= i % (2 * every_nth_is_wild) == 0 ? 5 : 0.2;
    result.a.at(i, 0) = 1 / y;
    result.a.at(i, 1) = x / y;
  }
  return result;
}

TEST(RobustFit, IsExactOnExactData) {
  const Line data = line(20, 0, 0);
  const RobustFit fit = robust_fit(data.a, data.b, data.weights);
  EXPECT_NEAR(fit.solution[0], 2, 1e-9);
  EXPECT_NEAR(fit.solution[1], 3, 1e-9);
  EXPECT_NEAR(fit.loss, 0, 1e-15);
}

TEST(RobustFit, IsNotMovedByATenthOfTheRowsBeingFiveTimesTooSlowOrTooFast) {
  const Line data = line(100, 0.01, 10);
  const RobustFit fit = robust_fit(data.a, data.b, data.weights);
  EXPECT_NEAR(fit.solution[0], 2, 0.02 * 2);
  EXPECT_NEAR(fit.solution[1], 3, 0.02 * 3);
  const auto plain = nonnegative_least_squares(data.a, data.b);
  EXPECT_GT(std::abs(plain[0] - 2) + std::abs(plain[1] - 3), 0.2) << "plain least squares is moved";
}

TEST(RobustFit, IgnoresRowsOfWeightZero) {
  Line data = line(20, 0, 2);
  for (std::size_t i = 0; i < 20; i += 2) data.weights[i] = 0;
  const RobustFit fit = robust_fit(data.a, data.b, data.weights);
  EXPECT_NEAR(fit.solution[0], 2, 1e-9);
  EXPECT_NEAR(fit.solution[1], 3, 1e-9);
}

// The classical errors of a straight line: s²·(XᵀX)⁻¹.
TEST(StandardErrors, AreThoseOfOrdinaryLeastSquares) {
  Matrix a(4, 2);
  for (std::size_t i = 0; i < 4; ++i) a.at(i, 0) = 1, a.at(i, 1) = static_cast<double>(i);
  const std::vector<double> residuals{0.1, -0.1, -0.1, 0.1}, weights(4, 1.0);
  const double variance = 0.04 / 2;  // squares over degrees of freedom
  const auto errors = standard_errors(a, residuals, weights);
  EXPECT_NEAR(errors[0], std::sqrt(variance * 14.0 / 20.0), 1e-12);  // Σx²/(nΣx² − (Σx)²)
  EXPECT_NEAR(errors[1], std::sqrt(variance * 4.0 / 20.0), 1e-12);
}

// Two kinds of rows, each with its own column: the noisy kind does not widen the other's interval.
TEST(StandardErrors, OfQuietRowsAreNotWidenedByNoisyRowsOfAnotherColumn) {
  Matrix a(8, 2);
  std::vector<double> residuals(8), weights(8, 1.0);
  for (std::size_t i = 0; i < 8; ++i) {
    a.at(i, i / 4) = 1;
    residuals[i] = (i % 2 == 0 ? 1 : -1) * (i < 4 ? 0.01 : 1.0);
  }
  const auto errors = standard_errors(a, residuals, weights);
  EXPECT_NEAR(errors[1] / errors[0], 100, 1e-9);
}

TEST(StandardErrors, AreUnknownForAColumnThatASingleRowDetermines) {
  Matrix a(4, 2);
  for (std::size_t i = 0; i < 3; ++i) a.at(i, 0) = 1;
  a.at(3, 1) = 1;
  const auto errors =
      standard_errors(a, std::vector<double>{0.1, -0.1, 0.1, 0}, std::vector<double>(4, 1.0));
  EXPECT_TRUE(std::isfinite(errors[0]));
  EXPECT_TRUE(std::isinf(errors[1]));
}

TEST(StandardErrors, CoverTheTruthInAboutNineteenOfTwentyFits) {
  int covered = 0;
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(0, 0.05);
  for (int trial = 0; trial < 400; ++trial) {
    Matrix a(30, 2);
    for (std::size_t i = 0; i < 30; ++i) {
      const double x = 0.1 * static_cast<double>(i + 1), y = (2 + 3 * x) * (1 + normal(random));
      a.at(i, 0) = 1 / y, a.at(i, 1) = x / y;
    }
    const std::vector<double> b(30, 1.0), ones(30, 1.0);
    const RobustFit fit = robust_fit(a, b, ones);
    const auto errors = standard_errors(a, fit.residuals, fit.weights);
    covered += std::abs(fit.solution[1] - 3) <= 1.96 * errors[1] ? 1 : 0;
  }
  EXPECT_GT(covered, 0.85 * 400);
  EXPECT_LT(covered, 0.99 * 400);
}

TEST(Identified, DropsAColumnThatEarlierOnesExplainAndOneOfZeros) {
  Matrix a(3, 4);
  for (std::size_t i = 0; i < 3; ++i) {
    a.at(i, 0) = 1, a.at(i, 1) = static_cast<double>(i), a.at(i, 2) = 2 + static_cast<double>(i);
  }
  EXPECT_EQ(identified(a, std::vector<double>(3, 1.0)), (std::vector<bool>{true, true, false, false}));
}

}  // namespace
}  // namespace slipway
