// Probabilities of fitting, against synthetic needs whose constants are drawn from the same distribution.
#include "models/memory/memory_odds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace slipway::test {
namespace {

StageTerms layers(double bytes) {
  StageTerms terms;
  terms.parts[MemoryPart::mlp] = bytes;
  return terms;
}

// A layer factor of 1 ± 0.1 and a context of 10 GB ± 0.2, independent.
MemoryConstants uncertain() {
  MemoryConstants constants;
  constants.context_bytes = 10e9;
  constants.spreads.assign(memory_parameters().size(), 0.1);
  const std::size_t n = constants.spreads.size();
  constants.covariance.assign(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const auto name = memory_parameters()[i].name;
    if (name == "context_bytes") constants.spreads[i] = 0.2;
    if (name == "context_bytes" || name == "layer_factor") constants.covariance[i * n + i] = 1;
  }
  constants.row_spread = 0.03, constants.table_spread = 0.04, constants.other_share = 0.01;
  return constants;
}

TEST(MemoryOdds, TheSpreadIsThatOfConstantsTableAndRunTogether) {
  const MemoryOdds odds = odds_of(layers(30e9), uncertain());
  EXPECT_DOUBLE_EQ(odds.bytes, 40e9);
  // Three quarters of the peak have 0.1, a quarter has 0.2.
  EXPECT_NEAR(odds.spread, std::sqrt(0.075 * 0.075 + 0.05 * 0.05 + 0.03 * 0.03 + 0.04 * 0.04), 1e-4);
}

TEST(MemoryOdds, ProbabilitiesAreOneHalfAtTheMedianAndNeverCertain) {
  const MemoryOdds odds = odds_of(layers(30e9), uncertain());
  EXPECT_NEAR(odds.fits(odds.bytes), 0.5, 1e-9);
  EXPECT_NEAR(odds.fits(odds.recommended()), 0.99, 1e-9);
  EXPECT_NEAR(odds.fits(1e15), 0.995, 1e-9) << "some runs end as no count of memory knows";
  EXPECT_NEAR(odds.fits(1), 0.005, 1e-9);
  EXPECT_EQ(odds.fits(0), 0);
}

TEST(MemoryOdds, IntervalsHoldNinetyPercentOfSyntheticNeeds) {
  const MemoryOdds odds = odds_of(layers(30e9), uncertain());
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  constexpr int draws = 20000;
  int inside = 0, below = 0;
  for (int i = 0; i < draws; ++i) {
    MemoryConstants truth = uncertain();
    truth.layer_factor *= std::exp(0.1 * normal(random));
    truth.context_bytes *= std::exp(0.2 * normal(random));
    const double need = peak_bytes(layers(30e9), truth) * std::exp(std::hypot(0.03, 0.04) * normal(random));
    inside += need >= odds.least() && need <= odds.most();
    below += need <= odds.recommended();
  }
  EXPECT_NEAR(inside / static_cast<double>(draws), 0.9, 0.01);
  EXPECT_GT(below / static_cast<double>(draws), 0.99);
}

TEST(MemoryPrice, IsOfTheStageThatIsLeastLikelyToFit) {
  MemoryRun run;
  run.stages = {layers(20e9), layers(50e9), layers(30e9)};
  run.capacity_bytes = 61e9;
  const MemoryPrice price = price_memory(run, uncertain());
  EXPECT_DOUBLE_EQ(price.odds.bytes, 60e9);
  EXPECT_TRUE(price.fits);
  EXPECT_FALSE(price.fits_cautious);
  EXPECT_NEAR(price.probability, 0.55, 0.05);
  run.capacity_bytes = 90e9;
  EXPECT_TRUE(price_memory(run, uncertain()).fits_cautious);
  run.capacity_bytes = 59e9;
  EXPECT_FALSE(price_memory(run, uncertain()).fits);
}

}  // namespace
}  // namespace slipway::test
