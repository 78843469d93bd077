// Parameter counts of published models, to the last parameter: the sums of the tensors that the published
// checkpoints hold.
#include "models/model.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace slipway {
namespace {

Model llama_2_7b() { return llama("llama-2-7b", {32, 4096, 11008, 32, 32, 32000, 4096}); }

TEST(ParameterCount, OfPublishedLlamasIsExact) {
  EXPECT_EQ(parameter_count(llama_2_7b()), 6738415616);
  EXPECT_EQ(parameter_count(llama("llama-3.1-8b", {32, 4096, 14336, 32, 8, 128256, 8192})), 8030261248);
  EXPECT_EQ(parameter_count(llama("llama-3.1-70b", {80, 8192, 28672, 64, 8, 128256, 8192})), 70553706496);
  EXPECT_EQ(parameter_count(llama("tinyllama-1.1b", {22, 2048, 5632, 32, 4, 32000, 2048})), 1100048384);
}

TEST(ParameterCount, OfTiedLlamaCountsTheSharedMatrixOnce) {
  EXPECT_EQ(parameter_count(llama("llama-3.2-1b", {16, 2048, 8192, 32, 8, 128256, 8192, true})),
            1235814400);
}

// Qwen2.5-0.5B, tied, and 7B: the numbers of their published checkpoints.
TEST(ParameterCount, OfPublishedQwensWithBiasesOfQueryKeyAndValueIsExact) {
  LlamaShape shape{24, 896, 4864, 14, 2, 151936, 4096, true};
  shape.qkv_bias = true;
  EXPECT_EQ(parameter_count(llama("qwen2.5-0.5b", shape)), 494032768);
  shape = {28, 3584, 18944, 28, 4, 152064, 4096};
  shape.qkv_bias = true;
  EXPECT_EQ(parameter_count(llama("qwen2.5-7b", shape)), 7615616512);
}

// Qwen3-0.6B: heads of 128, twice hidden / heads, and two norms of a head's width in each layer.
TEST(ParameterCount, OfAPublishedQwenWithNormsOfQueryAndKeyIsExact) {
  LlamaShape shape{28, 1024, 3072, 16, 8, 151936, 4096, true};
  shape.head_dim = 128;
  shape.qk_norm = true;
  EXPECT_EQ(parameter_count(llama("qwen3-0.6b", shape)), 596049920);
}

TEST(ParameterCount, OfPublishedGpt2IsExact) {
  EXPECT_EQ(parameter_count(gpt("gpt2", {12, 768, 3072, 12, 50257, 1024, 1024})), 124439808);
  EXPECT_EQ(parameter_count(gpt("gpt2-xl", {48, 1600, 6400, 25, 50257, 1024, 1024})), 1557611200);
}

TEST(ParameterCount, OfPublishedBertWithMaskedLanguageHeadIsExact) {
  EXPECT_EQ(parameter_count(bert("bert-base", {12, 768, 3072, 12, 30522, 512, 2, 512})), 109514298);
  EXPECT_EQ(parameter_count(bert("bert-large", {24, 1024, 4096, 16, 30522, 512, 2, 512})), 335174458);
}

TEST(MfuFormula, CountsBothEmbeddingsEvenWhenTheyAreTied) {
  const Model tied = gpt("gpt2", {12, 768, 3072, 12, 50257, 1024, 1024});
  EXPECT_EQ(mfu_parameter_count(tied) - parameter_count(tied), 50257 * 768);
  EXPECT_EQ(mfu_parameter_count(llama_2_7b()), parameter_count(llama_2_7b()));
}

// The MFU that Hagemann 2023 reports follows from its step time with this formula: 13B at 2,048 tokens,
// 64 A100s, (micro-batch, tensor, pipeline) = (1, 1, 1), 26.5 s a step, 70.5 %.
TEST(MfuFormula, ReproducesThePublishedBestRowOf13B) {
  const Model model = llama("llama-13b", {40, 5120, 13824, 40, 40, 128000, 2048});
  const double mfu = 4194304.0 * mfu_flops_per_token(model) / (64 * 312e12 * 26.5);
  EXPECT_NEAR(mfu, 0.705, 0.002);
}

// Twice as wide heads attend with twice the FLOPs: Chowdhery 2022 counts 12·L·heads·head_dim·s.
TEST(MfuFormula, CountsAttentionByTheWidthOfTheHeads) {
  LlamaShape shape{28, 1024, 3072, 16, 8, 151936, 4096, true};
  shape.head_dim = 128;
  const Model model = llama("wide", shape);
  EXPECT_EQ(mfu_flops_per_token(model) - 6.0 * static_cast<double>(mfu_parameter_count(model)),
            12.0 * 28 * 2048 * 4096);
}

TEST(Model, IsWrittenOutAsEmbeddingLayersHead) {
  const std::vector<Block> blocks = blocks_of(llama_2_7b());
  ASSERT_EQ(blocks.size(), 34u);
  EXPECT_EQ(layer_count(llama_2_7b()), 32);
  EXPECT_EQ(blocks.front().kind, BlockKind::embedding);
  EXPECT_EQ(blocks[1].kind, BlockKind::transformer);
  EXPECT_EQ(blocks[32].kind, BlockKind::transformer);
  EXPECT_EQ(blocks.back().kind, BlockKind::head);
}

TEST(Model, RefusesHiddenThatHeadsDoNotDivide) {
  EXPECT_THROW(llama("odd", {2, 100, 256, 3, 3, 1000, 128}), std::invalid_argument);
}

}  // namespace
}  // namespace slipway
