// Periodic steps, of which only some periods are simulated, against the same steps whole.
#include "scenarios/predict/simulated_step.h"
#include "scenarios/predict/load_scenario.h"

#include <gtest/gtest.h>

#include "scenarios/predict/prediction.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

Scenario step_of(const std::vector<std::string>& overrides) {
  std::vector<std::string> all{"model.layers=8", "model.hidden=512", "model.ffn=1024",
                               "model.heads=8",  "model.kv_heads=8", "model.sequence=512"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  LoadResult loaded = load_scenario(SLIPWAY_SOURCE_DIR "/scenarios/studies/scale/llama-8b-64xh100.yaml", all);
  EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  return std::move(loaded.scenario);
}

struct Pair {
  SimulatedStep part, whole;
};
Pair both(const Scenario& scenario) {
  StepOptions options;
  Pair pair{simulated_step(scenario, options), {}};
  options.periodic = false;
  pair.whole = simulated_step(scenario, options);
  return pair;
}

void expect_same(const Pair& pair, const std::string& text) {
  const Prediction part = prediction_of(pair.part), whole = prediction_of(pair.whole);
  EXPECT_NEAR(part.step.step_time_s, whole.step.step_time_s, 1e-9 * whole.step.step_time_s) << text;
  EXPECT_NEAR(part.step.makespan_s, whole.step.makespan_s, 1e-9 * whole.step.makespan_s) << text;
  EXPECT_NEAR(part.step.mfu, whole.step.mfu, 1e-9) << text;
  EXPECT_NEAR(part.step.compute_share, whole.step.compute_share, 1e-9) << text;
  // Hosts gain on their devices with each period: at the end of a step of fewer periods a message is issued later, and
  // a little of the waiting for it counts as the host's.
  constexpr double lead = 1e-4;
  EXPECT_NEAR(part.step.exposed_comm_share, whole.step.exposed_comm_share, lead) << text;
  EXPECT_NEAR(part.step.bubble_share, whole.step.bubble_share, lead) << text;
  ASSERT_EQ(part.memory.size(), whole.memory.size());
  for (std::size_t rank = 0; rank < whole.memory.size(); ++rank) {
    EXPECT_NEAR(part.memory[rank].use.peak, whole.memory[rank].use.peak, 1) << text;
    EXPECT_EQ(part.memory[rank].use.peak_task, whole.memory[rank].use.peak_task) << text << " rank " << rank;
  }
}

TEST(SimulatedStep, OfAFewPeriodsIsTheWholeOneOverAGridOfLayoutsAndSchedules) {
  int steps = 0, in_part = 0;
  for (const char* schedule : {"1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zb-v", "dualpipe-v", "chimera"})
    for (const auto& [tensor, pipeline, data] : {std::array{8, 4, 2}, std::array{2, 4, 8}, std::array{1, 2, 32}})
      for (const int zero : {0, 1, 2, 3}) {
        const std::string name = schedule, clip = zero % 2 == 0 ? "0" : "1";
        if (name == "chimera" && (zero > 1 || data > 2)) continue;  // all its ranks are simulated
        const Scenario scenario =
            step_of({"schedule.name=" + name, "layout.tensor=" + std::to_string(tensor),
                     "layout.pipeline=" + std::to_string(pipeline), "layout.data=" + std::to_string(data),
                     "layout.sequence_parallel=" + std::string(tensor > 1 ? "true" : "false"),
                     "layout.zero=" + std::to_string(zero), "run.clip_norm=" + clip,
                     "schedule.global_batch=" + std::to_string(96 * data)});
        const Pair pair = both(scenario);
        ++steps;
        in_part += pair.part.prepared.periodic ? 1 : 0;
        expect_same(pair, name + " t" + std::to_string(tensor) + " p" + std::to_string(pipeline) + " d" +
                              std::to_string(data) + " z" + std::to_string(zero) + "");
        if (!pair.part.prepared.periodic) std::printf("whole: %s t%d p%d z%d\n", schedule, tensor, pipeline, zero);
      }
  EXPECT_GT(4 * in_part, 3 * steps);
}

TEST(SimulatedStep, CostsTheSameForAnyNumberOfMicroBatches) {
  const auto tasks_of = [](const char* batch) {
    const Scenario scenario = step_of({std::string("schedule.global_batch=") + batch});
    return simulated_step(scenario, StepOptions{}).prepared.graph.tasks.size();
  };
  EXPECT_EQ(tasks_of("2400"), tasks_of("24000"));
}

TEST(SimulatedStep, IsSimulatedWholeWhereNothingRepeats) {
  // Two replicas on machines of their own: each has a period, and they meet only at the end of the step.
  Scenario scenario = step_of(
      {"cluster.nodes=4", "layout.tensor=8", "layout.pipeline=2", "layout.data=2", "schedule.global_batch=240"});
  scenario.cluster.groups[0].machine.kernels = {};  // priced by shares of peak: no host sets the pace of both
  NodeGroup slow = scenario.cluster.groups[0];
  slow.nodes = 1;
  for (double& flops : slow.machine.peak_flops) flops *= 0.7;  // of a slower clock
  NodeGroup fast = scenario.cluster.groups[0];
  fast.nodes = 1;
  scenario.cluster.groups = {fast, slow, fast, slow};
  scenario.cluster.fabrics = default_fabrics(scenario.cluster.groups);
  scenario.machine_files.resize(4);
  const Pair pair = both(scenario);
  EXPECT_FALSE(pair.part.prepared.periodic);
  EXPECT_EQ(pair.part.prepared.graph.micro_batches, 120);
  expect_same(pair, "two speeds");
}

}  // namespace
}  // namespace slipway::test
