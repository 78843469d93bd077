// Operator cost against formulas published by others: FLOPs and activation memory of Fujii 2024, activation memory
// without sequence parallelism of Korthikanti 2022.
#include "models/model/operators.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>

#include "models/model/parameters.h"

namespace slipway::test {
namespace {

constexpr std::int64_t L = 32, h = 4096, f = 14336, a = 32, k = 8, V = 128256, s = 8192;
Model llama_8b() { return llama("llama-3.1-8b", {L, h, f, a, k, V, s}); }

struct Sums {
  double forward = 0, backward = 0, saved = 0;
};
Sums sums_of(const Model& model, int first, int last, const WorkShape& shape) {
  Sums sums;
  for (const Operator& op : operators_of(model, first, last, shape)) {
    sums.forward += op.forward_flops;
    sums.backward += op.input_grad_flops + op.weight_grad_flops;
    sums.saved += op.saved_bytes;
  }
  return sums;
}

WorkShape shape_of(int t, bool sp, int c, std::int64_t b = 1, Kernels kernels = Kernels::flash2_rmsnorm) {
  WorkShape shape;
  shape.micro_batch = b;
  shape.sequence = s;
  shape.sharding = {t, sp, c};
  shape.kernels = kernels;
  return shape;
}

// FLOPs of forward and backward = 12·b·s·L·h²·[1 + k/a + s/h + 1.5·f/h + V/(2Lh)], with attention as a full square.
// Unfused kernels compute just that, so the sum must be equal. A third of it is the forward pass.
TEST(Flops, WithUnfusedKernelsEqualTheFormulaOfFujii) {
  const double formula =
      12.0 * 2 * s * L * h * h * (1 + double(k) / a + double(s) / h + 1.5 * f / h + double(V) / (2 * L * h));
  const Sums sums = sums_of(llama_8b(), 0, L + 2, shape_of(1, false, 1, 2, Kernels::torch));
  EXPECT_DOUBLE_EQ(sums.forward, formula / 3);
  EXPECT_DOUBLE_EQ(sums.backward, formula * 2 / 3);
}

// Llama 3 405B on 16 tensor ranks (Llama Team 2024, table 4 has 8 of them): each has 8 heads of queries and a whole one
// of its 8 key-value heads, d = 128.
TEST(Flops, OfFewerKeyValueHeadsThanTensorRanksAreThoseOfAWholeHeadEach) {
  constexpr std::int64_t wide = 16384, heads = 128, kv = 8, d = 128;
  const Model model = llama("405b", {1, wide, 53248, heads, kv, V, s});
  const auto named = [&](int tensor, OpKind kind) {
    for (const Operator& op : operators_of(model, 1, 2, shape_of(tensor, true, 1)))
      if (op.kind == kind) return op;
    throw std::logic_error("no such operator");
  };
  const Operator qkv = named(16, OpKind::qkv), attention = named(16, OpKind::attention);
  EXPECT_DOUBLE_EQ(qkv.forward_flops, 2.0 * s * wide * (heads / 16 + 2) * d);
  EXPECT_DOUBLE_EQ(qkv.weight_grad_flops, qkv.forward_flops);
  EXPECT_DOUBLE_EQ(attention.saved_bytes, 2.0 * s * (heads / 16 + 2) * d) << "q, k and v";
  EXPECT_DOUBLE_EQ(attention.forward_flops * 16, named(8, OpKind::attention).forward_flops * 8);
  const BlockElements elements = block_shard_elements(model, 1, {.tensor = 16});
  EXPECT_EQ(elements.dense, (heads / 16 + 2) * d * wide + wide * heads * d / 16 + 3 * wide * (53248 / 16) + 2 * wide);
}

// A token does the matrix work of its own experts and of the router: 12.9 of the 46.7 billion parameters of Mixtral
// 8x7B.
TEST(Flops, OfExpertsAreThoseOfTheOnesThatATokenGoesThrough) {
  LlamaShape shape{L, h, f, a, k, V, s};
  const double dense = sums_of(llama("dense", shape), 1, 2, shape_of(1, false, 1)).forward;
  shape.experts = 8, shape.experts_per_token = 2;
  const Model mixture = llama("experts", shape);
  const double one_mlp = 2.0 * s * 3 * h * f, router = 2.0 * s * h * 8;
  EXPECT_DOUBLE_EQ(sums_of(mixture, 1, 2, shape_of(1, false, 1)).forward, dense + one_mlp + router);
  EXPECT_DOUBLE_EQ(sums_of(mixture, 1, 2, shape_of(2, true, 2)).forward * 4, dense + one_mlp + router + 2 * s * h * 8)
      << "both tensor ranks ask the router";
  // Model FLOPs of the MFU formula: 6N of the active N, beside attention.
  EXPECT_DOUBLE_EQ(mfu_flops_per_token(mixture),
                   6.0 * static_cast<double>(active_parameter_count(mixture)) + 12.0 * L * h * s);
}

// Flash kernels differ from it by half of the causal square forward, and backward by 2.5 times that half.
TEST(Flops, WithFlashKernelsDifferFromTheFormulaByTheSkippedHalfOnly) {
  const double square = 4.0 * s * s * h * L;
  const Sums unfused = sums_of(llama_8b(), 0, L + 2, shape_of(1, false, 1, 1, Kernels::torch));
  const Sums flash = sums_of(llama_8b(), 0, L + 2, shape_of(1, false, 1));
  EXPECT_DOUBLE_EQ(flash.forward, unfused.forward - square / 2);
  EXPECT_DOUBLE_EQ(flash.backward, unfused.backward - 2 * square + 2.5 * square / 2);
}

TEST(Flops, OfAllRanksOfATensorAndContextGroupAddUpToTheWhole) {
  const Sums whole = sums_of(llama_8b(), 0, L + 2, shape_of(1, false, 1));
  for (const auto& [t, c] : {std::pair{2, 1}, {4, 2}, {8, 4}}) {
    const Sums part = sums_of(llama_8b(), 0, L + 2, shape_of(t, true, c));
    EXPECT_DOUBLE_EQ(part.forward * t * c, whole.forward);
    EXPECT_DOUBLE_EQ(part.backward * t * c, whole.backward);
  }
}

TEST(Flops, OfSelectiveRecomputeAddOneAttentionForwardToTheBackwardPass) {
  WorkShape shape = shape_of(1, false, 1, 1, Kernels::torch);
  const double kept = sums_of(llama_8b(), 1, 2, shape).backward;
  shape.recompute_attention = true;
  EXPECT_DOUBLE_EQ(sums_of(llama_8b(), 1, 2, shape).backward - kept, 4.0 * s * s * h);
}

// Fujii 2024: s·b·h·(12 + 4k/a + 8f/h)/(t·c) bytes per layer with sequence parallelism in bf16.
TEST(SavedBytes, OfALlamaLayerEqualTheFormulaOfFujii) {
  for (const auto& [t, c, b] : {std::tuple{1, 1, 1}, {2, 1, 1}, {8, 1, 4}, {2, 2, 2}, {4, 8, 1}}) {
    const double formula = double(s) * b * h * (12 + 4.0 * k / a + 8.0 * f / h) / (t * c);
    EXPECT_EQ(sums_of(llama_8b(), 1, 2, shape_of(t, true, c, b)).saved, formula);
  }
}

// 5·b·a·s²/t more where the scores are written to memory, unless selective recompute makes them again. And 4 bytes a
// number more for each of the two norms that run without the RMSNorm kernel.
TEST(SavedBytes, OfUnfusedKernelsAddTheScoresAndTheNormsInFp32) {
  const double fused = sums_of(llama_8b(), 1, 2, shape_of(2, true, 1)).saved;
  const double norms = 2.0 * 4 * s * h / 2, scores = 5.0 * a * s * s / 2;
  EXPECT_EQ(sums_of(llama_8b(), 1, 2, shape_of(2, true, 1, 1, Kernels::flash2)).saved, fused + norms);
  WorkShape shape = shape_of(2, true, 1, 1, Kernels::torch);
  EXPECT_EQ(sums_of(llama_8b(), 1, 2, shape).saved, fused + norms + scores);
  shape.recompute_attention = true;
  EXPECT_EQ(sums_of(llama_8b(), 1, 2, shape).saved, fused + norms);
}

// Norms of heads keep their inputs, s·b numbers for each query and key of a rank, and their fp32 copies without a
// kernel of their own. A layer's norms are two of h, cut like the sequence. Heads have their full width.
TEST(SavedBytes, OfNormsOfQueryAndKeyAreThoseOfANormOfAsManyNumbers) {
  const LlamaShape plain{L, h, f, a, k, V, s};
  LlamaShape normed = plain;
  normed.head_dim = 2 * h / a;
  const auto saved = [&](int t, Kernels kernels) {
    return sums_of(llama("x", normed), 1, 2, shape_of(t, t > 1, 1, 1, kernels)).saved;
  };
  for (const int t : {1, 2, 8})
    for (const Kernels kernels : {Kernels::flash2, Kernels::flash2_rmsnorm}) {
      normed.qk_norm = false;
      const double without = saved(t, kernels), heads = 2.0 * h * (1 + double(k) / a);
      const double wider = 2.0 * s * h * (2 + 2.0 * k / a) / t;
      EXPECT_EQ(without, sums_of(llama("x", plain), 1, 2, shape_of(t, t > 1, 1, 1, kernels)).saved + wider);
      normed.qk_norm = true;
      EXPECT_EQ(saved(t, kernels) - without, s * heads / t * (kernels == Kernels::flash2 ? 2 + 4 : 2));
    }
}

// Fujii 2024: final norm, head and loss together 4·s·b·h·(1 + V/h)/(t·c).
TEST(SavedBytes, OfHeadAndLossEqualTheFormulaOfFujii) {
  for (const auto& [t, c] : {std::pair{1, 1}, {2, 1}, {4, 2}})
    EXPECT_EQ(sums_of(llama_8b(), L + 1, L + 2, shape_of(t, true, c)).saved,
              4.0 * s * h * (1 + double(V) / h) / (t * c));
}

// Korthikanti 2022, equation 2: s·b·h·(10 + 24/t + 5·a·s/(h·t)) for GPT layers with f = 4h under tensor parallelism.
// Here training has no dropout after the sub-layers. Its two masks of one byte a number are among the 10, so 8 remain.
TEST(SavedBytes, OfAGptLayerWithoutSequenceParallelEqualTheFormulaOfKorthikanti) {
  const Model model = gpt("gpt", {2, 1024, 4096, 16, 50304, 1024, 1024});
  WorkShape shape = shape_of(1, false, 1, 4, Kernels::torch);
  shape.sequence = 1024;
  for (int t : {1, 2, 8}) {
    shape.sharding = {t, false, 1};
    const double formula = 1024.0 * 4 * 1024 * (8 + 24.0 / t + 5.0 * 16 * 1024 / (1024.0 * t));
    EXPECT_EQ(sums_of(model, 1, 2, shape).saved, formula);
    if (t == 1) continue;
    shape.sharding.sequence_parallel = true;  // equation 4: everything is divided by t
    EXPECT_EQ(sums_of(model, 1, 2, shape).saved, 1024.0 * 4 * 1024 * (32 + 5.0 * 16) / t);
  }
}

std::string sequence_of(const Model& model, int first, int last, const WorkShape& shape) {
  std::string text;
  for (const Operator& op : operators_of(model, first, last, shape)) {
    if (!text.empty()) text += ' ';
    text += op.part;
    if (op.kind == OpKind::communicate)
      text += std::string("(") + name_of(op.forward) + "/" + name_of(op.backward) + ")";
  }
  return text;
}

TEST(OperatorOrder, OfALlamaLayerFollowsMegatronsPlacementOfCollectives) {
  const Model model = llama_8b();
  EXPECT_EQ(sequence_of(model, 1, 2, shape_of(1, false, 1)), "norm1 qkv attn out add1 norm2 mlp act down add2");
  EXPECT_EQ(sequence_of(model, 1, 2, shape_of(2, true, 1)),
            "norm1 ag1(all-gather/reduce-scatter) qkv attn out rs1(reduce-scatter/all-gather) add1 "
            "norm2 ag2(all-gather/reduce-scatter) mlp act down rs2(reduce-scatter/all-gather) add2");
  EXPECT_EQ(sequence_of(model, 1, 2, shape_of(2, false, 1)),
            "norm1 ar1(none/all-reduce) qkv attn out ar2(all-reduce/none) add1 "
            "norm2 ar3(none/all-reduce) mlp act down ar4(all-reduce/none) add2");
  EXPECT_EQ(sequence_of(model, 1, 2, shape_of(1, false, 2)),
            "norm1 qkv ag_kv(all-gather/reduce-scatter) attn out add1 norm2 mlp act down add2");
}

TEST(OperatorOrder, OfEmbeddingAndHeadFollowsTheFamily) {
  EXPECT_EQ(sequence_of(llama_8b(), 0, 1, shape_of(2, true, 1)), "embed rs_embed(reduce-scatter/all-gather)");
  EXPECT_EQ(sequence_of(llama_8b(), L + 1, L + 2, shape_of(2, true, 1)),
            "norm_f ag_head(all-gather/reduce-scatter) head ag_loss(all-gather/none) loss");
  EXPECT_EQ(sequence_of(llama_8b(), L + 1, L + 2, shape_of(1, false, 1)), "norm_f head loss");
  const Model model = bert("bert", {1, 768, 3072, 12, 30522, 512, 2, 512});
  WorkShape shape = shape_of(2, false, 1);
  shape.sequence = 512;
  EXPECT_EQ(sequence_of(model, 0, 3, shape),
            "embed ar_embed(all-reduce/none) positions norm0 "
            "fork1 ar1(none/all-reduce) qkv attn out ar2(all-reduce/none) add1 norm1 "
            "fork2 ar3(none/all-reduce) mlp act down ar4(all-reduce/none) add2 norm2 "
            "fork_f transform ar_head(none/all-reduce) head ag_loss(all-gather/none) loss");
}

TEST(OperatorOrder, ReadsOnlyWiresThatWereWrittenBefore) {
  for (const Model& model : {llama_8b(), gpt("gpt", {2, 1024, 4096, 16, 50304, 8192, 8192}),
                             bert("bert", {2, 1024, 4096, 16, 30592, 8192, 2, 8192})})
    for (const WorkShape& shape : {shape_of(1, false, 1), shape_of(4, true, 1), shape_of(4, false, 2)}) {
      Wires live = 0;
      std::set<std::pair<int, std::string>> parts;
      const int blocks = static_cast<int>(blocks_of(model).size());
      for (const Operator& op : operators_of(model, 0, blocks, shape)) {
        EXPECT_EQ(op.reads & ~live, 0) << op.part;
        EXPECT_TRUE(parts.insert({op.block, op.part}).second) << op.part << " occurs twice in its block";
        live = static_cast<Wires>(live | op.writes);
      }
      EXPECT_TRUE(live & wire_loss);
    }
}

TEST(MessageBytes, AreThoseOfTheWholeTensor) {
  for (const Operator& op : operators_of(llama_8b(), 1, 2, shape_of(4, true, 2, 3)))
    if (op.kind == OpKind::communicate && op.axis == Axis::tensor) {
      EXPECT_EQ(op.message_bytes, 3.0 * s / 2 * h * 2) << op.part;
    } else if (op.kind == OpKind::communicate) {  // keys and values of the whole sequence, 2 of 8 KV heads
      EXPECT_EQ(op.message_bytes, 3.0 * s * 2 * (2 * 128) * 2) << op.part;
    }
}

TEST(MessageBytes, AtAStageBoundaryAreAShardOnlyUnderSequenceParallel) {
  EXPECT_EQ(boundary_bytes(llama_8b(), shape_of(4, false, 2)), 2.0 * s * h / 2);
  EXPECT_EQ(boundary_bytes(llama_8b(), shape_of(4, true, 2)), 2.0 * s * h / 8);
}

TEST(Operators, RefuseDegreesThatDoNotDivideAndNameTheNumbers) {
  const auto message = [](const WorkShape& shape, const Model& model = llama_8b()) {
    try {
      operators_of(model, 0, L + 2, shape);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const Model six = llama("six key-value heads", {L, 96, 96, 12, 6, 128, s});
  EXPECT_NE(message(shape_of(4, true, 1), six).find("kv_heads = 6"), std::string::npos)
      << "two ranks would share three";
  EXPECT_NE(message(shape_of(5, false, 1)).find("vocab = 128256"), std::string::npos);
  EXPECT_NE(message(shape_of(1, false, 3)).find("8192"), std::string::npos);
  EXPECT_THROW(operators_of(llama_8b(), 0, L + 3, shape_of(1, false, 1)), std::invalid_argument);
}

}  // namespace
}  // namespace slipway::test
