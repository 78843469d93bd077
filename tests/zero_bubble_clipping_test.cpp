// What ZB-H2 gains over ZB-H1: no rank waits inside its own span, so the next step can start while other ranks
// still end this one. A gradient norm over all ranks joins them again and the gain is gone.
#include <gtest/gtest.h>

#include "schedules/graph/checks.h"
#include "schedules/graph/lowering.h"
#include "schedules/graph/metrics.h"

namespace slipway {
namespace {

constexpr int p = 4, m = 8;

// F = I = W = 1 on every stage; messages, norms and the optimizer take no time.
double step_time(const char* schedule, double clip_norm) {
  LoweringInput input;
  input.model = llama("even", {.layers = p, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256,
                               .sequence = 32});
  input.shape.sequence = 32;
  input.layout.pipeline = p;
  input.schedule = schedule;
  input.global_batch = m;
  input.clip_norm = clip_norm;
  TaskGraph graph = lower(input);
  Durations durations(graph.tasks.size(), 0);
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    if (graph.works[static_cast<std::size_t>(graph.tasks[id].work)].kind == WorkKind::segment) durations[id] = 1;
  set_global_order(graph, durations);
  const auto violations = check_graph(graph);
  EXPECT_TRUE(violations.empty()) << describe(graph, violations.front());
  return step_time_of(graph, replay(graph, durations, 3));
}

TEST(ZeroBubbleH2, StartsTheNextStepEarlierWithoutClippingAndGainsNothingWithIt) {
  constexpr double busy = 3 * m, bubble = p - 1;
  EXPECT_DOUBLE_EQ(step_time("zb-h1", 0), busy + bubble);
  EXPECT_DOUBLE_EQ(step_time("zb-h2", 0), busy);
  EXPECT_DOUBLE_EQ(step_time("zb-h1", 1), busy + bubble);
  EXPECT_DOUBLE_EQ(step_time("zb-h2", 1), busy + bubble);
}

}  // namespace
}  // namespace slipway
