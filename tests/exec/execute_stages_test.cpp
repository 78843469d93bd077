// Stages that hold no layer, only the embedding, only the head, or nothing, and interleaved schedules of any number of
// micro-batches train like one process: losses of 20 steps to 1e-9 relative, gradients of the first step to 1e-12 of the
// global gradient norm.
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

Step on_stages(Degrees degrees, const std::string& schedule, int chunks, std::vector<int> layers = {},
               bool tied = true) {
  Step step = with_layout(tiny_llama(2, tied), degrees);
  step.schedule = schedule;
  step.layout.chunks = chunks;
  step.clip_norm = 0.5;
  if (!layers.empty()) step.layout.split = SplitKind::list, step.layout.split_list = std::move(layers);
  return step;
}

TEST(StagesWithoutALayer, OfTheEmbeddingAndTheHeadAloneTrainLikeOneProcess) {
  expect_layouts_equal_one_process({on_stages({.pipeline = 4}, "1f1b", 1),
                                    on_stages({.pipeline = 2}, "interleaved-1f1b", 2),
                                    on_stages({.pipeline = 2, .data = 2, .zero = 1}, "zb-v", 2, {}, false),
                                    on_stages({.pipeline = 4, .data = 2, .zero = 3}, "gpipe", 1)});
}

TEST(StagesWithoutALayer, ThatOnlyHandOnTrainLikeOneProcess) {
  expect_layouts_equal_one_process(
      {on_stages({.pipeline = 4}, "1f1b", 1, {1, 0, 0, 1}), on_stages({.pipeline = 4}, "1f1b", 1, {0, 0, 2, 0}),
       on_stages({.tensor = 2, .pipeline = 2, .sequence_parallel = true}, "interleaved-1f1b", 4,
                 {0, 1, 0, 0, 0, 0, 1, 0}),
       on_stages({.pipeline = 2, .data = 2, .zero = 2}, "zb-v", 2, {2, 0, 0, 0}, false),
       on_stages({.pipeline = 4}, "zb-h1", 1, {1, 0, 1, 0}), on_stages({.pipeline = 4}, "dualpipe", 1, {1, 0, 1, 0})});
}

}  // namespace
}  // namespace slipway::test
