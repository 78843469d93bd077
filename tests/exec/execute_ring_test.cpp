// Ring attention trains like one process: losses of 20 steps to 1e-9 relative, first gradients to 1e-12 of the global
// norm, on virtual ranks. execute_run_test.cpp has the runs with real messages.
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

Step ring(const Model& model, const Degrees& degrees) {
  Step input = with_layout(model, degrees);
  input.layout.context_exchange = ContextExchange::ring;
  return input;
}

TEST(RingAttention, OverTwoRanksGivesTheResultsOfOneProcess) {
  expect_layout_equals_one_process(ring(llama_for(2, true), {.context = 2}));
}

TEST(RingAttention, OverFourRanksGivesTheResultsOfOneProcess) {
  expect_layout_equals_one_process(ring(llama_for(2, true), {.context = 4}));
}

// Learned positions, biases, equally many key heads and query heads; an untied head; BERT sees all keys.
TEST(RingAttention, OfOtherModelsGivesTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (const Model& model : {tiny_gpt(2), tiny_gpt(2, false), tiny_bert(2)})
    for (const int context : {2, 4}) inputs.push_back(ring(model, {.context = context}));
  expect_layouts_equal_one_process(inputs);
}

TEST(RingAttention, WithEveryOtherDegreeAndZeroStageGivesTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (const int zero : {0, 1, 2, 3}) {
    for (const Degrees& degrees :
         {Degrees{.data = 2, .context = 2}, Degrees{.tensor = 2, .context = 2},
          Degrees{.tensor = 2, .context = 4, .sequence_parallel = true},
          Degrees{.tensor = 2, .pipeline = 2, .context = 2, .sequence_parallel = true},
          Degrees{.pipeline = 2, .data = 2, .context = 2}, Degrees{.pipeline = 2, .context = 4}}) {
      Degrees cut = degrees;
      cut.zero = zero;
      inputs.push_back(ring(llama_for(2, true), cut));
      inputs.back().clip_norm = 0.5;
    }
  }
  expect_layouts_equal_one_process(inputs);
}

TEST(RingAttention, RecomputedGivesTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    for (const int zero : {0, 3}) {
      inputs.push_back(ring(llama_for(2, true), {.context = 4, .zero = zero}));
      inputs.back().recompute = recompute;
      const Degrees cut{.tensor = 2, .pipeline = 2, .context = 2, .zero = zero, .sequence_parallel = true};
      inputs.push_back(ring(llama_for(2, true), cut));
      inputs.back().recompute = recompute;
    }
  }
  expect_layouts_equal_one_process(inputs);
}

TEST(RingAttention, UnderEveryOtherScheduleGivesTheResultsOfOneProcess) {
  std::vector<Step> inputs;
  for (const char* name : {"gpipe", "zb-h1", "zb-h2", "chimera"}) {
    inputs.push_back(ring(llama_for(2, true), {.pipeline = 2, .context = 2}));
    inputs.back().schedule = name;
  }
  for (const char* name : {"interleaved-1f1b", "zb-v", "dualpipe-v"}) {
    inputs.push_back(ring(llama_for(4, true), {.pipeline = 2, .context = 2, .chunks = 2}));
    inputs.back().schedule = name;
  }
  expect_layouts_equal_one_process(inputs);
}

// Sums in another order; see execute_variants_test.cpp for the bound.
TEST(RingAttention, InFloat32FollowsOneProcessWithinRoundOff) {
  expect_float32_follows_one_process(ring(llama_for(2, true), {.context = 4}));
}

}  // namespace
}  // namespace slipway::test
