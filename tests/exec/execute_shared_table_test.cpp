// A tied embedding that is one tensor on the rank of both its uses trains like plain code and like two copies.
#include <gtest/gtest.h>

#include "exec/rank/buckets.h"
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

Step clipped(Step input) {
  input.clip_norm = 0.3;
  return input;
}

// The gradients of one process are those of plain code: execute_numerics_test.cpp.
TEST(SharedTable, TrainsLikeOneProcessOnEveryLayoutThatSharesIt) {
  std::vector<Step> inputs;
  for (const Model& model : {tiny_llama(2, true), tiny_gpt(2)})
    for (const int zero : {0, 1}) inputs.push_back(clipped(with_layout(model, {.tensor = 2, .data = 2, .zero = zero})));
  expect_layouts_equal_one_process(inputs);
}

TEST(SharedTable, OfAVOfStagesTrainsLikeOneProcess) {
  std::vector<Step> inputs;
  for (const char* schedule : {"zb-v", "dualpipe-v"})
    for (const int zero : {0, 1}) {
      Step input = clipped(with_layout(tiny_llama(4, true), {.pipeline = 2, .data = 2, .zero = zero}));
      input.schedule = schedule;
      input.layout.chunks = 2;
      inputs.push_back(input);
    }
  expect_layouts_equal_one_process(inputs);
}

// Two ranks, or ZeRO 2 and 3, have a copy each.
TEST(SharedTable, TrainsLikeTwoCopies) {
  expect_layouts_equal_one_process({clipped(with_layout(tiny_llama(2, true), {.pipeline = 2})),
                                    clipped(with_layout(tiny_llama(2, true), {.data = 2, .zero = 2})),
                                    clipped(with_layout(tiny_llama(2, true), {.data = 2, .zero = 3}))});
}

TEST(SharedTable, IsOneTensorForEmbeddingAndHead) {
  const Bundle bundle = tiny_bundle(tiny_input(tiny_llama(2, true)));
  const Buckets buckets(bundle, 0, at::kCPU);
  const ShardedParameter& embedding = parameter_named(buckets.block(0), "embedding.weight");
  const ShardedParameter& head = parameter_named(buckets.block(3), "head.weight");
  EXPECT_EQ(embedding.weight.data_ptr(), head.weight.data_ptr());
  EXPECT_EQ(embedding.gradient.data_ptr(), head.gradient.data_ptr());
  std::int64_t held = 0;
  for (int block = 0; block < 4; ++block) held += buckets.block(block).elements;
  EXPECT_EQ(held, parameter_count(bundle.graph.step.model));
}

}  // namespace
}  // namespace slipway::test
