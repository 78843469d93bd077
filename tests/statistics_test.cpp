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

}  // namespace
}  // namespace slipway
