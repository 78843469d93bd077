// Whole training steps: the simulator against the list replay, which does not use SimGrid, and against the closed forms
// of the schedules.
#include <gtest/gtest.h>

#include "models/machine/priced_cluster.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

Step small_llama(int tensor, int pipeline, int data, int chunks, int zero) {
  Step input;
  input.model =
      llama("small", {.layers = 8, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  input.layout.tensor = tensor;
  input.layout.pipeline = pipeline;
  input.layout.data = data;
  input.layout.chunks = chunks;
  input.layout.zero = zero;
  input.layout.sequence_parallel = tensor > 1;
  input.schedule = chunks > 1 ? "interleaved-1f1b" : "1f1b";
  input.micro_batch = 2;
  input.dtype = Dtype::float32;
  input.global_batch = 16 * data;
  return input;
}

// Forward 1 s, backward 2 s; communication `message_s`, everything else 0.
Durations given_durations(const TaskGraph& graph, double message_s) {
  Durations durations(std::vector<double>(graph.tasks.size(), 0));
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Work& work = graph.work(id);
    if (work.kind == WorkKind::segment) durations[id] = work.pass == Pass::forward ? 1 : 2;
    if (graph.tasks[id].communicator != none) durations[id] = message_s;
  }
  return durations;
}

Simulation simulated(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations, int steps) {
  SimulationOptions options;
  options.steps = steps;
  options.collectives = CollectiveFidelity::closed_form;
  return simulate(graph, cluster, durations, options);
}

TEST(SimulatedStep, GPipeAnd1F1BTakeNPlusDMinusOneTimesForwardAndBackwardWithoutCommunication) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    for (const int pipeline : {2, 4, 8}) {
      Step input = small_llama(1, pipeline, 1, 1, 0);
      input.schedule = schedule;
      TaskGraph graph = lower(input);
      for (Work& work : graph.works) work.bytes = 0;
      const Durations durations = given_durations(graph, 0);
      set_global_order(graph, durations);
      const Simulation result = simulated(graph, hand_cluster(pipeline, 1, 1e9, 0), durations, 1);
      EXPECT_DOUBLE_EQ(result.timeline.makespan_s, (graph.micro_batches + pipeline - 1) * 3.0) << schedule << pipeline;
    }
  }
}

// Every message on a link that carries one at a time takes its closed form, so durations and flows agree. Each rank has
// one port per neighbour and direction here.
TEST(SimulatedStep, IsTheListReplayWhenNothingContends) {
  for (const int tensor : {1, 2})
    for (const int pipeline : {1, 2, 4})
      for (const int data : {1, 2})
        for (const int chunks : {1, 2})
          for (const int zero : {0, 1}) {
            if (chunks > 1 && pipeline == 1) continue;
            TaskGraph graph = lower(small_llama(tensor, pipeline, data, chunks, zero));
            for (Work& work : graph.works)
              if (work.kind == WorkKind::transfer) work.bytes = 0;  // flows may share ports; closed forms do not
            const Durations durations = given_durations(graph, 0.125);
            set_global_order(graph, durations);
            const Timeline expected = replay(graph, durations, 3);
            const Timeline timeline =
                simulated(graph, hand_cluster(rank_count(graph.step.layout), 1, 1e9, 0), durations, 3).timeline;
            ASSERT_EQ(timeline.start.size(), expected.start.size());
            for (std::size_t i = 0; i < expected.start.size(); ++i) {
              ASSERT_NEAR(timeline.start[i], expected.start[i], 1e-9)
                  << label_of(graph, static_cast<TaskId>(i % graph.tasks.size()));
              ASSERT_NEAR(timeline.end[i], expected.end[i], 1e-9);
            }
            EXPECT_NEAR(timeline.makespan_s, expected.makespan_s, 1e-9);
          }
}

TEST(SimulatedStep, IsTheListReplayWithTransfersAsFlowsThatDoNotMeet) {
  // Two stages: one message at a time per direction.
  TaskGraph graph = lower(small_llama(1, 2, 1, 1, 0));
  const double bandwidth = 1e6, latency = 1e-3;
  Durations durations = given_durations(graph, 0);
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    if (graph.tasks[id].kind == TaskKind::transfer) durations[id] = latency + graph.work(id).bytes / bandwidth;
  set_global_order(graph, durations);
  const Timeline expected = replay(graph, durations, 3);
  const Simulation result = simulated(graph, hand_cluster(2, 1, bandwidth, latency), durations, 3);
  EXPECT_GT(result.flows, 0U);
  for (std::size_t i = 0; i < expected.start.size(); ++i) {
    ASSERT_NEAR(result.timeline.start[i], expected.start[i], 1e-9);
    ASSERT_NEAR(result.timeline.end[i], expected.end[i], 1e-9);
  }
}

TEST(SimulatedStep, OfAPipelineRepeatsAfterNPlusDMinusOneTimesForwardAndBackward) {
  // The first stage ends last and starts first, so each rank's next step is the same step shifted by the makespan.
  for (const int pipeline : {1, 2, 4}) {
    TaskGraph graph = lower(small_llama(1, pipeline, 1, 1, 0));
    for (Work& work : graph.works) work.bytes = 0;
    const Durations durations = given_durations(graph, 0);
    set_global_order(graph, durations);
    const Timeline timeline = simulated(graph, hand_cluster(pipeline, 1, 1e9, 0), durations, 3).timeline;
    const std::size_t tasks = graph.tasks.size();
    for (const Lane& lane : lanes_of(graph)) {
      if (lane.communicator != none) continue;
      const std::size_t second = tasks + lane.tasks.front(), third = second + tasks;
      EXPECT_DOUBLE_EQ(timeline.start[third] - timeline.start[second], (graph.micro_batches + pipeline - 1) * 3.0)
          << "rank " << lane.rank << " of " << pipeline;
    }
  }
}

}  // namespace
}  // namespace slipway::test
