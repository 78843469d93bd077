// Any layout trains like one process, as virtual ranks in this process. The layouts are all products up to 8 ranks of
// tensor {1, 2, 2 with sequence parallelism}, pipeline {1, 2, 4}, data {1, 2}, context {1, 2} and ZeRO {0, 1, 2, 3};
// without context also with two chunks. Losses of 20 steps agree to 1e-9 relative, gradients of the first step to 1e-12
// of the global gradient norm.
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

class EveryLayout : public testing::TestWithParam<Degrees> {};

TEST_P(EveryLayout, GivesTheLossesAndGradientsOfOneProcess) {
  Degrees degrees = GetParam();
  std::vector<Step> inputs;
  for (const int chunks : {1, 2}) {
    if (chunks > 1 && (degrees.pipeline == 1 || degrees.context > 1)) continue;
    for (const int zero : {0, 1, 2, 3}) {
      for (const bool sequence_parallel : {false, true}) {
        if (sequence_parallel ? degrees.tensor == 1 : chunks > 1 && degrees.tensor > 1) continue;
        degrees.chunks = chunks, degrees.zero = zero, degrees.sequence_parallel = sequence_parallel;
        Step input = with_layout(llama_for(degrees.pipeline * chunks, true), degrees);
        input.clip_norm = 0.5;
        inputs.push_back(input);
      }
    }
  }
  expect_layouts_equal_one_process(inputs);
}

std::vector<Degrees> products() {
  std::vector<Degrees> list;
  for (const int tensor : {1, 2})
    for (const int pipeline : {1, 2, 4})
      for (const int data : {1, 2})
        for (const int context : {1, 2})
          if (tensor * pipeline * data * context <= 8)
            list.push_back({.tensor = tensor, .pipeline = pipeline, .data = data, .context = context});
  return list;
}

INSTANTIATE_TEST_SUITE_P(Products, EveryLayout, testing::ValuesIn(products()), [](const auto& info) {
  const Degrees& d = info.param;
  return "tensor" + std::to_string(d.tensor) + "pipeline" + std::to_string(d.pipeline) + "data" +
         std::to_string(d.data) + "context" + std::to_string(d.context);
});

}  // namespace
}  // namespace slipway::test
