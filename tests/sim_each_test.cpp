// Several numbers of steps simulated at the same time, each in a process of its own.
#include <gtest/gtest.h>

#include "schedules/graph/durations.h"
#include "sim/simulate.h"
#include "tests/hand_graph.h"

namespace slipway {
namespace {

struct Step {
  TaskGraph graph;
  Cluster cluster;
  Durations durations;
};

// More tasks than are worth a thread (schedules/graph/parallel.h).
Step large_step() {
  LoweringInput in;
  in.model = llama(
      "llama", {.layers = 16, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  in.layout.tensor = 2, in.layout.pipeline = 2, in.layout.data = 2;
  in.shape.sequence = in.model.sequence;
  in.shape.sharding = sharding_of(in.layout);
  in.global_batch = 600;
  Step step{lower(in), hand_cluster(2, 4, 1e9, 1e-6), {}};
  for (TaskId id = 0; id < step.graph.tasks.size(); ++id)
    step.durations.push_back(1e-4 * static_cast<double>(1 + id % 7));
  set_global_order(step.graph, step.durations);
  EXPECT_GT(step.graph.tasks.size(), 50000u);
  return step;
}

TEST(StepsAtOnce, AreEachWhatTheyAreByThemselves) {
  const Step step = large_step();
  const std::vector<int> steps{3, 1, 2};
  SimulationOptions options;
  const auto together = simulate_each(step.graph, step.cluster, step.durations, options, steps);
  ASSERT_EQ(together.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    options.steps = steps[i];
    const Simulation alone = simulate(step.graph, step.cluster, step.durations, options);
    EXPECT_EQ(together[i].timeline.steps, steps[i]);
    EXPECT_EQ(together[i].timeline.start, alone.timeline.start);
    EXPECT_EQ(together[i].timeline.end, alone.timeline.end);
    EXPECT_EQ(together[i].timeline.makespan_s, alone.timeline.makespan_s);
    EXPECT_EQ(together[i].tasks, alone.tasks);
    EXPECT_EQ(together[i].flows, alone.flows);
  }
}

TEST(StepsAtOnce, InterruptedTellHowFarTheFirstCame) {
  const Step step = large_step();
  SimulationOptions options;
  options.interrupted = [] { return true; };
  try {
    simulate_each(step.graph, step.cluster, step.durations, options, {100, 90});
    FAIL() << "was not interrupted";
  } catch (const SimulationInterrupted& stop) {
    EXPECT_EQ(stop.partial.steps, 100);
  }
}

TEST(StepsAtOnce, TellTheProgressOfTheFirstOnly) {
  const Step step = large_step();
  SimulationOptions options;
  double last = 0;
  options.progress = [&](double share) {
    EXPECT_GE(share, last);
    last = share;
  };
  simulate_each(step.graph, step.cluster, step.durations, options, {30, 2});
  EXPECT_LE(last, 1);
}

}  // namespace
}  // namespace slipway
