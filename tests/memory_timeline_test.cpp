// What the peak of a timeline consists of.
#include "schedules/graph/memory_timeline.h"

#include <gtest/gtest.h>

#include "schedules/graph/lowering.h"

namespace slipway {
namespace {

RankMemory first_rank(LoweringInput input) {
  input.model = llama("small", {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 2,
                                .vocab = 256, .sequence = 32});
  input.shape.sequence = 32;
  input.global_batch = 8;
  TaskGraph graph = lower(input);
  Durations durations(graph.tasks.size());
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    durations[id] = graph.tasks[id].communicator == none ? 1e-3 : 1e-6;
  set_global_order(graph, durations);
  return memory_timeline(graph, replay(graph, durations)).front();
}

TEST(MemoryTimelineParts, SumToThePeakInEveryKindOfLayout) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
    for (const int zero : {0, 1, 2, 3})
      for (const int pipeline : {1, 2}) {
        LoweringInput input;
        input.layout.tensor = 2;
        input.layout.data = 2;
        input.layout.pipeline = pipeline;
        input.layout.zero = zero;
        input.recompute = recompute;
        input.shape.kernels = Kernels::torch;
        const RankMemory memory = first_rank(input);
        EXPECT_DOUBLE_EQ(sum(memory.parts), memory.peak);
        EXPECT_EQ(memory.parts[MemoryPart::layer_inputs] > 0, recompute == Recompute::full);
      }
}

// 2 micro-batches of 2 layers in flight on the first of two ranks; each keeps 5 bytes a score in bf16
// (Korthikanti 2022), of s²·heads/tensor scores.
TEST(MemoryTimelineParts, CountTheScoresOfMicroBatchesInFlight) {
  LoweringInput input;
  input.layout.pipeline = 2;
  input.layout.tensor = 2;
  input.shape.kernels = Kernels::torch;
  EXPECT_DOUBLE_EQ(first_rank(input).parts[MemoryPart::scores], 2 * 2 * 5.0 * 32 * 32 * 4 / 2);
  input.recompute = Recompute::selective;
  EXPECT_DOUBLE_EQ(first_rank(input).parts[MemoryPart::scores], 0);
}

// Full recompute: the input of each layer of each micro-batch in flight (2 bytes, b·s·h numbers), and one
// layer's own parts.
TEST(MemoryTimelineParts, OfFullRecomputeAreInputsAndOneLayer) {
  LoweringInput input;
  input.layout.pipeline = 2;
  const double mlp_of_all = first_rank(input).parts[MemoryPart::mlp];
  input.recompute = Recompute::full;
  const RankMemory memory = first_rank(input);
  EXPECT_DOUBLE_EQ(memory.parts[MemoryPart::mlp], mlp_of_all / 4);
  EXPECT_NEAR(memory.parts[MemoryPart::layer_inputs], 2 * 2 * 2.0 * 32 * 64, 2.0 * 32 * 64);
}

TEST(MemoryTimelineParts, OfZero3AreGatheredWeights) {
  LoweringInput input;
  input.layout.data = 2;
  input.layout.zero = 3;
  EXPECT_GT(first_rank(input).parts[MemoryPart::gathered_weights], 0);
}

}  // namespace
}  // namespace slipway
