#include "models/statistics.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

TEST(Median, IsTheMiddleValueOrTheMeanOfTheTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({7}), 7);
}

TEST(WeightedMedian, HasHalfOfTheWeightAtOrBelowIt) {
  EXPECT_EQ(weighted_median({{3, 1}, {1, 1}, {2, 1}}), 2);
  EXPECT_EQ(weighted_median({{1, 1}, {5, 3}, {2, 1}}), 5);
  EXPECT_EQ(weighted_median({{9, 0}, {4, 1}, {1, 0}}), 4) << "what weighs nothing does not count";
}

// By hand: 2, 4, 6 deviate from their mean 4 by -2, 0, 2, so s² = 8 / 2 and the error is √(4 / 3).
TEST(StandardError, OfAMeanIsOfASampleAndUnknownOfOneValue) {
  EXPECT_DOUBLE_EQ(standard_error({2, 4, 6}).value(), std::sqrt(4.0 / 3));
  EXPECT_DOUBLE_EQ(standard_error({1, 2}).value(), 0.5);
  EXPECT_EQ(standard_error({3, 3, 3}), 0);
  EXPECT_EQ(standard_error({3}), std::nullopt);
  // Shares that differ in their last digits only: the squares of such numbers do not.
  EXPECT_NEAR(standard_error({1 - 1e-9, 1 + 1e-9}).value(), 1e-9, 1e-15);
}

}  // namespace
}  // namespace slipway
