#include "schedules/shared_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/graph/checks.h"
#include "schedules/graph/lowering.h"
#include "tests/broken_graph.h"

namespace slipway {
namespace {

using namespace test;

// On rank 0, which has embedding and head: the last backward tasks of the two, and the reduction of what they add up.
struct Ends {
  TaskId last = 0, before = 0, reduction = 0;
  bool head_is_last = false;
};
Ends ends_of(const TaskGraph& graph) {
  const auto work_of = [&](TaskId id) -> const Work& { return graph.works[static_cast<std::size_t>(graph.tasks[id].work)]; };
  const auto is_of = [&](TaskId id, int block) {
    const Work& work = work_of(id);
    if (work.kind != WorkKind::segment || work.pass == Pass::forward || graph.tasks[id].rank != 0) return false;
    const auto operators = operators_of(graph, work);
    return operators[static_cast<std::size_t>(work.first_op)].block <= block &&
           operators[static_cast<std::size_t>(work.last_op - 1)].block >= block;
  };
  Ends ends;
  for (const TaskId id : graph.order) {
    if (work_of(id).kind == WorkKind::grad_reduce && work_of(id).block == 0 && members_of(graph, id).front() == 0) ends.reduction = id;
    const bool of_head = is_of(id, 7);
    if (!of_head && !is_of(id, 0)) continue;
    if (of_head != ends.head_is_last) ends.before = ends.last;
    ends.last = id;
    ends.head_is_last = of_head;
  }
  return ends;
}

// Llama 3.2 1B as published.
LoweringInput llama_1b() {
  LoweringInput input;
  input.model = llama("llama-3.2-1b", {.layers = 16,
                                       .hidden = 2048,
                                       .ffn = 8192,
                                       .heads = 32,
                                       .kv_heads = 8,
                                       .vocab = 128256,
                                       .sequence = 128,
                                       .tied = true});
  input.shape.sequence = 128;
  input.shape.dtype = Dtype::float32;
  return input;
}

constexpr double published = 1235814400;  // parameters
constexpr double table = 128256.0 * 2048;

double parameters_held(const LoweringInput& input) {
  double bytes = 0;
  for (const StaticBytes& of_rank : static_bytes_of(input)) bytes += of_rank.weights;
  return bytes / 4 * input.layout.tensor;
}

TEST(SharedTable, OneStageHoldsThePublishedParametersOfLlama32) {
  LoweringInput input = llama_1b();
  EXPECT_EQ(parameters_held(input), published);
  input.layout.tensor = 2;
  EXPECT_EQ(parameters_held(input), published + 33 * 2048) << "norms are on both tensor ranks";
}

TEST(SharedTable, AVOfStagesHoldsThemOnceAndTwoEndsHoldTheTableTwice) {
  LoweringInput input = llama_1b();
  input.layout.pipeline = 2;
  input.global_batch = 4;
  EXPECT_EQ(parameters_held(input), published + table);
  input.layout.chunks = 2;
  for (const char* schedule : {"zb-v", "dualpipe-v"}) {
    input.schedule = schedule;
    EXPECT_EQ(parameters_held(input), published) << schedule;
  }
}

TEST(SharedTable, ShardedGradientsKeepTwo) {
  LoweringInput input = llama_1b();
  input.layout.zero = 2;
  EXPECT_EQ(parameters_held(input), published) << "one replica shards nothing";
  input.layout.data = 2;
  input.global_batch = 2;
  EXPECT_EQ(parameters_held(input), published + table);
}

TEST(SharedTable, IsReducedAndUpdatedOnce) {
  const auto bytes_of_kind = [](const TaskGraph& graph, WorkKind kind, int block) {
    double bytes = 0;
    for (const Work& work : graph.works)
      if (work.kind == kind && work.block == block) bytes += work.bytes;
    return bytes;
  };
  const TaskGraph graph = sound({.data = 2, .tied = true, .clip_norm = 1});
  EXPECT_TRUE(check_graph(graph).empty());
  EXPECT_EQ(bytes_of_kind(graph, WorkKind::grad_reduce, 0), 256 * 64 * 4.0);
  EXPECT_EQ(bytes_of_kind(graph, WorkKind::grad_reduce, 7), 64 * 4.0) << "the last norm alone";
  EXPECT_EQ(bytes_of_kind(graph, WorkKind::tied_grad_reduce, 0), 0);
  double updated = 0;
  for (const Work& work : graph.works)
    if (work.kind == WorkKind::optimizer_step) updated += work.elements;
  EXPECT_EQ(updated, static_cast<double>(parameter_count(graph.model)));
}

TEST(SharedTable, StepsOfVSchedulesAreSound) {
  for (const char* schedule : {"zb-v", "dualpipe-v"})
    for (const int zero : {0, 1}) {
      LoweringInput input;
      input.model = llama("small", {6, 64, 128, 4, 4, 256, 32, true});
      input.layout = {.tensor = 2, .pipeline = 2, .data = 2};
      input.layout.chunks = 2, input.layout.zero = zero;
      input.schedule = schedule;
      input.shape.sequence = 32;
      input.clip_norm = 1;
      input.global_batch = 8;
      TaskGraph graph = lower(input);
      set_global_order(graph, Durations(graph.tasks.size(), 1.0));
      for (const Violation& violation : check_graph(graph)) ADD_FAILURE() << schedule << zero << describe(graph, violation);
    }
}

// A reduction that waits for the one that is done first would run while the table's gradient still grows. (In all built-in
// schedules that is the head.)
TEST(SharedTable, AReductionThatWaitsForOneOfTheTwoOnlyIsFound) {
  for (const char* schedule : {"zb-v", "dualpipe-v"}) {
    for (const int pipeline : {1, 2, 3}) {
      LoweringInput input;
      input.model = llama("small", {6, 64, 128, 4, 4, 256, 32, true});
      input.layout = {.pipeline = pipeline, .data = 2};
      input.layout.chunks = pipeline == 1 ? 1 : 2;
      input.schedule = pipeline == 1 ? "1f1b" : schedule;
      input.shape.sequence = 32;
      input.global_batch = 16;
      TaskGraph graph = lower(input);
      set_global_order(graph, Durations(graph.tasks.size(), 1.0));
      ASSERT_TRUE(check_graph(graph).empty());
      const Ends ends = ends_of(graph);
      remove_edge(graph, ends.last, ends.reduction);
      add_edge(graph, ends.before, ends.reduction);
      EXPECT_THAT(first(check_graph(graph)), testing::HasSubstr("the last backward of its block")) << schedule << pipeline;
    }
  }
}

}  // namespace
}  // namespace slipway
