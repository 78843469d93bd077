// Scores by hand.
#include "scenarios/validation/scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace slipway {
namespace {

TEST(TimeScore, ErrorsAreRelativeToWhatWasMeasured) {
  const std::vector<TimePair> pairs = {{110, 100}, {80, 100}, {4, 4}};
  const TimeScore score = time_score(pairs);
  EXPECT_EQ(score.priced, 3);
  EXPECT_NEAR(score.mape, (10 + 20 + 0) / 3.0, 1e-12);
  EXPECT_NEAR(score.median_ape, 10, 1e-12);
  EXPECT_NEAR(score.bias, (10 - 20 + 0) / 3.0, 1e-12);
}

TEST(TimeScore, ARunThatCannotBePricedCountsAsAHundredPercent) {
  const std::vector<TimePair> pairs = {{0, 5}, {5, 5}};
  const TimeScore score = time_score(pairs);
  EXPECT_EQ(score.unpriced, 1);
  EXPECT_NEAR(score.mape, 50, 1e-12);
  EXPECT_NEAR(score.bias, 0, 1e-12);  // of the one that was priced
}

TEST(TimeScore, WithoutRowsThereIsNoError) { EXPECT_TRUE(std::isnan(time_score({}).mape)); }

TEST(RankCorrelation, OneForTheSameOrderMinusOneForTheReverse) {
  const std::vector<double> a = {1, 2, 3, 4}, same = {10, 100, 1000, 1e6}, reverse = {4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(rank_correlation(a, same), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(a, reverse), -1);
}

TEST(RankCorrelation, TiesShareTheirMeanRank) {
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: Pearson of the ranks = 4.5/√(4.5·5).
  const std::vector<double> a = {1, 2, 2, 3}, b = {1, 2, 3, 4};
  EXPECT_NEAR(rank_correlation(a, b), 4.5 / std::sqrt(4.5 * 5), 1e-12);
}

TEST(RankCorrelation, IsUndefinedForAConstant) {
  const std::vector<double> a = {1, 1}, b = {1, 2};
  EXPECT_TRUE(std::isnan(rank_correlation(a, b)));
}

TEST(RegretOfATable, ComparesTheRecommendedWithTheBest) {
  const std::vector<TableLayout> table = {
      {0.6, true, 0.45}, {0.5, true, 0.5}, {0.4, true, 0.3}, {0.3, true, 0.2}};
  const Regret regret = regret_of(table);
  EXPECT_NEAR(regret.first, 0.1, 1e-12);
  EXPECT_NEAR(regret.best_of_three, 0, 1e-12);
}

TEST(RegretOfATable, WhatIsPredictedNotToFitIsNotRecommended) {
  const std::vector<TableLayout> table = {{0.6, false, 0.5}, {0.5, true, 0.4}};
  EXPECT_NEAR(regret_of(table).first, 0.2, 1e-12);
}

TEST(RegretOfATable, ARecommendationThatRunsOutOfMemoryLosesAll) {
  const std::vector<TableLayout> table = {{0.6, true, 0}, {0.5, true, 0.4}};
  const Regret regret = regret_of(table);
  EXPECT_DOUBLE_EQ(regret.first, 1);
  EXPECT_TRUE(regret.first_ran_out);
  EXPECT_NEAR(regret.best_of_three, 0, 1e-12);
}

TEST(RegretOfATable, NoRecommendationLosesAll) {
  const std::vector<TableLayout> table = {{0.6, false, 0.5}, {0, true, 0.4}};
  EXPECT_DOUBLE_EQ(regret_of(table).first, 1);
}

TEST(MemoryConfusion, FourCasesAndTwoShares) {
  const std::vector<MemoryPair> pairs = {{true, true},  {true, true},   {true, true},
                                         {true, false}, {false, false}, {false, true}};
  const Confusion c = confusion(pairs);
  EXPECT_EQ(c.true_fit, 3);
  EXPECT_EQ(c.false_fit, 1);
  EXPECT_EQ(c.true_oom, 1);
  EXPECT_EQ(c.false_oom, 1);
  EXPECT_NEAR(c.share_right(), 4.0 / 6, 1e-12);
  EXPECT_NEAR(c.share_of_safe_oom(), 0.25, 1e-12);
}

}  // namespace
}  // namespace slipway
