// Loads of ranks under Zipf's law, against harmonic numbers and by hand.
#include "models/model/routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "models/model/model.h"
#include "models/model/operators.h"

namespace slipway::test {
namespace {

Block experts(std::int64_t count, std::int64_t per_token) {
  Block block;
  block.kind = BlockKind::transformer;
  block.experts = count, block.experts_per_token = per_token;
  return block;
}

TEST(Routing, WithoutSkewEveryRankGetsItsPart) {
  for (const double share : expert_shares(experts(16, 4), {}, 3)) EXPECT_DOUBLE_EQ(share, 0.25);
  EXPECT_EQ(largest_load(experts(16, 4), {}, 3, 8), 1);
}

TEST(Routing, OfOneExpertATokenTheMostPopularOfZipfHasOneOverTheHarmonicNumber) {
  const double harmonic = 1 + 1 / 2.0 + 1 / 3.0 + 1 / 4.0 + 1 / 5.0 + 1 / 6.0 + 1 / 7.0 + 1 / 8.0;
  EXPECT_NEAR(largest_load(experts(8, 1), {.skew = 1}, 0, 8), 8 / harmonic, 1e-12);
}

TEST(Routing, NoExpertGetsMoreThanAllTokensAndATokenGoesThroughAllItsExperts) {
  for (const double skew : {0.3, 1.0, 4.0, 50.0}) {
    const std::vector<double> shares = expert_shares(experts(32, 8), {skew, 7}, 2);
    EXPECT_LE(*std::max_element(shares.begin(), shares.end()), 1) << skew;
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 8, 1e-9) << skew;
  }
  // All tokens go through the same 2 of 8 experts: a rank that has one of them gets 4 times its part of 2/8.
  EXPECT_NEAR(largest_load(experts(8, 2), {.skew = 60}, 0, 8), 4, 1e-6);
}

TEST(Routing, IsDrawnLayerByLayerFromTheSeed) {
  const Block block = experts(64, 4);
  EXPECT_EQ(expert_shares(block, {1, 5}, 3), expert_shares(block, {1, 5}, 3));
  EXPECT_NE(expert_shares(block, {1, 5}, 3), expert_shares(block, {1, 5}, 4));
  EXPECT_NE(expert_shares(block, {1, 5}, 3), expert_shares(block, {1, 6}, 3));
}

TEST(Routing, TheRankWithTheMostRowsDecidesProductsAndMessages) {
  const Model model = llama("experts", {.layers = 1,
                                        .hidden = 64,
                                        .ffn = 32,
                                        .heads = 4,
                                        .kv_heads = 4,
                                        .vocab = 128,
                                        .sequence = 1024,
                                        .experts = 8,
                                        .experts_per_token = 2});
  WorkShape shape{.sequence = 1024, .sharding = {.expert = 8}};
  const std::vector<Operator> balanced = operators_of(model, 1, 2, shape);
  shape.routing.skew = 60;  // a rank gets four times its part
  const std::vector<Operator> skewed = operators_of(model, 1, 2, shape);
  ASSERT_EQ(balanced.size(), skewed.size());
  int scaled = 0;
  for (std::size_t i = 0; i < balanced.size(); ++i) {
    const bool by_experts = balanced[i].experts > 0 || balanced[i].axis == Axis::expert;
    const double factor = by_experts ? 4 : 1;
    EXPECT_NEAR(skewed[i].forward_flops, factor * balanced[i].forward_flops, 1e-3 * skewed[i].forward_flops);
    EXPECT_NEAR(skewed[i].message_bytes, factor * balanced[i].message_bytes, 1e-3 * skewed[i].message_bytes);
    scaled += by_experts ? 1 : 0;
  }
  EXPECT_EQ(scaled, 4);  // two messages, two products
}

}  // namespace
}  // namespace slipway::test
