// Several steps as one graph: the same timeline as the steps one after another.
#include <gtest/gtest.h>

#include "schedules/graph/checks.h"
#include "schedules/graph/replay.h"
#include "schedules/graph/window.h"

namespace slipway {
namespace {

// ZeRO-1 carries its parameter gathers into the next step.
TaskGraph small_step(Durations& durations) {
  LoweringInput input;
  input.model = llama(
      "small",
      {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  input.layout = {.pipeline = 2, .data = 2, .zero = 1};
  input.shape.sequence = 32;
  input.global_batch = 8;
  TaskGraph graph = lower(input);
  for (TaskId id = 0; id < graph.tasks.size(); ++id) durations.push_back(1 + id % 3);
  set_global_order(graph, durations);
  return graph;
}

TEST(Window, IsASoundGraph) {
  Durations durations;
  const TaskGraph step = small_step(durations);
  TaskGraph window = window_of(step, 3);
  Durations all;
  for (int s = 0; s < 3; ++s) all.insert(all.end(), durations.begin(), durations.end());
  set_global_order(window, all);
  for (const Violation& violation : check_graph(window)) ADD_FAILURE() << describe(window, violation);
  EXPECT_EQ(window.tasks.size(), 3 * step.tasks.size());
  EXPECT_EQ(label_of(window, static_cast<TaskId>(2 * step.tasks.size())), label_of(step, 0));
  EXPECT_EQ(window.tasks.back().step, 2);
}

TEST(Window, ReplaysLikeItsStepsBackToBack) {
  Durations durations;
  const TaskGraph step = small_step(durations);
  TaskGraph window = window_of(step, 3);
  window.order.clear();
  for (std::uint32_t s = 0; s < 3; ++s)
    for (const TaskId id : step.order)
      window.order.push_back(static_cast<TaskId>(s * step.tasks.size()) + id);
  Durations all;
  for (int s = 0; s < 3; ++s) all.insert(all.end(), durations.begin(), durations.end());
  EXPECT_EQ(replay(window, all, 2).start, replay(step, durations, 6).start);
}

TEST(Window, OfAWindowOrOfNoStepIsRefused) {
  Durations durations;
  const TaskGraph step = small_step(durations);
  EXPECT_THROW(window_of(step, 0), std::invalid_argument);
  EXPECT_THROW(window_of(window_of(step, 2), 2), std::invalid_argument);
}

}  // namespace
}  // namespace slipway
