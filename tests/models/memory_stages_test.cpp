// The closed form of any pipeline rank, and its parts.
#include "models/memory/closed_form.h"

#include <gtest/gtest.h>

#include <vector>

#include "models/model/operators.h"

namespace slipway::test {
namespace {

constexpr double GiB = 1024.0 * 1024.0 * 1024.0;
Model llama_8b() { return llama("llama-3.1-8b", {32, 4096, 14336, 32, 8, 128256, 8192}); }

MemoryInput input_of(int t, int c, int p, int b, int gpus) {
  WorkShape shape;
  shape.micro_batch = b;
  shape.sequence = 8192;
  shape.sharding = {t, true, c, ContextExchange::ring};  // as Megatron-Core sends keys and values
  MemoryInput input = memory_input(llama_8b(), shape);
  input.pipeline = p;
  input.data = gpus / (t * c * p);
  return input;
}

double static_part(const MemoryParts& parts) {
  return parts[MemoryPart::weights] + parts[MemoryPart::gradients] + parts[MemoryPart::optimizer];
}

// Fujii et al. 2024: (TP, CP, PP, micro-batch, GPUs), GiB.
TEST(StageMemory, OfTheFirstStageEqualsTheAuthorsFourCases) {
  const struct {
    int t, c, p, b, gpus;
    double fixed, activations;
  } cases[] = {{2, 1, 1, 1, 4, 44.87260437011719, 22.64453125},
               {1, 2, 1, 1, 4, 67.30887222290039, 22.64453125},
               {2, 1, 2, 1, 128, 11.919273376464844, 20.75},
               {2, 2, 1, 2, 128, 23.137436628341675, 22.64453125}};
  for (const auto& row : cases) {
    const StageShare first{32.0 / row.p, true, row.p == 1, static_cast<double>(row.p)};
    const MemoryParts parts = stage_memory(input_of(row.t, row.c, row.p, row.b, row.gpus), std::span(&first, 1));
    EXPECT_DOUBLE_EQ(static_part(parts) / GiB, row.fixed);
    EXPECT_DOUBLE_EQ(activation_bytes(parts) / GiB, row.activations);
  }
}

// 1F1B on four ranks: rank i holds 4 − i micro-batches of 8 layers; only the first has the embedding, only
// the last the head. By hand from the formula of the paper.
TEST(StageMemory, OfLaterStagesHasFewerMicroBatchesAndTheLastOneTheHead) {
  const MemoryInput input = input_of(2, 1, 4, 1, 16);
  const double h = 4096, f = 14336, s = 8192, V = 128256;
  const double layer = s * h * (12 + 4 * 0.25 + 8 * f / h) / 2;
  for (int rank = 0; rank < 4; ++rank) {
    const StageShare share{8, rank == 0, rank == 3, 4.0 - rank};
    const MemoryParts parts = stage_memory(input, std::span(&share, 1));
    EXPECT_DOUBLE_EQ(activation_bytes(parts), 8 * (4 - rank) * layer + (rank == 0 ? 8 * s * h * 4 / 2 : 0) +
                                                  (rank == 3 ? 4 * s * h * (1 + V / h) / 2 : 0));
    const double parameters =
        8 * (2 * h * h * 1.25 + 3 * h * f + 2 * h) / 2 + (rank == 0 || rank == 3 ? h * V / 2 : 0) + (rank == 3 ? h : 0);
    EXPECT_DOUBLE_EQ(static_part(parts), parameters * (6 + 12.0 / 2));
  }
}

// All parts of a layer against the operators, which are counted elsewhere.
TEST(StageMemory, SplitsALayerAsItsOperatorsDo) {
  LlamaShape wide{32, 4096, 14336, 32, 8, 128256, 8192};
  wide.head_dim = 192;
  wide.qk_norm = true;
  LlamaShape mixtral{32, 4096, 14336, 32, 8, 128256, 8192};
  mixtral.experts = 8, mixtral.experts_per_token = 2;
  for (const Model& model : {llama_8b(), llama("with norms of wider heads", wide), llama("with experts", mixtral)})
    for (Kernels kernels : {Kernels::torch, Kernels::flash2, Kernels::flash2_rmsnorm})
      for (Dtype dtype : {Dtype::bfloat16, Dtype::float32}) {
        MemoryInput input = memory_input(model, input_of(4, 2, 1, 1, 8).shape);
        input.shape.kernels = kernels;
        input.shape.dtype = dtype;
        input.shape.sharding.exchange = ContextExchange::all_gather;
        MemoryParts counted;
        double saved = 0;
        const std::vector<Block> blocks = blocks_of(model);
        for (const Operator& op : operators_of(model, 32, 34, input.shape)) {
          add_kept(op, blocks[op.block], input.shape, counted);
          saved += op.saved_bytes;
        }
        EXPECT_DOUBLE_EQ(sum(counted), saved);
        const double queries =
            8192 / 2 * static_cast<double>(blocks[32].heads * blocks[32].head_dim) / 4 * bytes_of(dtype);
        counted[MemoryPart::attention] +=
            queries * (2 * 8 / 32.0 + 1);  // the other rank's keys and values; output, joined
        const StageShare share{1, false, true, 1};
        const MemoryParts closed = stage_memory(input, std::span(&share, 1));
        for (const MemoryPart part :
             {MemoryPart::norms, MemoryPart::norm_copies, MemoryPart::projection_inputs, MemoryPart::attention,
              MemoryPart::scores, MemoryPart::mlp, MemoryPart::head, MemoryPart::logits})
          EXPECT_DOUBLE_EQ(closed[part], counted[part]) << name_of(part);
      }
}

TEST(StageMemory, OfFullRecomputeKeepsInputsOfLayersInFlightAndOneLayerAtWork) {
  MemoryInput input = input_of(2, 1, 4, 1, 16);
  const StageShare share{8, false, false, 3};
  MemoryParts whole = stage_memory(input, std::span(&share, 1));
  input.recompute = Recompute::full;
  const MemoryParts parts = stage_memory(input, std::span(&share, 1));
  EXPECT_DOUBLE_EQ(parts[MemoryPart::layer_inputs], 8 * 3 * 2.0 * 8192 * 4096 / 2);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::mlp], whole[MemoryPart::mlp] / 24);
  EXPECT_DOUBLE_EQ(parts[MemoryPart::projection_inputs], 2 * 2.0 * 8192 * 4096)
      << "gathered when the layer is made again";
}

}  // namespace
}  // namespace slipway::test
