// What a trainer takes beside the count, by hand.
#include "models/memory/memory_estimate.h"

#include <gtest/gtest.h>

namespace slipway::test {
namespace {

// Nothing but the count.
MemoryConstants none() {
  MemoryConstants constants;
  constants.gathered_bytes = 0;
  return constants;
}

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
  terms.logits = 10;
  terms.heads_held = 1;
  terms.layers_kept = 2;
  return terms;
}

TEST(MemoryEstimate, WithoutHabitsIsTheCountItself) {
  EXPECT_DOUBLE_EQ(peak_bytes(terms(), none()), sum(terms().parts));
}

TEST(MemoryEstimate, CountsStaticBytesByReplicasAndZero) {
  MemoryConstants constants = none();
  constants.facts.gradient_bytes = 2;
  constants.facts.replica_parameter_bytes = 2;
  constants.facts.zero_parameter_bytes = 3;
  constants.facts.zero_shard_bytes = 8;
  constants.facts.update_bytes = 5;
  StageTerms some = terms();
  const double alone = sum(terms().parts) - 100;  // gradients halved
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), alone);
  some.replicas = 4;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), alone + 50 * (2 + 5));
  some.zero = 1;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), alone + 50 * (2 + 3 + 8.0 / 4));
  constants.facts.copies_gradient_shard = true;
  constants.update_shard_bytes = 4;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), alone + 50 * (2 + 3 + 8.0 / 4 + 4.0 / 4));
  some.replicas = 1;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), alone + 50 * 4) << "one replica keeps its copy whole";
}

TEST(MemoryEstimate, ScalesWhatIsKeptAndAddsWorkAndTheAllocator) {
  MemoryConstants constants = none();
  constants.layer_factor = 1.5;
  constants.norm_copy_bytes = 12;
  constants.logit_bytes = 6;
  constants.work_hidden_bytes = 2;
  constants.work_ffn_bytes = 1;
  constants.fragmentation_share = 0.1;
  constants.fragmentation_factor = 2;
  StageTerms some = terms();
  some.hidden = fragmenting_bytes / 4;  // half of what makes fragmentation full
  const double kept = 1.5 * 46 + 24 + 60 + 2 * some.hidden + 20;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), 300 + (1 + 0.1 * 2 / 2) * kept);
}

TEST(MemoryEstimate, FactsTakeAwayWhatATrainerDoesNotKeep) {
  StageTerms some = terms();
  some.optional = {.gates = 7, .expert_results = 11};
  const double all = peak_bytes(some, none());
  const auto less = [&](bool MemoryFacts::*fact) {
    MemoryConstants constants = none();
    constants.facts.*fact = true;
    EXPECT_DOUBLE_EQ(absent_bytes(some.optional, constants.facts), all - peak_bytes(some, constants));
    return all - peak_bytes(some, constants);
  };
  EXPECT_DOUBLE_EQ(less(&MemoryFacts::fused_gate), 7);
  EXPECT_DOUBLE_EQ(less(&MemoryFacts::weighs_activation), 11);
}

TEST(MemoryEstimate, LibrariesTakeAContextAndBuffersForEachKindOfGroup) {
  MemoryConstants constants = none();
  constants.context_bytes = 100;
  constants.communicator_bytes = 10;
  constants.library_factor = 2;
  StageTerms some = terms();
  const double rest = sum(terms().parts);
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest + 2 * 110);
  some.tensor = 2, some.data = 4;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest + 2 * 130);
  EXPECT_DOUBLE_EQ(reserved_bytes(some, constants), rest) << "the allocator does not see them";
  some.has_libraries = false;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest) << "processors have none";
}

TEST(MemoryEstimate, ALossKeepsLogitsInItsOwnWay) {
  MemoryConstants constants = none();
  constants.logit_bytes = 8, constants.plain_logit_bytes = 16;
  constants.gathered_logit_bytes = 4, constants.fused_logit_bytes = 6;
  StageTerms some = terms();
  const double rest = sum(terms().parts) - 40;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest + 80);
  constants.facts.loss = LossMemory::fused;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest + 60);
  constants.facts.loss = LossMemory::plain;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest + 160);
  some.tensor = 4;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest + 4 * 10 * 20) << "of the whole vocabulary, and gathered";
}

TEST(MemoryEstimate, GatheredInputsAreWhatTheShardLacks) {
  MemoryConstants constants = none();
  constants.gathered_bytes = 4;
  StageTerms some = terms();
  some.tensor = 4, some.sequence_parallel = true;
  const double rest = sum(terms().parts), all = 4 * 10 * 2 * 0.75;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest);
  constants.facts.gathered = GatheredInputs::with_context;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest);
  some.context = 2;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest + all);
  constants.facts.gathered = GatheredInputs::by_stages;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest + all);
  some.pipeline = 2;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest);
  some.pipeline = 4;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest + all / 2);
  some.gathered = Gathered::none;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest) << "as the run itself shows";
  some.gathered = Gathered::all;
  some.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), rest) << "without sequence parallelism the count has them whole";
}

TEST(MemoryEstimate, TheEmbeddingIsCutAsSequenceParallelismCutsIt) {
  MemoryConstants constants = none();
  constants.embedding_bytes = 4;
  StageTerms some = terms();
  some.embeddings_held = 3;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), sum(terms().parts) + 4 * 5 * 3);
}

TEST(MemoryEstimate, ScoresCountByTheirKernel) {
  MemoryConstants constants = none();
  constants.score_bytes = 7, constants.fused_score_bytes = 6, constants.work_score_bytes = 2;
  StageTerms some = terms();
  some.parts[MemoryPart::scores] = 50;
  some.scores = 5;
  some.kernels = Kernels::torch;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), sum(terms().parts) + 70 + 10);
  some.kernels = Kernels::fused_softmax;
  EXPECT_DOUBLE_EQ(peak_bytes(some, constants), sum(terms().parts) + 60 + 10);
}

}  // namespace
}  // namespace slipway::test
