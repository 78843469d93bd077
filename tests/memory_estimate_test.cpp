// A trainer's estimate, by hand.
#include "models/memory_estimate.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

StageTerms terms() {
  StageTerms terms;
  terms.parts[MemoryPart::weights] = 100;
  terms.parts[MemoryPart::norms] = 8;
  terms.parts[MemoryPart::projection_inputs] = 8;
  terms.parts[MemoryPart::mlp] = 30;
  terms.parts[MemoryPart::logits] = 40;
  terms.head_held = 1;
  terms.parameters = 50;
  terms.tensor = 4;
  return terms;
}

TEST(MemoryEstimate, OfTheBookIsTheCountItself) {
  EXPECT_DOUBLE_EQ(peak_bytes(terms(), MemoryConstants{}), sum(terms().parts));
}

TEST(MemoryEstimate, MultipliesPartsAndAddsTheReserveAndTheLibraries) {
  MemoryConstants constants;
  constants.input_factor = 1.5;
  constants.linear_factor = 1.1;
  constants.logit_bytes = 18;
  constants.logits_sharded = false;
  constants.parameter_bytes = 2;
  constants.library_bytes = 7;
  constants.reserve_share = 0.1;
  const MemoryParts parts = estimated(terms(), constants);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::logits], 40.0 * 18 / 4 * 4);
  EXPECT_DOUBLE_EQ(sum(parts), 1.1 * (100 + 2 * 50 + 1.5 * 16 + 1.1 * 30 + 720) + 7);
  EXPECT_DOUBLE_EQ(peak_bytes(terms(), constants), sum(parts));
}

// Full recompute: the logits (40) and a layer made again (30 or 60) are never there together.
TEST(MemoryEstimate, TakesTheLargerOfTheHeadsMomentAndALayersUnderFullRecompute) {
  StageTerms recomputed = terms();
  recomputed.at_work[MemoryPart::attention] = 30;
  EXPECT_DOUBLE_EQ(peak_bytes(recomputed, MemoryConstants{}), sum(terms().parts));
  recomputed.at_work[MemoryPart::attention] = 60;
  EXPECT_DOUBLE_EQ(peak_bytes(recomputed, MemoryConstants{}), sum(terms().parts) - 40 + 60);
  recomputed.head_held = 4;  // of which one is gone
  EXPECT_DOUBLE_EQ(peak_bytes(recomputed, MemoryConstants{}), sum(terms().parts) - 10 + 60);
}

}  // namespace
}  // namespace slipway
