#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "models/fit/least_squares.h"
#include "models/fit/robust_fit.h"
#include "models/fit/student.h"

namespace slipway::test {

namespace {

Matrix matrix(std::size_t columns, std::vector<double> values) {
  Matrix m(values.size() / columns, columns);
  m.values = std::move(values);
  return m;
}

TEST(Nnls, SolvesAnExactSystemWithAPositiveSolution) {
  const auto x = nonnegative_least_squares(matrix(2, {1, 1, 1, 2, 1, 3}), std::vector<double>{3, 5, 7});
  EXPECT_NEAR(x[0], 1, 1e-12);
  EXPECT_NEAR(x[1], 2, 1e-12);
}

// Least squares through (0, 2), (1, 1), (2, 0): intercept 2, slope −1. Without a negative slope the best
// line is the mean, 1.
TEST(Nnls, BindsAColumnThatWouldBeNegative) {
  const auto x = nonnegative_least_squares(matrix(2, {1, 0, 1, 1, 1, 2}), std::vector<double>{2, 1, 0});
  EXPECT_NEAR(x[0], 1, 1e-12);
  EXPECT_EQ(x[1], 0);
}

// min (x + y − 1)² + (x − y − 3)²: unconstrained (2, −1); on y = 0: 2x − 4 = 0.
TEST(Nnls, ReoptimisesTheOthersWhenOneIsBound) {
  const auto x = nonnegative_least_squares(matrix(2, {1, 1, 1, -1}), std::vector<double>{1, 3});
  EXPECT_NEAR(x[0], 2, 1e-12);
  EXPECT_EQ(x[1], 0);
}

TEST(Nnls, IsZeroWhereEveryColumnPointsAway) {
  const auto x = nonnegative_least_squares(matrix(2, {1, 0, 0, 1}), std::vector<double>{-1, -2});
  EXPECT_EQ(x, (std::vector<double>{0, 0}));
}

TEST(Nnls, TakesColumnsOfVeryDifferentSizeAndAColumnOfZeros) {
  const auto x =
      nonnegative_least_squares(matrix(3, {1e12, 0, 1, 2e12, 0, 1, 3e12, 0, 1}), std::vector<double>{1.5, 2.5, 3.5});
  EXPECT_NEAR(x[0] * 1e12, 1, 1e-9);
  EXPECT_EQ(x[1], 0);
  EXPECT_NEAR(x[2], 0.5, 1e-9);
}

// Karush-Kuhn-Tucker: where x > 0 the gradient vanishes, where x = 0 it does not point inwards.
TEST(Nnls, SatisfiesTheOptimalityConditionsOnRandomProblems) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (int problem = 0; problem < 200; ++problem) {
    Matrix a(12, 5);
    std::vector<double> b(12);
    for (double& value : a.values) value = normal(random);
    for (double& value : b) value = normal(random);
    const auto x = nonnegative_least_squares(a, b);
    for (std::size_t j = 0; j < 5; ++j) {
      double gradient = 0;
      for (std::size_t i = 0; i < 12; ++i) {
        double residual = -b[i];
        for (std::size_t k = 0; k < 5; ++k) residual += a.at(i, k) * x[k];
        gradient += a.at(i, j) * residual;
      }
      EXPECT_GE(x[j], 0);
      if (x[j] > 0)
        EXPECT_NEAR(gradient, 0, 1e-9);
      else
        EXPECT_GE(gradient, -1e-9);
    }
  }
}

TEST(Nnls, RefusesSizesThatDoNotMatchAndNumbersThatAreNone) {
  EXPECT_THROW(nonnegative_least_squares(matrix(2, {1, 0, 0, 1}), std::vector<double>{1}), std::invalid_argument);
  EXPECT_THROW(nonnegative_least_squares(matrix(1, {std::nan("")}), std::vector<double>{1}), std::invalid_argument);
}

}  // namespace

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
    if (every_nth_is_wild > 0 && i % every_nth_is_wild == 0) y *= i % (2 * every_nth_is_wild) == 0 ? 5 : 0.2;
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
  const auto errors = standard_errors(a, std::vector<double>{0.1, -0.1, 0.1, 0}, std::vector<double>(4, 1.0));
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

// Against the printed table: Abramowitz & Stegun 1964, table 26.10, two-sided 0.95.

namespace {

TEST(Student, IsThePrintedTable) {
  const std::pair<std::size_t, double> printed[] = {{1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},
                                                    {6, 2.447},  {7, 2.365},  {8, 2.306},  {10, 2.228}, {15, 2.131},
                                                    {20, 2.086}, {30, 2.042}, {60, 2.000}, {120, 1.980}};
  for (const auto& [degrees, value] : printed) EXPECT_NEAR(student_975(degrees), value, 6e-4) << degrees;
  EXPECT_NEAR(student_975(1'000'000), 1.959964, 1e-5);
}

TEST(Student, OfOneValueNoErrorIsKnown) { EXPECT_THROW(student_975(0), std::invalid_argument); }

}  // namespace

}  // namespace slipway::test
