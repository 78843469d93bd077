// A trainer's estimate, by hand.
#include <gtest/gtest.h>

#include "models/memory/memory_estimate.h"
#include "models/memory/memory_price.h"

namespace slipway::test {

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

// Peaks from plain numbers, against the author's formula and by hand.

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

// Llama-3.1-8B of Fujii 2024 with (TP, CP, PP, micro-batch) on this many GPUs.
MemoryInput author_case(int tensor, int context, int pipeline, int micro_batch, int gpus) {
  MemoryInput input;
  input.layers = 32;
  input.hidden = 4096;
  input.ffn = 14336;
  input.heads = 32;
  input.kv_heads = 8;
  input.vocab = 128256;
  input.shape.sequence = 8192;
  input.shape.micro_batch = micro_batch;
  input.shape.sharding = {tensor, true, context};
  input.pipeline = pipeline;
  input.data = gpus / (tensor * context * pipeline);
  return input;
}

std::vector<double> even(const MemoryInput& input) {
  return std::vector<double>(input.pipeline, static_cast<double>(input.layers) / input.pipeline);
}

MemoryRun run_of(const MemoryInput& input, double capacity = 0) {
  MemoryRun run;
  run.stages = closed_form_stages(input, even(input), static_cast<std::size_t>(input.pipeline) - 1);
  run.capacity_bytes = capacity;
  return run;
}

// The book's constants add nothing, but leave out the author's embedding input.
TEST(MemoryPrice, OfTheFirstStageByTheBookIsTheAuthorsTotal) {
  for (const MemoryInput& input : {author_case(2, 1, 1, 1, 4), author_case(1, 2, 1, 1, 4), author_case(2, 1, 2, 1, 128),
                                   author_case(2, 2, 1, 2, 128)}) {
    MemoryConstants book;
    book.embedding_bytes = 8;
    const MemoryTerms terms = closed_form_memory(input);
    const MemoryPrice price = price_memory(run_of(input), book);
    EXPECT_NEAR(price.first_bytes, total_bytes(terms), 1e-9 * price.first_bytes);
    EXPECT_NEAR(price.static_bytes, static_bytes(terms), 1e-9 * price.static_bytes);
  }
}

TEST(MemoryPrice, InterleavingHoldsWhatTheAuthorSays) {
  MemoryInput input = author_case(2, 1, 4, 1, 128);
  EXPECT_DOUBLE_EQ(stage_in_flight(input, 0), 4);
  EXPECT_DOUBLE_EQ(stage_in_flight(input, 3), 1);
  input.chunks = 2;
  EXPECT_DOUBLE_EQ(stage_in_flight(input, 0), 4 * (1 + 3.0 / (4 * 2)));
  input.micro_batches = 3;
  EXPECT_DOUBLE_EQ(stage_in_flight(input, 0), 3);
}

TEST(MemoryPrice, TheFullestStageDecidesBothVerdicts) {
  const MemoryInput input = author_case(4, 1, 2, 1, 8);
  MemoryConstants constants;
  constants.usable_share = 0.9;
  constants.cautious_share = 0.5;
  MemoryRun run = run_of(input);
  double fullest = 0;
  for (const StageTerms& stage : run.stages) fullest = std::max(fullest, peak_bytes(stage, constants));
  EXPECT_DOUBLE_EQ(price_memory(run, constants).peak_bytes, fullest);
  run.capacity_bytes = fullest / 0.9 * 1.001;
  EXPECT_TRUE(price_memory(run, constants).fits);
  EXPECT_FALSE(price_memory(run, constants).fits_cautious);
  run.capacity_bytes = fullest / 0.9 * 0.999;
  EXPECT_FALSE(price_memory(run, constants).fits);
  run.capacity_bytes = 2.001 * fullest;
  EXPECT_TRUE(price_memory(run, constants).fits_cautious);
}

// A layer that moves changes only one stage's parameter count in the static bytes.
TEST(MemoryPrice, LayersAreWhereTheTrainerPutsThem) {
  const MemoryInput input = author_case(1, 1, 2, 1, 2);
  const std::vector<double> layers = {20, 12};
  const auto stages = closed_form_stages(input, layers, 1);
  const double layer = 2 * 4096.0 * 4096 * (1 + 8.0 / 32) + 3 * 4096.0 * 14336 + 2 * 4096;
  EXPECT_DOUBLE_EQ(stages[0].parameters - stages[1].parameters, 8 * layer - 4096);
  EXPECT_EQ(stages[0].layers_kept, 40);
  EXPECT_EQ(stages[1].layers_kept, 12);
  EXPECT_THROW(closed_form_stages(input, std::vector<double>{32}, 0), std::invalid_argument);
}

// Runs of Fujii 2024 on A100-40GB with gathered inputs kept under context parallelism: (4,1,2,1) ran on 8 GPUs.
TEST(MemoryPrice, GatheredInputsUnderContextParallelismAreNotCutByTheTensorDegree) {
  const MemoryInput input = author_case(4, 2, 2, 4, 256);
  MemoryConstants constants;
  const double before = price_memory(run_of(input), constants).first_bytes;
  constants.gathered_context_bytes = 4;
  const double tokens = 4 * 8192 / 2;
  const double kept = 4 * tokens * 4096 * 16 * 2;
  EXPECT_NEAR(price_memory(run_of(input), constants).first_bytes - before, kept, 1e-9 * before);
  EXPECT_DOUBLE_EQ(kept, 8 * GiB);
}

}  // namespace

}  // namespace slipway::test
