// Parameter counts of published models, to the last parameter: the sums over the tensors of the published checkpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "models/model/dtype.h"
#include "models/model/model.h"
#include "models/model/parameters.h"
#include "models/model/token_ranges.h"

namespace slipway::test {

namespace {

Model llama_2_7b() { return llama("llama-2-7b", {32, 4096, 11008, 32, 32, 32000, 4096}); }

TEST(ParameterCount, OfPublishedLlamasIsExact) {
  EXPECT_EQ(parameter_count(llama_2_7b()), 6738415616);
  EXPECT_EQ(parameter_count(llama("llama-3.1-8b", {32, 4096, 14336, 32, 8, 128256, 8192})), 8030261248);
  EXPECT_EQ(parameter_count(llama("llama-3.1-70b", {80, 8192, 28672, 64, 8, 128256, 8192})), 70553706496);
  EXPECT_EQ(parameter_count(llama("tinyllama-1.1b", {22, 2048, 5632, 32, 4, 32000, 2048})), 1100048384);
}

TEST(ParameterCount, OfTiedLlamaCountsTheSharedMatrixOnce) {
  EXPECT_EQ(parameter_count(llama("llama-3.2-1b", {16, 2048, 8192, 32, 8, 128256, 8192, true})), 1235814400);
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

// With this formula the MFU in Hagemann 2023 follows from its step time: 13B at 2,048 tokens, 64 A100s, (micro-batch,
// tensor, pipeline) = (1, 1, 1), 26.5 s a step, 70.5 %.
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

namespace {

std::vector<Model> small_models() {
  return {llama("llama", {2, 64, 96, 8, 4, 128, 32}), llama("llama-tied", {2, 64, 96, 8, 4, 128, 32, true}),
          gpt("gpt", {2, 64, 256, 8, 128, 32, 32}), bert("bert", {2, 64, 256, 8, 128, 32, 2, 32})};
}

TEST(Shards, OfAllTensorRanksTileEveryTensorExactlyOnce) {
  for (const Model& model : small_models())
    for (int block = 0; block < 4; ++block)
      for (const Parameter& parameter : parameters_of(model, block))
        for (int degree : {1, 2, 4}) {
          if (parameter.shard_dim < 0) continue;
          const auto dim = static_cast<std::size_t>(parameter.shard_dim);
          std::vector<int> held(parameter.shape[dim], 0);
          std::int64_t elements = 0;
          for (int rank = 0; rank < degree; ++rank) {
            for (const Piece& piece : pieces_of(parameter, rank, degree))
              for (std::int64_t i = piece.begin; i < piece.end; ++i) ++held[i];
            elements += shard_elements(parameter, degree);
          }
          for (int times : held) EXPECT_EQ(times, 1) << parameter.name << " at degree " << degree;
          EXPECT_EQ(elements, elements_of(parameter)) << parameter.name;
        }
}

TEST(Shards, OfAPackedTensorTakeTheSameHeadsOfQueriesKeysAndValues) {
  // 8 heads and 4 key-value heads of 8 numbers: q rows 0..63, k rows 64..95, v rows 96..127.
  const std::vector<Parameter> list = parameters_of(small_models()[0], 1);
  for (const Parameter& parameter : list) {
    if (parameter.name != "layers.0.attention.qkv.weight") continue;
    const std::vector<Piece> pieces = pieces_of(parameter, 1, 2);
    ASSERT_EQ(pieces.size(), 3u);
    EXPECT_EQ(pieces[0].begin, 32);
    EXPECT_EQ(pieces[0].end, 64);
    EXPECT_EQ(pieces[1].begin, 80);
    EXPECT_EQ(pieces[1].end, 96);
    EXPECT_EQ(pieces[2].begin, 112);
    EXPECT_EQ(pieces[2].end, 128);
    return;
  }
  FAIL() << "no packed projection in the block";
}

// 8 heads, 2 key-value heads of 8 numbers on 8 ranks: q rows 0..63, k rows 64..79, v rows 80..95.
TEST(Shards, OfFewerKeyValueHeadsThanRanksAreAWholeHeadThatNeighboursHaveToo) {
  const Model model = llama("grouped", {2, 64, 96, 8, 2, 128, 32});
  const std::vector<Parameter> list = parameters_of(model, 1);
  const auto qkv = std::find_if(list.begin(), list.end(),
                                [](const Parameter& each) { return each.name == "layers.0.attention.qkv.weight"; });
  ASSERT_NE(qkv, list.end());
  constexpr int degree = 8;
  EXPECT_EQ(copies_of(*qkv, degree), 4);
  EXPECT_EQ(copies_of(*qkv, 2), 1);
  EXPECT_EQ(copied_elements(*qkv, degree), 2 * 8 * 64);
  EXPECT_EQ(copied_elements(*qkv, 2), 0);
  EXPECT_EQ(shard_elements(*qkv, degree), 3 * 8 * 64);
  EXPECT_EQ(block_copied_elements(model, 1, degree), 2 * 8 * 64);
  std::vector<int> held(96, 0), owned(96, 0);
  for (int rank = 0; rank < degree; ++rank) {
    const std::vector<Piece> pieces = pieces_of(*qkv, rank, degree);
    ASSERT_EQ(pieces.size(), 3u);
    EXPECT_EQ(pieces[0].begin, 8 * rank);
    EXPECT_EQ(pieces[1].begin, 64 + 8 * (rank / 4)) << "the head of its queries";
    EXPECT_EQ(pieces[2].begin, 80 + 8 * (rank / 4));
    for (const Piece& piece : pieces)
      for (std::int64_t i = piece.begin; i < piece.end; ++i) ++held[i];
    for (const Piece& piece : own_pieces_of(*qkv, rank, degree))
      for (std::int64_t i = piece.begin; i < piece.end; ++i) ++owned[i];
  }
  for (int row = 0; row < 96; ++row) EXPECT_EQ(held[row], row < 64 ? 1 : 4) << row;
  for (int row = 0; row < 96; ++row) EXPECT_EQ(owned[row], 1) << row << " is counted and saved once";
}

TEST(Shards, OfAReplicatedTensorAreTheWholeTensor) {
  const Parameter norm = parameters_of(small_models()[0], 1).front();
  ASSERT_EQ(norm.shard_dim, -1);
  EXPECT_EQ(shard_elements(norm, 4), elements_of(norm));
  EXPECT_EQ(pieces_of(norm, 3, 4).front().end, 64);
}

// Each tensor rank uses them on its own heads. It uses a layer's norms on all tokens, or on its own under sequence
// parallelism.
TEST(Shards, OfNormsOfHeadsHavePartsOfTheirGradientsInAnyTensorGroup) {
  LlamaShape shape{2, 64, 96, 8, 4, 128, 32};
  shape.head_dim = 16;
  shape.qk_norm = true;
  const Model model = llama("normed", shape);
  EXPECT_EQ(block_tensor_sum_elements(model, 1, 2, false), 2 * 16);
  EXPECT_EQ(block_tensor_sum_elements(model, 1, 2, true), 2 * 16 + 2 * 64);
  EXPECT_EQ(block_tensor_sum_elements(model, 1, 1, false), 0);
  for (const Model& other : small_models()) EXPECT_EQ(block_tensor_sum_elements(other, 1, 2, false), 0) << other.name;
}

// Each tensor rank has columns of every expert, so it has only their part of the router's gradient.
TEST(Shards, OfARouterHavePartsOfItsGradientInAnyTensorGroup) {
  LlamaShape shape{2, 64, 96, 8, 4, 128, 32};
  shape.experts = 4, shape.experts_per_token = 2;
  const Model model = llama("experts", shape);
  EXPECT_EQ(block_tensor_sum_elements(model, 1, 2, false), 4 * 64);
  EXPECT_EQ(block_tensor_sum_elements(model, 1, 2, true), 4 * 64 + 2 * 64);
  for (const Parameter& parameter : parameters_of(model, 1)) {
    if (parameter.name != "layers.0.mlp.up.weight") continue;
    const std::vector<Piece> pieces = pieces_of(parameter, 1, 2);
    ASSERT_EQ(pieces.size(), 8u) << "gate and up of each expert";
    EXPECT_EQ(pieces[3].begin, 3 * 96 + 48) << "second half of up of the second expert";
    EXPECT_EQ(pieces[3].end, 4 * 96);
  }
}

TEST(Shards, RefuseAVocabularyThatTheDegreeDoesNotDivideAndNameTheNumbers) {
  const Model model = llama("odd", {2, 64, 96, 8, 4, 127, 32});
  try {
    block_shard_elements(model, 0, {.tensor = 2});
    FAIL() << "accepted 127 rows on 2 ranks";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("127"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("embedding.weight"), std::string::npos) << error.what();
  }
}

TEST(Parameters, OfABlockListReplicatedTensorsFirst) {
  for (const Model& model : small_models())
    for (int block = 0; block < 4; ++block) {
      bool sharded_seen = false;
      for (const Parameter& parameter : parameters_of(model, block)) {
        EXPECT_FALSE(sharded_seen && parameter.shard_dim < 0) << parameter.name;
        sharded_seen = sharded_seen || parameter.shard_dim >= 0;
      }
    }
}

TEST(Parameters, HaveUniqueNamesAndSumToTheCountOfTheModel) {
  for (const Model& model : small_models()) {
    std::set<std::string> names;
    std::int64_t sum = 0;
    for (int block = 0; block < 4; ++block)
      for (const Parameter& parameter : parameters_of(model, block)) {
        EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
        if (parameter.same_as.empty()) {
          sum += elements_of(parameter);
        } else {
          EXPECT_EQ(names.count(parameter.same_as), 1u) << parameter.same_as;
        }
      }
    EXPECT_EQ(sum, parameter_count(model)) << model.name;
  }
}

TEST(Parameters, ThatWriteToTheResidualStartSmallerByTheRootOfTwiceTheLayers) {
  for (const Parameter& parameter : parameters_of(small_models()[0], 2)) {
    if (parameter.name == "layers.1.attention.out.weight" || parameter.name == "layers.1.mlp.down.weight") {
      EXPECT_DOUBLE_EQ(parameter.init_std, 0.02 / std::sqrt(4.0));
    } else if (!parameter.is_vector) {
      EXPECT_DOUBLE_EQ(parameter.init_std, 0.02);
    }
  }
}

TEST(Parameters, OfABlockThatDoesNotExistAreRefused) {
  EXPECT_THROW(parameters_of(small_models()[0], 4), std::invalid_argument);
}

TEST(Dtype, NamesRoundTripAndUnknownOnesAreEmpty) {
  for (Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::tf32, Dtype::bfloat16, Dtype::float16})
    EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
  EXPECT_EQ(dtype_named("bf16"), Dtype::bfloat16);
  EXPECT_EQ(dtype_named("int8"), std::nullopt);
}

}  // namespace

// The division of a sequence over context ranks, counted token by token.

namespace {

constexpr std::int64_t sequence = 48;
constexpr int degrees[] = {1, 2, 3, 4, 6, 8};

std::vector<std::int64_t> positions(const std::vector<TokenRange>& ranges) {
  std::vector<std::int64_t> list;
  for (const TokenRange& range : ranges)
    for (std::int64_t i = 0; i < range.count; ++i) list.push_back(range.first + i);
  return list;
}

TEST(TokenRanges, GiveEveryTokenToOneRankAndAllRanksAsMany) {
  for (const bool causal : {false, true}) {
    for (const int context : degrees) {
      std::set<std::int64_t> seen;
      for (int rank = 0; rank < context; ++rank) {
        const auto own = positions(token_ranges(causal, context, rank, sequence));
        EXPECT_EQ(own.size(), static_cast<std::size_t>(sequence / context));
        EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
        seen.insert(own.begin(), own.end());
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(sequence));
    }
  }
}

TEST(TokenRanges, OfACausalSequenceOnSixRanksPairTheFirstPieceWithTheLast) {
  EXPECT_EQ(token_ranges(true, 6, 0, sequence), (std::vector<TokenRange>{{0, 4}, {44, 4}}));
  EXPECT_EQ(token_ranges(true, 6, 5, sequence), (std::vector<TokenRange>{{20, 4}, {24, 4}}));
}

TEST(TokenRanges, AreCutAcrossTheirPieces) {
  const std::vector<TokenRange> ranges{{0, 4}, {44, 4}};
  EXPECT_EQ(ranges_within(ranges, 0, 3), (std::vector<TokenRange>{{0, 3}}));
  EXPECT_EQ(ranges_within(ranges, 2, 4), (std::vector<TokenRange>{{2, 2}, {44, 2}}));
  EXPECT_EQ(ranges_within(ranges, 4, 4), (std::vector<TokenRange>{{44, 4}}));
}

// The visible pairs of all rounds, against the definition of causal attention.
TEST(RingRounds, ComputeEveryVisiblePairOnceAndAsManyOnEachRank) {
  for (const bool causal : {false, true}) {
    for (const int context : degrees) {
      for (int rank = 0; rank < context; ++rank) {
        const std::int64_t tokens = sequence / context;
        const auto own = positions(token_ranges(causal, context, rank, sequence));
        std::map<std::pair<std::int64_t, std::int64_t>, int> times;  // (query, key)
        for (int round = 0; round < context; ++round) {
          const RingRound at = ring_round(causal, context, rank, round, tokens);
          const auto theirs = positions(token_ranges(causal, context, at.from, sequence));
          for (std::int64_t q = at.queries.first; q < at.queries.first + at.queries.count; ++q)
            for (std::int64_t k = at.keys.first; k < at.keys.first + at.keys.count; ++k)
              if (!at.masked || k <= q) ++times[{own[q], theirs[k]}];
        }
        std::size_t visible = 0;
        for (const std::int64_t q : own) visible += static_cast<std::size_t>(causal ? q + 1 : sequence);
        EXPECT_EQ(times.size(), visible) << context << " ranks, rank " << rank;
        for (const auto& [pair, count] : times) {
          EXPECT_EQ(count, 1);
          EXPECT_TRUE(!causal || pair.second <= pair.first);
        }
        if (causal) {
          EXPECT_EQ(static_cast<std::int64_t>(visible) * context, sequence * (sequence + 1) / 2);
        }
      }
    }
  }
}

}  // namespace

}  // namespace slipway::test
