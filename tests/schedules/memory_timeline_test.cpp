// The parts of a timeline's peak.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "schedules/draw/timeline_trace.h"
#include "schedules/lower/lowering.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {

namespace {

RankMemory first_rank(Step input) {
  input.model =
      llama("small", {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 2, .vocab = 256, .sequence = 32});
  input.global_batch = 8;
  TaskGraph graph = lower(input);
  Durations durations(graph.tasks.size());
  for (TaskId id = 0; id < graph.tasks.size(); ++id) durations[id] = graph.tasks[id].communicator == none ? 1e-3 : 1e-6;
  set_global_order(graph, durations);
  return memory_timeline(graph, replay(graph, durations)).front();
}

// True if a segment saves for its backward. It then keeps its inputs there, from its start.
bool saves(const TaskGraph& graph, TaskId task) {
  const auto written = graph.outputs[task];
  return std::any_of(written.begin(), written.end(),
                     [&](BufferId b) { return graph.buffers[b].kind == BufferKind::saved; });
}

double fullest_moment(const TaskGraph& graph, const Timeline& timeline, int rank) {
  struct Life {
    double begin, end, bytes;
  };
  std::vector<Life> lives;
  for (BufferId b = 0; b < graph.buffers.size(); ++b) {
    const Buffer& buffer = graph.buffers[b];
    if (buffer.rank != rank || buffer.writer == none) continue;
    const auto writer = static_cast<TaskId>(buffer.writer);
    TaskId last = writer;
    for (TaskId task = 0; task < graph.tasks.size(); ++task)
      if (std::count(graph.inputs[task].begin(), graph.inputs[task].end(), b) > 0 &&
          timeline.end[task] > timeline.end[last])
        last = task;
    const bool handed_over = buffer.kind == BufferKind::value && last != writer && saves(graph, last);
    lives.push_back({timeline.start[writer], handed_over ? timeline.start[last] : timeline.end[last], buffer.bytes});
  }
  double most = 0;
  for (const Life& moment : lives) {
    double alive = 0;
    for (const Life& life : lives)
      if (life.begin <= moment.begin && moment.begin < std::max(life.begin, life.end)) alive += life.bytes;
    most = std::max(most, alive);
  }
  return most;
}

TEST(MemoryTimelineParts, SumToThePeakInEveryKindOfLayout) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
    for (const int zero : {0, 1, 2, 3})
      for (const int pipeline : {1, 2}) {
        Step input;
        input.layout.tensor = 2;
        input.layout.data = 2;
        input.layout.pipeline = pipeline;
        input.layout.zero = zero;
        input.recompute = recompute;
        input.kernels = Kernels::torch;
        const RankMemory memory = first_rank(input);
        EXPECT_DOUBLE_EQ(sum(memory.parts), memory.peak);
        EXPECT_EQ(memory.parts[MemoryPart::layer_inputs] > 0, recompute == Recompute::full);
      }
}

// The peak of every rank against a count of live buffers at each write, from a writer's start to the last reader's end.
// Tensor peers and replicas do the same at the same time in one case, and no two ranks do in the other.
TEST(MemoryTimeline, OfEachRankIsWhatItsBuffersHoldAtTheFullestMoment) {
  Step input;
  input.model =
      llama("small", {.layers = 2, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 2, .vocab = 256, .sequence = 32});
  input.layout.tensor = input.layout.pipeline = 2;
  input.layout.data = 17;  // more ranks than are compared together
  input.global_batch = 34;
  TaskGraph graph = lower(input);
  for (const double spread : {0.0, 0.3}) {
    Durations durations(graph.tasks.size());
    for (TaskId id = 0; id < graph.tasks.size(); ++id)
      durations[id] = 1e-3 * (1 + spread * static_cast<double>(id * 2654435761U % 1000003) / 1000003);
    set_global_order(graph, durations);
    const Timeline timeline = replay(graph, durations);
    const std::vector<RankMemory> memory = memory_timeline(graph, timeline);
    for (std::size_t rank = 0; rank < memory.size(); ++rank)
      EXPECT_DOUBLE_EQ(memory[rank].activations_peak, fullest_moment(graph, timeline, static_cast<int>(rank))) << rank;
  }
}

// 2 micro-batches of 2 layers in flight on the first of two ranks; each keeps 5 bytes a score in bf16
// (Korthikanti 2022), of s²·heads/tensor scores.
TEST(MemoryTimelineParts, CountTheScoresOfMicroBatchesInFlight) {
  Step input;
  input.layout.pipeline = 2;
  input.layout.tensor = 2;
  input.kernels = Kernels::torch;
  EXPECT_DOUBLE_EQ(first_rank(input).parts[MemoryPart::scores], 2 * 2 * 5.0 * 32 * 32 * 4 / 2);
  input.recompute = Recompute::selective;
  EXPECT_DOUBLE_EQ(first_rank(input).parts[MemoryPart::scores], 0);
}

// Full recompute: the input of each layer of each micro-batch in flight (2 bytes, b·s·h numbers), and one
// layer's own parts.
TEST(MemoryTimelineParts, OfFullRecomputeAreInputsAndOneLayer) {
  Step input;
  input.layout.pipeline = 2;
  const double mlp_of_all = first_rank(input).parts[MemoryPart::mlp];
  input.recompute = Recompute::full;
  const RankMemory memory = first_rank(input);
  EXPECT_DOUBLE_EQ(memory.parts[MemoryPart::mlp], mlp_of_all / 4);
  EXPECT_NEAR(memory.parts[MemoryPart::layer_inputs], 2 * 2 * 2.0 * 32 * 64, 2.0 * 32 * 64);
}

TEST(MemoryTimelineParts, OfZero3AreGatheredWeights) {
  Step input;
  input.layout.data = 2;
  input.layout.zero = 3;
  EXPECT_GT(first_rank(input).parts[MemoryPart::gathered_weights], 0);
}

// A block's gradients wait for their reduction behind at most one other's, as in DeepSpeed's and FSDP2's two buffers.
// However slow the network is, they do not pile up over a step, and a larger batch needs no more.
TEST(MemoryTimelineParts, OfZero2And3AreUnreducedGradientsOfTwoBlocksHoweverSlowTheNetwork) {
  for (const int zero : {2, 3})
    for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "interleaved-1f1b"})
      for (const std::int64_t batch : {16, 64}) {
        Step input;
        input.model = llama(
            "small", {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 2, .vocab = 256, .sequence = 32});
        input.schedule = schedule;
        input.layout.data = 2;
        input.layout.pipeline = 2;
        input.layout.chunks = schedule == std::string("interleaved-1f1b") ? 2 : 1;
        input.layout.zero = zero;
        input.global_batch = batch;
        TaskGraph graph = lower(input);
        Durations durations(graph.tasks.size());
        double largest = 0;
        for (TaskId id = 0; id < graph.tasks.size(); ++id) {
          const Work& work = graph.work(id);
          durations[id] = work.kind == WorkKind::grad_reduce ? 1 : 1e-3;
          if (work.kind == WorkKind::grad_reduce) largest = std::max(largest, work.bytes);
        }
        set_global_order(graph, durations);
        const Timeline timeline = replay(graph, durations);
        TaskGraph only_buckets = graph;
        for (Buffer& buffer : only_buckets.buffers)
          if (buffer.kind != BufferKind::bucket) buffer.bytes = 0;
        const double most = fullest_moment(only_buckets, timeline, 0);
        EXPECT_GT(most, largest) << "one is made while another is reduced";
        EXPECT_LE(most, 2 * largest) << schedule << " zero " << zero << " batch " << batch;
      }
}

}  // namespace

// A rank's memory over time, as the records of a predicted trace have it.

namespace {

struct Planned {
  TaskGraph graph;
  Timeline timeline;
};
Planned planned(Step input, int steps = 1) {
  Planned made{lower(input), {}};
  Durations durations(made.graph.tasks.size());
  for (TaskId id = 0; id < made.graph.tasks.size(); ++id)
    durations[id] = made.graph.tasks[id].communicator == none ? 1e-3 : 1e-5;
  set_global_order(made.graph, durations);
  made.timeline = replay(made.graph, durations, steps);
  return made;
}

// Two tasks of a second each on one rank. 100 bytes live in both, 30 in the second alone.
TEST(MemoryCurve, GivesBackWhatEndsBeforeItTakesWhatStartsAndTellsTheMostMeanwhile) {
  TaskGraph graph;
  graph.works.resize(1);
  graph.tasks = {{TaskKind::compute, 0, none, 0, 0, 0},
                 {TaskKind::compute, 0, none, 0, 0, 0},
                 {TaskKind::compute, 0, none, 0, 0, 0}};
  graph.buffers = {
      {BufferKind::saved, 0, 0, 100, 0}, {BufferKind::saved, 0, 0, 30, 1}, {BufferKind::saved, 0, 0, 7, 2}};
  graph.inputs = {{0, 0, 1, 1}, {0}};  // the second task reads the first buffer
  graph.outputs = {{0, 1, 2, 3}, {0, 1, 2}};
  graph.static_bytes = {{1000, 0, 0}};
  const Timeline timeline{{0, 1, 2}, {1, 2, 3}, 1};
  const BufferLives lives(graph, timeline);
  const Rows rows = lives.by_rank();
  const MemoryCurve curve(graph, lives, rows[0], 1000);
  const auto expect = [&](double start, double end, double at_end, double most) {
    const MemoryCurve::Use use = curve.during(start, end);
    EXPECT_EQ(use.at_end, at_end) << start << " to " << end;
    EXPECT_EQ(use.most, most) << start << " to " << end;
  };
  expect(0, 1, 1100, 1100);
  expect(1, 2, 1000, 1130);  // both are over, and what the third takes is not there yet
  expect(2, 3, 1000, 1007);
  expect(0.5, 1.5, 1130, 1130);
  expect(-1, -0.5, 1000, 1000);
}

// The records show task by task what the header's peak of the rank is.
TEST(MemoryCurve, OfATraceHasThePeakOfTheTimeline) {
  std::vector<Step> inputs{with_layout(tiny_llama(4, false), {.tensor = 2, .pipeline = 2, .sequence_parallel = true}),
                           with_layout(tiny_llama(4, true), {.data = 2, .zero = 3}),
                           with_layout(tiny_llama(4, false), {.pipeline = 2, .data = 2, .zero = 2})};
  inputs.front().recompute = Recompute::full;
  inputs.back().schedule = "zb-h1";
  for (const Step& input : inputs) {
    const Planned made = planned(input);
    const std::vector<RankMemory> expected = memory_timeline(made.graph, made.timeline);
    std::map<int, double> most;
    for (const TraceRecord& record : trace_of(made.graph, made.timeline, "replay").records) {
      EXPECT_LE(record.memory_bytes, record.memory_peak_bytes) << record.label;
      double& peak = most[record.rank];
      peak = std::max(peak, record.memory_peak_bytes);
    }
    ASSERT_EQ(most.size(), expected.size());
    for (std::size_t rank = 0; rank < expected.size(); ++rank)
      EXPECT_DOUBLE_EQ(most[static_cast<int>(rank)], expected[rank].peak) << input.schedule << ", rank " << rank;
  }
}

// 1F1B: the first stage holds one micro-batch more after each of its warm-up forwards, and none at the end of the step.
TEST(MemoryCurve, GrowsWithEachForwardOfTheWarmUpAndIsBackAtTheEndOfEveryStep) {
  const Planned made = planned(with_layout(tiny_llama(4, false), {.pipeline = 4}), 2);
  const StaticBytes& fixed = made.graph.static_bytes.front();
  const double held = fixed.weights + fixed.gradients + fixed.optimizer;
  std::map<std::string, double> first, second;
  for (const TraceRecord& record : trace_of(made.graph, made.timeline, "replay").records)
    if (record.rank == 0) (record.step == 0 ? first : second)[record.label] = record.memory_bytes;
  const double one = first.at("0F0") - held;
  EXPECT_GT(one, 0);
  for (int micro_batch = 1; micro_batch < 4; ++micro_batch)
    EXPECT_GT(first.at("0F" + std::to_string(micro_batch)), held + 0.9 * one * (micro_batch + 1)) << micro_batch;
  EXPECT_DOUBLE_EQ(first.at("0.opt"), held);
  for (const auto& [label, bytes] : first) EXPECT_DOUBLE_EQ(second.at(label), bytes) << label;
}

}  // namespace

}  // namespace slipway::test
