// Steps with narrow products: what their messages, weights and updates take, by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "models/machine/priced_cluster.h"
#include "schedules/bound/estimate.h"
#include "schedules/check/check.h"
#include "schedules/lower/lowering.h"
#include "schedules/lower/static_bytes.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/rules/rules.h"
#include "schedules/time/durations.h"
#include "schedules/time/metrics.h"
#include "schedules/time/replay.h"
#include "schedules/time/work_price.h"
#include "sim/simulate.h"
#include "tests/support/round_gpu.h"

namespace slipway::test {
namespace {

constexpr std::int64_t hidden = 128, ffn = 256, tokens = 64, experts_of_all = 4, per_token = 2;

Step narrow_step(NarrowRecipe recipe, bool experts) {
  LlamaShape shape{
      .layers = 2, .hidden = hidden, .ffn = ffn, .heads = 4, .kv_heads = 4, .vocab = 512, .sequence = tokens};
  if (experts) shape.experts = experts_of_all, shape.experts_per_token = per_token;
  Step step;
  step.model = llama("small", shape);
  step.layout.data = 2, step.layout.zero = 1;
  if (experts) step.layout.expert = 2;
  step.global_batch = 2;
  step.narrow = recipe;
  return step;
}

double bytes_of_message(const Step& step, const std::string& label) {
  TaskGraph graph = lower(step);
  for (TaskId task = 0; task < graph.tasks.size(); ++task)
    if (label_of(graph, task) == label) return graph.work(task).bytes;
  ADD_FAILURE() << "no task " << label;
  return 0;
}

// DeepSeek-V3, section 3.3.3: both directions to experts in 8 bits with scales, both ways back in bfloat16.
TEST(NarrowSteps, SendTokensToExpertsInEightBitsAndBackInTheDtype) {
  Step step = narrow_step(NarrowRecipe::blockwise, true);
  const double numbers = static_cast<double>(tokens * per_token * hidden), narrow = numbers * (1 + 4.0 / 128);
  for (const char* label : {"0F0.L0.dispatch", "0B0.L0.combine_rows", "0F0.L0.combine_rows", "0B0.L0.dispatch"})
    EXPECT_EQ(bytes_of_message(step, label), 2 * numbers) << label;
  step.narrow_habits.dispatches = true;
  for (const char* label : {"0F0.L0.dispatch", "0B0.L0.combine_rows"})
    EXPECT_EQ(bytes_of_message(step, label), narrow) << label;
  for (const char* label : {"0F0.L0.combine_rows", "0B0.L0.dispatch"})
    EXPECT_EQ(bytes_of_message(step, label), 2 * numbers) << label;
}

TEST(NarrowSteps, GatherInputsAndGradientsOfLinearsInEightBits) {
  Step step = narrow_step(NarrowRecipe::tensorwise, false);
  step.layout.tensor = 2, step.layout.sequence_parallel = true;
  step.narrow_habits.gathers_inputs = true;
  const double numbers = static_cast<double>(tokens * hidden);
  EXPECT_EQ(bytes_of_message(step, "0F0.L0.ag1"), numbers);
  EXPECT_EQ(bytes_of_message(step, "0B0.L0.ag1_again"), numbers) << "once more for the weight gradient";
  EXPECT_EQ(bytes_of_message(step, "0B0.L0.rs1"), numbers) << "the gradient";
  EXPECT_EQ(bytes_of_message(step, "0F0.L0.rs1"), 2 * numbers);
  EXPECT_EQ(bytes_of_message(step, "0B0.L0.ag1"), 2 * numbers);
  EXPECT_EQ(bytes_of_message(step, "0F0.head.ag_head"), 2 * numbers);
}

// Of one member: what it gives, and what it gets.
std::pair<double, double> buffers_of_message(const Step& step, const std::string& label) {
  const TaskGraph graph = lower(step);
  for (TaskId task = 0; task < graph.tasks.size(); ++task)
    if (label_of(graph, task) == label)
      return {graph.buffers[graph.inputs[task].front()].bytes, graph.buffers[graph.outputs[task].front()].bytes};
  ADD_FAILURE() << "no task " << label;
  return {};
}

TEST(NarrowSteps, BuffersOfNarrowMessagesAreAsNarrowAsTheMessages) {
  using Bytes = std::pair<double, double>;
  const double numbers = static_cast<double>(tokens * hidden);
  Step step = narrow_step(NarrowRecipe::tensorwise, false);
  step.layout.tensor = 2, step.layout.sequence_parallel = true;
  EXPECT_EQ(buffers_of_message(step, "0F0.L0.ag1"), (Bytes{numbers, 2 * numbers}));
  step.narrow_habits.gathers_inputs = true;
  EXPECT_EQ(buffers_of_message(step, "0F0.L0.ag1"), (Bytes{numbers / 2, numbers}));
  EXPECT_EQ(buffers_of_message(step, "0B0.L0.rs1"), (Bytes{numbers / 2, numbers})) << "the gradient";
  EXPECT_EQ(buffers_of_message(step, "0F0.L0.rs1"), (Bytes{2 * numbers, numbers})) << "sums are in the dtype";
  EXPECT_EQ(buffers_of_message(step, "0B0.L0.ag1"), (Bytes{2 * numbers, numbers}));
  Step routed = narrow_step(NarrowRecipe::blockwise, true);
  routed.narrow_habits.dispatches = true;
  const double rows = numbers * per_token, narrow = rows * (1 + 4.0 / 128);
  EXPECT_EQ(buffers_of_message(routed, "0F0.L0.dispatch"), (Bytes{narrow, narrow}));
  EXPECT_EQ(buffers_of_message(routed, "0B0.L0.combine_rows"), (Bytes{narrow, narrow}));
  EXPECT_EQ(buffers_of_message(routed, "0F0.L0.combine_rows"), (Bytes{2 * rows, 2 * rows}));
}

constexpr double linears = 4.0 * hidden * hidden + 3.0 * hidden * ffn, norms = 2.0 * hidden;

TEST(NarrowSteps, GatherWeightsOfLinearsInEightBitsAndNormsInTheDtype) {
  Step step = narrow_step(NarrowRecipe::delayed, false);
  EXPECT_EQ(bytes_of_message(step, "0.L0.ag_param"), 2 * (linears + norms));
  step.narrow_habits.gathers_weights = true;
  EXPECT_EQ(bytes_of_message(step, "0.L0.ag_param"), linears + 2 * norms);
  step.narrow = NarrowRecipe::mxfp8;
  EXPECT_EQ(bytes_of_message(step, "0.L0.ag_param"), 2 * (linears + norms)) << "through the buffer of gradients";
  step.narrow = NarrowRecipe::delayed, step.layout.zero = 3;
  EXPECT_EQ(bytes_of_message(step, "0F0.L0.ag_param"), linears + 2 * norms);
}

// Beside the weights in bfloat16 lie their rows and columns, where the GPU cannot read one copy both ways.
TEST(NarrowSteps, HoldWeightsInAsManyCopiesAsProductsRead) {
  Step step = narrow_step(NarrowRecipe::none, false);
  const double wide = static_bytes_of(step)[0].weights, all = 2 * linears;
  const auto more = [&](NarrowHabits habits) {
    step.narrow = NarrowRecipe::delayed, step.narrow_habits = habits;
    return static_bytes_of(step)[0].weights - wide;
  };
  EXPECT_EQ(more({}), 2 * all);
  EXPECT_EQ(more({.one_copy = true}), all);
  EXPECT_EQ(more({.gathers_weights = true}), 2 * all - 2 * all) << "in place of those in the dtype";
  EXPECT_EQ(more({.one_copy = true, .gathers_weights = true}), all - 2 * all);
}

double update_seconds_of(const Step& step, const Machine& machine) {
  TaskGraph graph = lower(step);
  for (const Work& work : graph.works)
    if (work.kind == WorkKind::optimizer_step) return compute_seconds(graph, work, machine);
  return 0;
}

// Weights are whole on each rank, whatever ZeRO shards.
TEST(NarrowSteps, CastEachWeightOnceAStepBehindTheUpdate) {
  const Machine machine = round_gpu();
  const double wide = update_seconds_of(narrow_step(NarrowRecipe::none, false), machine);
  Step step = narrow_step(NarrowRecipe::tensorwise, false);
  EXPECT_NEAR(update_seconds_of(step, machine) - wide, 6 * 2 * linears / 1e12, 1e-15);
  step.narrow_habits.one_copy = true;
  EXPECT_NEAR(update_seconds_of(step, machine) - wide, 5 * 2 * linears / 1e12, 1e-15);
  step.narrow_habits = {.gathers_weights = true};
  EXPECT_NEAR(update_seconds_of(step, machine) - wide, 2 * 2 * linears / 1e12, 1e-15);
  step.layout.zero = 3;
  EXPECT_EQ(update_seconds_of(step, machine), wide) << "cast in each pass";
}

TEST(NarrowSteps, RefuseTokensOfEightBitsForProductsThatTakeNone) {
  Step step = narrow_step(NarrowRecipe::none, true);
  step.narrow_habits.dispatches = true;
  ASSERT_EQ(refusals(step).size(), 1U);
  EXPECT_EQ(refusals(step)[0].key, "run.fp8_dispatch");
  step.narrow = NarrowRecipe::blockwise;
  EXPECT_TRUE(legal(step));
  step.layout.dispatcher = Dispatcher::allgather;
  EXPECT_FALSE(legal(step));
}

// Optimizer states in the host's memory.

PricedCluster with_host() {
  PricedCluster cluster;
  cluster.groups = {{round_gpu(), 1, 2}};
  cluster.fabrics = default_fabrics(cluster.groups);
  Machine& machine = cluster.groups[0].machine;
  machine.host_to_device = {"pcie", 2e9, 0, 1};
  machine.device_to_host = {"pcie", 1e9, 0, 1};
  machine.host_memory_bandwidth = 3e9;
  return cluster;
}

// Of a quarter of a rank's half of the parameters: 4 bytes of gradient out, 30 of update, 2 of weights in.
TEST(OptimizerOffload, CopiesGradientsUpdatesOnTheHostAndCopiesWeightsBack) {
  const PricedCluster cluster = with_host();
  Step step = narrow_step(NarrowRecipe::none, false);
  const double held = (2 * (linears + norms) + 2 * 512.0 * hidden + hidden) / 2;
  const double before = update_seconds_of(step, cluster.groups[0].machine);
  step.optimizer.offload_fraction = 0.25;
  TaskGraph graph = lower(step);
  const Durations durations = order_and_price(graph, cluster);
  EXPECT_TRUE(check_graph(graph).empty());
  std::map<std::string, double> seconds;
  std::map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < graph.order.size(); ++i) {
    const std::string label = label_of(graph, graph.order[i]);
    if (label.starts_with("0.opt")) seconds[label] = durations[graph.order[i]], place[label] = i;
  }
  EXPECT_NEAR(seconds["0.opt.gradients"], 0.25 * held * 4 / 1e9, 1e-12);
  EXPECT_NEAR(seconds["0.opt"] - before, 0.25 * held * 30 / 3e9 - 0.25 * held * 30 / 1e12, 1e-12);
  EXPECT_NEAR(seconds["0.opt.weights"], 0.25 * held * 2 / 2e9, 1e-12);
  EXPECT_LT(place["0.opt.gradients"], place["0.opt"]);
  EXPECT_LT(place["0.opt"], place["0.opt.weights"]);
}

TEST(OptimizerOffload, TakesItsShareOfTheStatesFromTheGpusMemory) {
  Step step = narrow_step(NarrowRecipe::none, false);
  const double all = static_bytes_of(step)[0].optimizer;
  step.optimizer.offload_fraction = 1;
  EXPECT_EQ(static_bytes_of(step)[0].optimizer, 0);
  step.optimizer.offload_fraction = 0.25;
  EXPECT_DOUBLE_EQ(static_bytes_of(step)[0].optimizer, 0.75 * all);
}

TEST(OptimizerOffload, IsRefusedWhereTheHostsMemoryIsUnknown) {
  Step step = narrow_step(NarrowRecipe::none, false);
  step.optimizer.offload_fraction = 1;
  PricedCluster cluster = with_host();
  EXPECT_TRUE(refusals(step, cluster).empty());
  cluster.groups[0].machine.host_memory_bandwidth = 0;
  ASSERT_EQ(refusals(step, cluster).size(), 1U);
  EXPECT_EQ(refusals(step, cluster)[0].key, "run.optimizer.offload_fraction");
  EXPECT_NE(refusals(step, cluster)[0].problem.find("host_memory_bandwidth"), std::string::npos);
}

TEST(NarrowSteps, HaveBoundsBelowTheSimulationAndGraphsWithoutViolations) {
  PricedCluster cluster = with_host();
  cluster.groups[0].gpus_per_node = 8;
  cluster.fabrics = default_fabrics(cluster.groups);
  constexpr double rounding = 1 + 1e-9;
  for (const NarrowRecipe recipe : {NarrowRecipe::tensorwise, NarrowRecipe::mxfp8})
    for (const int zero : {1, 2, 3})
      for (const int tensor : {1, 2})
        for (const bool experts : {false, true})
          for (const bool one_copy : {false, true}) {
            if (experts && zero > 1) continue;
            Step step = narrow_step(recipe, experts);
            step.layout.zero = zero, step.layout.tensor = tensor, step.layout.sequence_parallel = tensor > 1;
            step.layout.pipeline = 2, step.global_batch = 8, step.clip_norm = 1;
            step.layout.expert_tensor = experts ? 1 : 0;
            step.narrow_habits = {
                .one_copy = one_copy, .gathers_inputs = true, .gathers_weights = true, .dispatches = experts};
            step.optimizer.offload_fraction = 0.5;
            ASSERT_TRUE(legal(step));
            TaskGraph graph = lower(step);
            const Durations durations = order_and_price(graph, cluster);
            const std::string text = std::string(name_of(recipe)) + " zero " + std::to_string(zero) + " t" +
                                     std::to_string(tensor) + (experts ? " experts" : "");
            const auto violations = check_graph(graph);
            EXPECT_TRUE(violations.empty()) << text << ": " << describe(graph, violations.front());
            const Timeline timeline = sim::simulate(graph, cluster, durations, {}).timeline;
            const StepEstimate estimate = StepEstimator(step, cluster).estimate(step);
            EXPECT_LE(estimate.bound_s, step_time_of(graph, timeline) * rounding) << text;
            double fullest = 0;
            for (const RankMemory& rank : memory_timeline(graph, timeline)) fullest = std::max(fullest, rank.peak);
            EXPECT_LE(estimate.memory_bytes, fullest * rounding) << text;
          }
}

}  // namespace
}  // namespace slipway::test
