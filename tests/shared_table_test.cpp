#include "schedules/shared_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/graph/checks.h"
#include "schedules/graph/lowering.h"
#include "tests/broken_graph.h"

namespace slipway {
namespace {

using namespace test;

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

// In ZB-V the head's weight gradients come last of all on their rank, behind the embedding's own.
TEST(SharedTable, AReductionThatWaitsForTheEmbeddingsBackwardOnlyIsFound) {
  LoweringInput input;
  input.model = llama("small", {6, 64, 128, 4, 4, 256, 32, true});
  input.layout = {.pipeline = 2, .data = 2};
  input.layout.chunks = 2;
  input.schedule = "zb-v";
  input.shape.sequence = 32;
  input.global_batch = 8;
  TaskGraph graph = lower(input);
  set_global_order(graph, Durations(graph.tasks.size(), 1.0));
  const auto work_of = [&](TaskId id) -> const Work& { return graph.works[static_cast<std::size_t>(graph.tasks[id].work)]; };
  const auto is_of = [&](TaskId id, int block) {
    const Work& work = work_of(id);
    if (work.kind != WorkKind::segment || work.pass == Pass::forward || graph.tasks[id].rank != 0) return false;
    const auto operators = operators_of(graph, work);
    return operators[static_cast<std::size_t>(work.first_op)].block <= block &&
           operators[static_cast<std::size_t>(work.last_op - 1)].block >= block;
  };
  TaskId reduction = 0, of_embedding = 0, of_head = 0;
  for (const TaskId id : graph.order) {
    if (is_of(id, 0)) of_embedding = id;
    if (is_of(id, 7)) of_head = id;
    if (work_of(id).kind == WorkKind::grad_reduce && work_of(id).block == 0 && members_of(graph, id).front() == 0) reduction = id;
  }
  ASSERT_TRUE(check_graph(graph).empty());
  remove_edge(graph, of_head, reduction);
  add_edge(graph, of_embedding, reduction);
  EXPECT_THAT(first(check_graph(graph)), testing::HasSubstr("the last backward of its block"));
}

}  // namespace
}  // namespace slipway
