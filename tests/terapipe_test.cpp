// TeraPipe: the order of slices, the makespan of equal slices, and what slices of attention cost.
#include <gtest/gtest.h>

#include "models/operators.h"
#include "schedules/graph/checks.h"
#include "schedules/graph/checks_actions.h"
#include "schedules/graph/grid.h"
#include "schedules/graph/lowering.h"
#include "tests/unit_replay.h"

namespace slipway {
namespace {

const Schedule& terapipe() { return *schedule_named("terapipe"); }

TEST(TeraPipe, ShrinksTheBubbleOfGPipeByTheNumberOfSlices) {
  for (const int p : {1, 2, 4, 7}) {
    for (const int m : {1, 2, 5}) {
      for (const int slices : {1, 2, 4, 8}) {
        const ScheduleShape shape{.pipeline = p, .micro_batches = m, .slices = slices};
        const ActionLists lists = terapipe().actions(shape);
        EXPECT_TRUE(check_actions(lists, shape).empty());
        const auto result = test::replay_actions(lists, {.forward = 2, .backward = 3});
        EXPECT_EQ(result.makespan, (m * slices + p - 1) * (2 + 3)) << p << " " << m << " " << slices;
        EXPECT_EQ(result.most_in_flight.front(), m * slices);
      }
    }
  }
}

TEST(TeraPipe, BackwardsInTheOrderOfTheForwardsAreACircle) {
  const ScheduleShape shape{.pipeline = 1, .micro_batches = 1, .slices = 2};
  const ActionLists lists{{{Pass::forward, 0, 0, 0},
                           {Pass::forward, 0, 0, 1},
                           {Pass::backward, 0, 0, 0},
                           {Pass::backward, 0, 0, 1}}};
  const auto defects = check_actions(lists, shape);
  ASSERT_EQ(defects.size(), 1U);
  EXPECT_NE(defects.front().message.find("circle at 0B0"), std::string::npos) << defects.front().message;
}

TEST(TeraPipe, IsDrawnWithItsSlices) {
  EXPECT_EQ(grid(terapipe().actions({.pipeline = 2, .micro_batches = 1, .slices = 2})),
            "rank 0 │  0F0  0F0/1   .     .   0B0/1  0B0\n"
            "rank 1 │   .    1F0  1F0/1 1B0/1  1B0    .\n");
}

Model small() {
  return gpt("small", {.layers = 4,
                       .hidden = 64,
                       .ffn = 256,
                       .heads = 4,
                       .vocab = 256,
                       .max_positions = 64,
                       .sequence = 64});
}

// The lower triangle of attention is cut into strips: their areas add up to it.
TEST(SlicesOfASequence, DoTheWorkOfTheWholeSequence) {
  WorkShape whole;
  whole.sequence = 64;
  const auto flops = [](const WorkShape& shape) {
    double sum = 0, attention = 0;
    for (const Operator& op : operators_of(small(), 0, 6, shape)) {
      sum += op.forward_flops;
      if (op.kind == OpKind::attention) attention += op.forward_flops;
    }
    return std::pair(sum, attention);
  };
  for (const Kernels kernels : {Kernels::flash2, Kernels::flash2_rmsnorm}) {
    whole.kernels = kernels;
    double sum = 0, previous = 0;
    for (int slice = 0; slice < 4; ++slice) {
      WorkShape shape = whole;
      shape.sequence = 16;
      shape.before = slice * 16;
      sum += flops(shape).first;
      EXPECT_GT(flops(shape).second, previous) << "a later slice sees more keys";
      previous = flops(shape).second;
    }
    EXPECT_DOUBLE_EQ(sum, flops(whole).first);
  }
}

LoweringInput sliced(int tensor) {
  LoweringInput input;
  input.model = small();
  input.layout.pipeline = 2;
  input.layout.tensor = tensor;
  input.layout.sequence_parallel = tensor > 1;
  input.schedule = "terapipe";
  input.slices = 4;
  input.shape.sequence = 16;
  input.global_batch = 2;
  return input;
}

TEST(SlicesOfASequence, MakeSoundGraphsInWhichCachesGoForwardAndTheirGradientsBack) {
  for (const int tensor : {1, 2}) {
    TaskGraph graph = lower(sliced(tensor));
    set_global_order(graph, Durations(graph.tasks.size(), 1.0));
    const auto violations = check_graph(graph);
    EXPECT_TRUE(violations.empty()) << describe(graph, violations.front());
    int caches = 0, gradients = 0;
    for (const Buffer& buffer : graph.buffers) {
      if (buffer.wire != wire_kv) continue;
      ++(buffer.kind == BufferKind::value ? caches : gradients);
      EXPECT_EQ(buffer.bytes > 0, buffer.kind == BufferKind::gradient);
    }
    const int handed_on =
        3 * 2 * tensor * 2 * (tensor > 1 ? 2 : 1);  // slices, micro-batches, ranks, segments
    EXPECT_EQ(caches, handed_on);
    EXPECT_EQ(gradients, handed_on);
  }
}

TEST(SlicesOfASequence, AreRefusedWithoutCausalAttentionAndWithFullRecomputation) {
  LoweringInput input = sliced(1);
  input.recompute = Recompute::full;
  EXPECT_THROW(lower(input), std::invalid_argument);
  input = sliced(1);
  input.model = bert("bert", {.layers = 4,
                              .hidden = 64,
                              .ffn = 256,
                              .heads = 4,
                              .vocab = 260,
                              .max_positions = 64,
                              .token_types = 2,
                              .sequence = 64});
  EXPECT_THROW(lower(input), std::invalid_argument);
}

}  // namespace
}  // namespace slipway
