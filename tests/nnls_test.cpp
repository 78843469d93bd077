#include "models/fit/nnls.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace slipway {
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
  const auto x = nonnegative_least_squares(matrix(3, {1e12, 0, 1, 2e12, 0, 1, 3e12, 0, 1}),
                                           std::vector<double>{1.5, 2.5, 3.5});
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
  EXPECT_THROW(nonnegative_least_squares(matrix(2, {1, 0, 0, 1}), std::vector<double>{1}),
               std::invalid_argument);
  EXPECT_THROW(nonnegative_least_squares(matrix(1, {std::nan("")}), std::vector<double>{1}),
               std::invalid_argument);
}

}  // namespace
}  // namespace slipway
