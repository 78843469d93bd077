// Tensor degrees above the key-value heads: ranks with copies of a head train like one process, and copies stay equal.
// Losses of 20 steps to 1e-9 relative, gradients of the first step to 1e-12 of the global gradient norm, which is also
// the bound on differences between ranks that hold the same rows.
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

Step shared(const Model& model, const Degrees& degrees) {
  Step step = with_layout(model, degrees);
  step.clip_norm = 0.5;  // the global norm counts each head once
  return step;
}

TEST(SharedHeads, OfTwoRanksEachTrainLikeOneProcess) {
  std::vector<Step> steps;
  for (const int zero : {0, 1, 2, 3})
    steps.push_back(shared(tiny_llama(2, true), {.tensor = 4, .data = 2, .zero = zero, .sequence_parallel = zero > 0}));
  steps.push_back(shared(tiny_llama(2, true), {.tensor = 4, .pipeline = 2}));
  steps.push_back(shared(tiny_llama(2, true), {.tensor = 4, .context = 2, .sequence_parallel = true}));
  steps.push_back(steps.back());
  steps.back().layout.context_exchange = ContextExchange::ring;
  expect_layouts_equal_one_process(steps);
}

// One head of keys and values for all (Shazeer 2019): norms of heads, then biases of queries, keys and values.
TEST(SharedHeads, OfAllRanksTrainLikeOneProcess) {
  Model normed = tiny_qwen3(2);
  normed.name = "tiny-normed-mqa";
  const Model biased = llama("tiny-biased-mqa", {.layers = 2,
                                                 .hidden = 32,
                                                 .ffn = 48,
                                                 .heads = 4,
                                                 .kv_heads = 1,
                                                 .vocab = 256,
                                                 .sequence = 16,
                                                 .qkv_bias = true});
  for (BlockRun& run : normed.runs)
    if (run.block.kind == BlockKind::transformer) run.block.kv_heads = 1;
  expect_layouts_equal_one_process({shared(normed, {.tensor = 2, .data = 2, .zero = 2}),
                                    shared(normed, {.tensor = 4, .pipeline = 2, .sequence_parallel = true}),
                                    shared(biased, {.tensor = 2, .data = 2, .zero = 3}),
                                    shared(biased, {.tensor = 4, .data = 2, .zero = 1, .sequence_parallel = true})});
}

}  // namespace
}  // namespace slipway::test
