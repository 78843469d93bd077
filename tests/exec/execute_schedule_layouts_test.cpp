// Every schedule of the catalogue trains like one process, at several products of degrees: losses of 20 steps to 1e-9
// relative, gradients of the first step to 1e-12 of the global gradient norm. Layouts are in execute_layouts_test.cpp.
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

Step with_schedule(const Schedule& schedule, Step input) {
  input.schedule = schedule.name;
  input.layout.chunks = schedule.default_chunks;
  input.slices = schedule.default_slices;
  input.clip_norm = 0.5;
  return input;
}

class EverySchedule : public testing::TestWithParam<Schedule> {};

TEST_P(EverySchedule, GivesTheLossesAndGradientsOfOneProcess) {
  const Model model = llama_for(4, true);
  expect_layouts_equal_one_process(
      {with_schedule(GetParam(), all_cut(model)), with_schedule(GetParam(), with_layout(model, {.pipeline = 2}))});
}

TEST_P(EverySchedule, OnFourRanksOfAnUntiedGptGivesTheLossesAndGradientsOfOneProcess) {
  const Model model = tiny_gpt(8, false);
  expect_layouts_equal_one_process(
      {with_schedule(GetParam(), with_layout(model, {.pipeline = 4, .data = 2})),
       with_schedule(GetParam(), with_layout(model, {.pipeline = 4, .data = 2, .zero = 1}))});
}

// Chimera's two copies do not go with ZeRO 2 and 3, slices not with context parallelism.
TEST_P(EverySchedule, WithContextAndShardedWeightsGivesTheLossesAndGradientsOfOneProcess) {
  Degrees degrees{.pipeline = 2, .data = 2, .context = 2, .zero = 3};
  if (GetParam().copies > 1) degrees.zero = 1;
  if (GetParam().default_slices > 1) degrees.context = 1, degrees.tensor = 2;
  expect_layout_equals_one_process(with_schedule(GetParam(), with_layout(llama_for(4, true), degrees)));
}

INSTANTIATE_TEST_SUITE_P(ByName, EverySchedule, testing::ValuesIn(all_schedules()), [](const auto& info) {
  std::string name = info.param.name;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace slipway::test
