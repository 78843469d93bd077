// The norm test's tasks in the task graph: one before each reduction of a gradient over the workers.
// execute_growth_test.cpp tests that they measure the right norms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "schedules/check/check.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/metrics.h"
#include "schedules/time/replay.h"
#include "tests/support/broken_graph.h"

namespace slipway::test {

namespace {

using namespace test;
using testing::HasSubstr;

TaskGraph measuring(const Layout& layout, bool tied = false, const std::string& schedule = "1f1b") {
  Step input;
  input.model = llama(
      "small",
      {.layers = 6, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32, .tied = tied});
  input.layout = layout;
  input.schedule = layout.chunks > 1 ? "interleaved-1f1b" : schedule;
  input.dtype = Dtype::float32;
  input.global_batch = 4 * layout.data;
  input.worker_norms = true;
  TaskGraph graph = lower(input);
  set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1.0)));
  return graph;
}

std::vector<TaskId> tasks_of(const TaskGraph& graph, WorkKind kind) {
  std::vector<TaskId> found;
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    if (graph.work(id).kind == kind) found.push_back(id);
  return found;
}

TEST(WorkerNorms, EveryLayoutThatMeasuresThemIsSound) {
  for (const int tensor : {1, 2})
    for (const int pipeline : {1, 2, 4})
      for (const int zero : {0, 1, 2, 3})
        for (const bool tied : {false, true}) {
          if (zero >= 2 && (tied || tensor > 1)) continue;  // refused: execute_growth_test.cpp
          const TaskGraph graph = measuring(
              {.tensor = tensor, .pipeline = pipeline, .data = 2, .sequence_parallel = tensor > 1, .zero = zero}, tied);
          const auto violations = check_graph(graph);
          ASSERT_TRUE(violations.empty()) << describe(graph, violations.front()) << "tensor " << tensor << " pipeline "
                                          << pipeline << " zero " << zero << " tied " << tied;
        }
  for (const char* schedule : {"gpipe", "chimera", "zb-h1", "zb-h2"}) {
    const TaskGraph graph = measuring({.pipeline = 2, .data = 2}, false, schedule);
    EXPECT_THAT(check_graph(graph), testing::IsEmpty()) << schedule;
  }
}

// Under ZeRO 2 and 3 every micro-batch has its own.
TEST(WorkerNorms, AreOneForEachReductionOnEachRank) {
  for (const int zero : {0, 2}) {
    const TaskGraph graph = measuring({.pipeline = 2, .data = 2, .zero = zero});
    std::size_t reduced = 0;
    for (const TaskId id : tasks_of(graph, WorkKind::grad_reduce)) reduced += members_of(graph, id).size();
    EXPECT_EQ(tasks_of(graph, WorkKind::worker_norm).size(), reduced);
    EXPECT_EQ(reduced, 8u * 2 * (zero == 2 ? 4 : 1)) << "six layers, embedding and head, on two workers";
  }
}

// The executor reduces in place: a later measurement would see the sum.
TEST(WorkerNorms, AreMeasuredBeforeTheReductionStarts) {
  const TaskGraph graph = measuring({.tensor = 2, .data = 2, .sequence_parallel = true, .zero = 1});
  std::set<std::pair<int, int>> measured;  // rank, block
  for (const TaskId id : tasks_of(graph, WorkKind::worker_norm)) {
    const int block = graph.work(id).block;
    bool waits = false;
    for (const TaskId next : graph.successors[id]) {
      const Work& work = graph.work(next);
      waits |= work.kind == WorkKind::grad_reduce && work.block == block;
    }
    EXPECT_TRUE(waits) << label_of(graph, id);
    measured.insert({graph.tasks[id].rank, block});
  }
  EXPECT_EQ(measured.size(), 8u * 4);
}

// One block is measured while later ones are still at their backward: its reduction can overlap them.
TEST(WorkerNorms, DoNotHoldReductionsBackToTheEndOfTheStep) {
  for (const int tensor : {1, 2}) {
    const TaskGraph graph = measuring({.tensor = tensor, .data = 2, .sequence_parallel = tensor > 1});
    const auto order = graph.compute_order[0];
    const auto place = [&](const std::string& label) {
      return std::find(order.begin(), order.end(), task_called(graph, label, 0)) - order.begin();
    };
    EXPECT_LT(place("0.L5.worker_norm"), place(tensor > 1 ? "0B3.L3.attn" : "0B3.L3"));
    EXPECT_LT(place("0.L5.worker_norm"), place("0.L0.worker_norm"));
  }
}

TEST(WorkerNorms, ABlockThatIsNotMeasuredIsFound) {
  TaskGraph graph = measuring({.data = 2});
  change_work(graph, task_called(graph, "0.L2.worker_norm", 1), [](Work& work) { work.block = 2; });
  const auto violations = check_graph(graph);
  ASSERT_FALSE(violations.empty());
  EXPECT_EQ(violations.front().invariant, 6);
  EXPECT_THAT(first(violations), HasSubstr("is reduced 1 times and measured before that"));
}

TEST(WorkerNorms, AnUpdateThatDoesNotWaitForThemIsFound) {
  TaskGraph graph = measuring({.data = 2});
  remove_edge(graph, task_called(graph, "norm_reduce"), task_called(graph, "0.opt", 1));
  const auto violations = check_graph(graph);
  ASSERT_FALSE(violations.empty());
  EXPECT_THAT(first(violations), HasSubstr("though the norms of workers' gradients are measured"));
}

}  // namespace

// The gain of ZB-H2 over ZB-H1: no rank waits inside its own span, so the next step can start while other ranks still
// end this one. A gradient norm over all ranks joins them again and removes the gain.

namespace {

constexpr int p = 4, m = 8;

// F = I = W = 1 on every stage; messages, norms and the optimizer take no time.
double step_time(const char* schedule, double clip_norm) {
  Step input;
  input.model =
      llama("even", {.layers = p, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  input.layout.pipeline = p;
  input.schedule = schedule;
  input.global_batch = m;
  input.clip_norm = clip_norm;
  TaskGraph graph = lower(input);
  Durations durations(std::vector<double>(graph.tasks.size(), 0));
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    if (graph.work(id).kind == WorkKind::segment) durations[id] = 1;
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

}  // namespace slipway::test
