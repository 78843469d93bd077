// The one count of what is kept, against truths from outside the code.
#include "schedules/memory/counted_memory.h"

#include <gtest/gtest.h>

#include "models/memory/closed_form.h"
#include "schedules/lower/static_bytes.h"

namespace slipway::test {
namespace {

constexpr double GiB = 1024.0 * 1024.0 * 1024.0;

// Fujii et al. 2024: Llama-3.1-8B at 8192 with the distributed optimizer and fp32 gradients, as Megatron-Core runs it.
Step author_case(int t, int c, int p, int b, int gpus) {
  Step step;
  step.model = llama("llama-3.1-8b", {32, 4096, 14336, 32, 8, 128256, 8192});
  step.layout.tensor = t, step.layout.context = c, step.layout.pipeline = p;
  step.layout.data = gpus / (t * c * p);
  step.layout.sequence_parallel = t > 1;
  step.layout.zero = 1;
  step.micro_batch = b;
  step.global_batch = 2 * p * b * step.layout.data;
  return step;
}

// The author's terms but the embedding input, which no operator keeps. He divides norms by the tensor degree.
TEST(CountedMemory, EqualsTheFourCasesOfFujii) {
  const struct {
    int t, c, p, b, gpus;
    double fixed, activations;
  } cases[] = {{2, 1, 1, 1, 4, 44.87260437011719, 22.64453125},
               {1, 2, 1, 1, 4, 67.30887222290039, 22.64453125},
               {2, 1, 2, 1, 128, 11.919273376464844, 20.75},
               {2, 2, 1, 2, 128, 23.137436628341675, 22.64453125}};
  for (const auto& at : cases) {
    const Step step = author_case(at.t, at.c, at.p, at.b, at.gpus);
    const MemoryParts parts = counted_memory(step, {.executor = false, .layers = {}})[0].parts;
    const double embedding_input = 8.0 * 8192 / at.c * at.b * 4096 * at.p / at.t;
    EXPECT_NEAR(activation_bytes(parts) / GiB, at.activations - embedding_input / GiB, 1e-9);
    EXPECT_NEAR((sum(parts) - activation_bytes(parts)) / GiB, at.fixed, 1e-3 * at.fixed);
  }
}

// What add_kept puts into parts sums to what the operators keep (models/memory/memory_parts.h).
TEST(CountedMemory, PartsSumToTheSavedBytesOfOperators) {
  LlamaShape wide{32, 4096, 14336, 32, 8, 128256, 8192}, mixtral = wide;
  wide.head_dim = 192, wide.qk_norm = true;
  mixtral.experts = 8, mixtral.experts_per_token = 2;
  for (const Model& model : {llama("with norms of wider heads", wide), llama("with experts", mixtral)})
    for (const Kernels kernels : {Kernels::torch, Kernels::flash2, Kernels::flash2_rmsnorm})
      for (const Dtype dtype : {Dtype::bfloat16, Dtype::float32}) {
        WorkShape shape;
        shape.sequence = 8192;
        shape.sharding = {4, true, 2};
        shape.kernels = kernels;
        shape.dtype = dtype;
        MemoryParts parts;
        double saved = 0;
        const std::vector<Block> blocks = blocks_of(model);
        for (const Operator& op : operators_of(model, 0, 34, shape)) {
          add_kept(op, blocks[op.block], shape, parts);
          saved += op.saved_bytes;
        }
        EXPECT_DOUBLE_EQ(sum(parts), saved) << model.name;
      }
}

TEST(CountedMemory, HoldsOneMicroBatchLessOnEachLaterStage) {
  const std::vector<StageTerms> stages = counted_memory(author_case(2, 1, 4, 1, 16));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_DOUBLE_EQ(stages[rank].layers_kept, 8 * (4 - rank));
    EXPECT_EQ(stages[rank].embeddings_held, rank == 0 ? 4 : 0);
    EXPECT_EQ(stages[rank].heads_held, rank == 3 ? 1 : 0);
  }
}

TEST(CountedMemory, OfATrainersOwnSplitIsThatOfTheSameSplitInTheLayout) {
  Step step = author_case(2, 1, 2, 1, 8);
  const auto dealt = counted_memory(step, {.executor = true, .layers = {20, 12}});
  step.layout.split = SplitKind::list;
  step.layout.split_list = {20, 12};
  const auto listed = counted_memory(step);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    EXPECT_DOUBLE_EQ(sum(dealt[stage].parts), sum(listed[stage].parts));
    EXPECT_DOUBLE_EQ(dealt[stage].parameters, listed[stage].parameters);
  }
  const auto empty = counted_memory(step, {.executor = true, .layers = {32, 0}});
  EXPECT_EQ(empty[1].layers_kept, 0) << "a stage may have the head alone";
}

TEST(CountedMemory, ATiedTableIsOnceOnOneStageAndTwiceOnTwo) {
  LlamaShape shape{2, 64, 96, 8, 4, 128, 32, true};
  Step step;
  step.model = llama("tied", shape);
  step.global_batch = 4;
  const double table = 64.0 * 128;
  const double one = counted_memory(step)[0].parameters;
  EXPECT_DOUBLE_EQ(one, static_cast<double>(parameter_count(step.model)));
  step.layout.pipeline = 2;
  const auto two = counted_memory(step);
  EXPECT_DOUBLE_EQ(two[0].parameters + two[1].parameters, one + table);
}

TEST(CountedMemory, StaticBytesAreThoseOfTheGraph) {
  for (const int zero : {0, 1, 2, 3}) {
    Step step = author_case(2, 1, 2, 1, 8);
    step.layout.zero = zero;
    const auto counted = counted_memory(step);
    const std::vector<StaticBytes> fixed = static_bytes_of(step);
    for (std::size_t rank = 0; rank < 2; ++rank)
      EXPECT_DOUBLE_EQ(counted[rank].parts[MemoryPart::optimizer], fixed[rank].optimizer) << zero;
  }
}

// The embedding's output is whole on every tensor rank unless sequence parallelism cuts it.
TEST(CountedMemory, CutsTheHiddenStateOnlyUnderSequenceParallelism) {
  Step step = author_case(4, 1, 1, 1, 4);
  EXPECT_DOUBLE_EQ(counted_memory(step)[0].hidden_cut * 4, counted_memory(step)[0].hidden);
  step.layout.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(counted_memory(step)[0].hidden_cut, counted_memory(step)[0].hidden);
}

// Operands by rows and by columns are one tensor on Blackwell where a tensor has one scale.
TEST(CountedMemory, ASecondCopyByColumnsIsThereWhereScalesFollowRows) {
  Step step = author_case(2, 1, 1, 1, 4);
  const double linears = 32.0 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336) / 2;
  const auto second = [&](NarrowRecipe recipe) {  // of two copies, the one that Blackwell does not need
    step.narrow = recipe;
    step.narrow_habits.one_copy = false;
    const double two = counted_memory(step)[0].parts[MemoryPart::weights];
    step.narrow_habits.one_copy = true;
    return two - counted_memory(step)[0].parts[MemoryPart::weights];
  };
  EXPECT_EQ(second(NarrowRecipe::tensorwise), linears);
  EXPECT_EQ(second(NarrowRecipe::mxfp8), 0) << "scales along rows are not those along columns";
}

// Transformer Engine's parameters in a narrow format (fp8_model_init) have no copy in bfloat16.
TEST(CountedMemory, WeightsThatAreGatheredInANarrowFormatHaveNoOtherCopy) {
  Step step = author_case(2, 1, 1, 1, 4);
  step.layout.data = 2;
  step.layout.zero = 1;
  const double linears = 32.0 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336) / 2;
  const auto weights = [&](NarrowRecipe recipe, bool gathers) {
    step.narrow = recipe;
    step.narrow_habits.gathers_weights = gathers;
    return counted_memory(step)[0].parts[MemoryPart::weights];
  };
  EXPECT_EQ(weights(NarrowRecipe::none, true), weights(NarrowRecipe::none, false));
  for (const NarrowRecipe recipe : {NarrowRecipe::delayed, NarrowRecipe::tensorwise, NarrowRecipe::mxfp8})
    EXPECT_DOUBLE_EQ(weights(recipe, false) - weights(recipe, true), 2 * linears) << name_of(recipe);
}

}  // namespace
}  // namespace slipway::test
