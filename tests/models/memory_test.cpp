// The four cases that Fujii et al. publish for Llama-3.1-8B (fp32 gradients, distributed optimizer), in GiB.
#include "models/memory/closed_form.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "models/model/operators.h"

namespace slipway::test {
namespace {

constexpr double GiB = 1024.0 * 1024.0 * 1024.0;
Model llama_8b() { return llama("llama-3.1-8b", {32, 4096, 14336, 32, 8, 128256, 8192}); }

MemoryInput author_case(int t, int c, int p, int b, int gpus) {
  WorkShape shape;
  shape.micro_batch = b;
  shape.sequence = 8192;
  shape.sharding = {t, true, c};
  MemoryInput input = memory_input(llama_8b(), shape);
  input.pipeline = p;
  input.data = gpus / (t * c * p);
  return input;
}

TEST(ClosedFormMemory, EqualsTheAuthorsFourCasesToTheLastDigit) {
  const struct {
    int t, c, p, b, gpus;
    double fixed, activations;
  } cases[] = {{2, 1, 1, 1, 4, 44.87260437011719, 22.64453125},
               {1, 2, 1, 1, 4, 67.30887222290039, 22.64453125},
               {2, 1, 2, 1, 128, 11.919273376464844, 20.75},
               {2, 2, 1, 2, 128, 23.137436628341675, 22.64453125}};
  for (const auto& row : cases) {
    const MemoryTerms terms = closed_form_memory(author_case(row.t, row.c, row.p, row.b, row.gpus));
    EXPECT_DOUBLE_EQ(static_bytes(terms) / GiB, row.fixed);
    EXPECT_DOUBLE_EQ(activation_bytes(terms) / GiB, row.activations);
  }
}

// The layer term has a second, independent source: the operators' saved bytes, which are the count.
TEST(ClosedFormMemory, KeepsPerLayerWhatTheOperatorsKeep) {
  for (const bool recomputed : {true, false})
    for (const Sharding& cut : {Sharding{1, false, 1}, Sharding{2, false, 1}, Sharding{4, true, 2}}) {
      MemoryInput input = author_case(1, 1, 1, 2, 1);
      if (!recomputed) input.shape.kernels = Kernels::flash2_rmsnorm;
      input.shape.sharding = cut;
      double saved = 0, head = 0;
      for (const Operator& op : operators_of(llama_8b(), 1, 2, input.shape)) saved += op.saved_bytes;
      EXPECT_DOUBLE_EQ(layer_activation_bytes(input), saved);
      for (const Operator& op : operators_of(llama_8b(), 33, 34, input.shape)) head += op.saved_bytes;
      EXPECT_DOUBLE_EQ(closed_form_memory(input).head_and_loss, head);
    }
}

// Korthikanti et al. 2022: 5·b·a·s²/t without flash attention and selective recomputation.
TEST(ClosedFormMemory, HasTheScoresThatAnUnfusedSoftmaxKeeps) {
  MemoryInput input = author_case(2, 1, 1, 2, 4);
  const double flash = layer_activation_bytes(input);
  input.shape.kernels = Kernels::fused_softmax;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(input) - flash, 5.0 * 2 * 32 * 8192 * 8192 / 2);
  input.shape.recompute_attention = true;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(input), flash);
}

// Without sequence parallelism the embedding's output is whole on every tensor rank.
TEST(ClosedFormMemory, DividesTheEmbeddingByTheTensorDegreeOnlyUnderSequenceParallelism) {
  MemoryInput input = author_case(4, 1, 2, 1, 8);
  const double cut = closed_form_memory(input).embedding_input;
  input.shape.sharding.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(closed_form_memory(input).embedding_input, 4 * cut);
}

TEST(ClosedFormMemory, OfFewerMicroBatchesThanStagesIsTheirShare) {
  MemoryInput input = author_case(2, 1, 4, 1, 64);
  const double full = activation_bytes(closed_form_memory(input));
  input.micro_batches = 4;
  EXPECT_DOUBLE_EQ(activation_bytes(closed_form_memory(input)), full);
  input.micro_batches = 3;
  EXPECT_DOUBLE_EQ(activation_bytes(closed_form_memory(input)), full * 3 / 4);
}

TEST(ClosedFormMemory, OfInterleavedChunksGrowsByPMinusOneOverPV) {
  MemoryInput input = author_case(2, 1, 4, 1, 64);
  const double plain = closed_form_memory(input).layer_activations;
  input.chunks = 2;
  EXPECT_DOUBLE_EQ(closed_form_memory(input).layer_activations, plain * (1 + 3.0 / 8));
}

TEST(ClosedFormMemory, CountsEighteenBytesAParameterAndTwoLessWithBf16Gradients) {
  MemoryInput input = author_case(2, 1, 1, 1, 16);
  input.zero = 0;
  const MemoryTerms terms = closed_form_memory(input);
  EXPECT_DOUBLE_EQ(static_bytes(terms), 18 * terms.parameters);
  input.gradient_dtype = Dtype::bfloat16;
  EXPECT_DOUBLE_EQ(static_bytes(closed_form_memory(input)), 16 * terms.parameters);
  input.zero = 1;  // d·c = 8
  EXPECT_DOUBLE_EQ(static_bytes(closed_form_memory(input)), (4 + 12.0 / 8) * terms.parameters);
  input.zero = 2;
  EXPECT_DOUBLE_EQ(static_bytes(closed_form_memory(input)), (2 + 14.0 / 8) * terms.parameters);
  input.zero = 3;
  EXPECT_DOUBLE_EQ(static_bytes(closed_form_memory(input)), 16.0 / 8 * terms.parameters);
}

// The parameters of the formula are those of the tensors, except that it divides norms by t.
TEST(ClosedFormMemory, CountsTheParametersOfTheModelOnOneGpu) {
  const MemoryTerms terms = closed_form_memory(author_case(1, 1, 1, 1, 1));
  EXPECT_DOUBLE_EQ(terms.parameters, 8030261248.0);
}

// Runs of Fujii 2024 on 8 A100-40GB with (TP, CP, PP, micro-batch): (4,1,2,1) ran, (4,1,2,2) did not.
TEST(Verdict, IsEightyPercentOfTheMemoryAndAgreesWithPublishedRuns) {
  EXPECT_TRUE(fits(closed_form_memory(author_case(4, 1, 2, 1, 8)), 40 * GiB));
  EXPECT_FALSE(fits(closed_form_memory(author_case(4, 1, 2, 2, 8)), 40 * GiB));
  MemoryTerms terms;
  terms.weights = 80;
  EXPECT_TRUE(fits(terms, 100));
  EXPECT_FALSE(fits(terms, 99.9));
}

TEST(ClosedFormMemory, RefusesModelsThatTheFormulaDoesNotDescribe) {
  EXPECT_THROW(memory_input(gpt("gpt2", {12, 768, 3072, 12, 50257, 1024, 1024}), WorkShape{}), std::invalid_argument);
  LlamaShape shape{2, 64, 96, 8, 4, 128, 32};
  EXPECT_NO_THROW(memory_input(llama("plain", shape), WorkShape{}));
  LlamaShape wide = shape, normed = shape, experts = shape, tied = shape;
  wide.head_dim = 16, normed.qk_norm = true, tied.tied = true;
  experts.experts = 4, experts.experts_per_token = 2;
  for (const LlamaShape& other : {wide, normed, experts, tied})
    EXPECT_THROW(memory_input(llama("other", other), WorkShape{}), std::invalid_argument);
}

}  // namespace
}  // namespace slipway::test
