// A trainer's estimate, by hand.
#include "models/memory_estimate.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

StageTerms terms() {
  StageTerms terms;
  terms.parts[MemoryPart::weights] = 100;
  terms.parts[MemoryPart::gradients] = 200;
  terms.parts[MemoryPart::norms] = 8;
  terms.parts[MemoryPart::projection_inputs] = 8;
  terms.parts[MemoryPart::norm_copies] = 16;
  terms.parts[MemoryPart::mlp] = 30;
  terms.parts[MemoryPart::logits] = 40;
  terms.parameters = 50;
  terms.hidden = 10;
  terms.hidden_cut = 5;
  terms.ffn = 20;
  terms.layers_kept = 2;
  return terms;
}

TEST(MemoryEstimate, OfTheBookIsTheCountItself) {
  EXPECT_DOUBLE_EQ(peak_bytes(terms(), MemoryConstants{}), sum(terms().parts));
}

TEST(MemoryEstimate, CountsStaticBytesByReplicasAndZero) {
  MemoryConstants constants;
  constants.gradient_bytes = 2;
  constants.replica_parameter_bytes = 2;
  constants.zero_parameter_bytes = 3;
  constants.zero_shard_bytes = 8;
  constants.update_bytes = 5;
  constants.zero_update_bytes = 7;
  StageTerms some = terms();
  const double alone = sum(terms().parts) - 100;  // gradients halved
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), alone);
  some.replicas = 4;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), alone + 50 * (2 + 5));
  some.zero = 1;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), alone + 50 * (2 + 3 + 8.0 / 4 + 7));
  constants.update_shard_bytes = 4;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), alone + 50 * (2 + 3 + 8.0 / 4 + 7 + 4.0 / 4));
  some.replicas = 1;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), alone + 50 * 4) << "one replica keeps its copy whole";
}

TEST(MemoryEstimate, ScalesWhatIsKeptAndAddsTheAllocatorAndTheLibraries) {
  MemoryConstants constants;
  constants.layer_factor = 1.5;
  constants.norm_copy_bytes = 12;
  constants.logit_bytes = 6;
  constants.gathered_logit_bytes = 1;
  constants.gathered_bytes = 0.5;
  constants.work_hidden_bytes = 2;
  constants.work_ffn_bytes = 1;
  constants.tensor_hidden_bytes = 4;
  constants.library_bytes = 7;
  constants.fragmentation_share = 0.1;
  constants.fragmenting_bytes = 80;  // the MLP's tensor has 40: half of it
  StageTerms some = terms();
  double kept = 1.5 * 46 + 24 + 60 + 2 * 10 + 20;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), 300 + 1.05 * kept + 7);
  some.tensor = 4;
  kept += 40.0 / 4 * 4 * 1 + 0.5 * 10 * 2 + 4 * 10;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), 300 + 1.05 * kept + 7);
}

TEST(MemoryEstimate, TakesEmbeddingGatheredInputsAndScoresWhereTheyAre) {
  MemoryConstants constants;
  constants.embedding_bytes = 4;
  constants.gathered_context_bytes = 3;
  constants.score_bytes = 7;
  constants.fused_score_bytes = 6;
  StageTerms some = terms();
  some.parts[MemoryPart::scores] = 50;
  some.embeddings_held = 3;
  some.context = 2;
  some.tensor = 2;
  some.kernels = Kernels::torch;
  const double rest = sum(terms().parts) + 4 * 5 * 3 + 3 * 10 * 2;  // 10: not cut by the tensor degree
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest + 70);
  some.kernels = Kernels::fused_softmax;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest + 60);
}

TEST(MemoryEstimate, KeepsGatheredInputsByWhatIsKnownOfTheRun) {
  MemoryConstants constants;
  constants.gathered_bytes = 1;
  constants.gathered_many_stage_bytes = 2;
  StageTerms some = terms();
  some.tensor = 2;
  const double counted = sum(some.parts), gathered = 10 * 2;
  const auto more = [&](int pipeline, Gathered kind) {
    some.pipeline = pipeline;
    some.gathered = kind;
    return peak_bytes(some, constants) - counted;
  };
  for (const int pipeline : {1, 2, 4}) {
    EXPECT_DOUBLE_EQ(more(pipeline, Gathered::all), gathered);
    EXPECT_DOUBLE_EQ(more(pipeline, Gathered::none), 0);
    EXPECT_DOUBLE_EQ(more(pipeline, Gathered::half_on_many_stages), pipeline > 2 ? 2 * gathered : 0);
  }
  EXPECT_DOUBLE_EQ(more(1, Gathered::unknown), gathered);
  EXPECT_DOUBLE_EQ(more(2, Gathered::unknown), 0);
  EXPECT_DOUBLE_EQ(more(4, Gathered::unknown), 2 * gathered);
  some.tensor = 1;
  EXPECT_DOUBLE_EQ(more(1, Gathered::all), 0);
}

TEST(MemoryEstimate, KeepsTablesAndBuffersBetweenSteps) {
  MemoryConstants constants;
  constants.table_bytes = 5;
  constants.buffer_hidden_bytes = 4;
  StageTerms some = terms();
  EXPECT_DOUBLE_EQ(estimated(some, constants)[MemoryPart::tables], 5);
  some.tensor = 2;
  EXPECT_DOUBLE_EQ(estimated(some, constants)[MemoryPart::tables], 5 + 4 * 10);
}

}  // namespace
}  // namespace slipway
