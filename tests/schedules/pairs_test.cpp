// Pairs of a forward and a backward: the order of the compute lane, what it hides, and what it leaves as it was.
#include "schedules/lower/pairs.h"
#include "models/machine/priced_cluster.h"
#include "schedules/lower/lowering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "schedules/bound/estimate.h"
#include "schedules/check/check.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/rules/rules.h"
#include "schedules/time/beside.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/metrics.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"
#include "tests/support/round_gpu.h"

namespace slipway::test {
namespace {

// Two nodes of four GPUs; all-to-alls between the nodes are slow.
PricedCluster two_nodes() {
  PricedCluster cluster;
  cluster.name = "two nodes";
  cluster.groups = {{round_gpu(), 2, 4}};
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

// One layer per stage, experts divided among all replicas.
Step with_experts(const std::string& schedule, int pipeline, int chunks, int data, int micro_batches) {
  Step step;
  step.model = llama("experts", {.layers = std::int64_t{pipeline} * chunks,
                                 .hidden = 256,
                                 .ffn = 512,
                                 .heads = 4,
                                 .kv_heads = 4,
                                 .vocab = 256,
                                 .sequence = 256,
                                 .experts = 8,
                                 .experts_per_token = 2});
  step.layout = {.pipeline = pipeline, .chunks = chunks, .data = data, .expert = data};
  step.schedule = schedule;
  step.global_batch = std::int64_t{data} * micro_batches;
  return step;
}

TaskGraph lowered(const Step& step) {
  TaskGraph graph = lower(step);
  set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1.0)));
  return graph;
}

std::vector<std::string> compute_labels(const TaskGraph& graph, int rank) {
  std::vector<std::string> labels;
  for (const TaskId task : graph.compute_order[rank]) labels.push_back(label_of(graph, task));
  return labels;
}

// Two nodes whose network has this share of its bandwidth.
PricedCluster with_network(double share) {
  PricedCluster cluster = two_nodes();
  cluster.fabrics.back().bandwidth *= share;
  return cluster;
}

double simulated_step_s(const Step& step, const PricedCluster& cluster) {
  TaskGraph graph = lower(step);
  const Durations durations = order_and_price(graph, cluster);
  return step_time_of(graph, simulate(graph, cluster, durations, {}).timeline);
}

TEST(Pairs, AlternateTheSegmentsOfTheForwardAndTheBackward) {
  const TaskGraph graph = lowered(with_experts("1f1b-merged", 1, 1, 2, 4));
  std::string passes;  // of the second pair
  for (const std::string& label : compute_labels(graph, 0))
    if (label.starts_with("0F2") || label.starts_with("0B1")) passes += label[1];
  EXPECT_EQ(passes, "FBFBFB");
}

TEST(Pairs, ChangeNeitherTasksNorWhatTheyNeed) {
  for (const char* schedule : {"1f1b-merged", "dualpipe-v", "dualpipe"}) {
    Step step = with_experts(schedule, 2, std::string(schedule) == "dualpipe" ? 1 : 2, 2, 8);
    const ActionLists pairs = action_lists(step);
    ASSERT_TRUE(has_pairs(pairs));
    const TaskGraph merged = lowered(step);
    ActionLists singles = pairs;
    for (auto& list : singles)
      for (Action& action : list) action.with_next = false;
    step.actions = std::make_shared<const ActionLists>(singles);
    const TaskGraph one_by_one = lowered(step);
    const auto needs = [](const TaskGraph& graph) {
      std::set<std::pair<std::string, std::string>> edges;
      for (TaskId task = 0; task < graph.tasks.size(); ++task)
        for (const BufferId in : graph.inputs[task])
          if (const auto writer = graph.writer(in)) {
            const auto text = [&](TaskId id) {
              return std::to_string(members_of(graph, id)[0]) + " " + label_of(graph, id);
            };
            edges.emplace(text(*writer), text(task));
          }
      return edges;
    };
    EXPECT_EQ(needs(merged), needs(one_by_one)) << schedule;
    EXPECT_NE(compute_labels(merged, 0), compute_labels(one_by_one, 0)) << schedule;
    EXPECT_TRUE(check_graph(merged).empty()) << schedule;
  }
}

double step_time(const Step& step, const PricedCluster& cluster) {
  TaskGraph graph = lower(step);
  const Durations durations = order_and_price(graph, cluster);
  return step_time_of(graph, simulate(graph, cluster, durations, {}).timeline);
}

double compute_time(const Step& step, const PricedCluster& cluster) {
  TaskGraph graph = lower(step);
  const Durations durations = order_and_price(graph, cluster);
  double seconds = 0;
  for (const TaskId task : graph.compute_order[0]) seconds += durations[task];
  return seconds;
}

// Megatron-Core's purpose: what 1F1B exposes of its all-to-alls, pairs hide behind the other micro-batch's compute.
TEST(Pairs, HideAllToAllsBehindTheComputeOfTheOtherMicroBatch) {
  PricedCluster cluster = two_nodes();
  for (Fabric& fabric : cluster.fabrics) fabric.bandwidth *= 4;
  const Step plain = with_experts("1f1b", 1, 1, 8, 16), merged = with_experts("1f1b-merged", 1, 1, 8, 16);
  const double compute = compute_time(plain, cluster);
  const double exposed = step_time(plain, cluster) - compute, exposed_in_pairs = step_time(merged, cluster) - compute;
  ASSERT_GT(exposed, 0.1 * compute) << "nothing to hide: a weak test";
  EXPECT_LT(exposed_in_pairs, 0.5 * exposed);
}

// Products beside an all-to-all lose what they lose beside messages of data parallelism.
TEST(Pairs, SlowTheProductsThatRunBesideAnotherMicroBatchsTokens) {
  for (const auto& [schedule, any] : {std::pair{"1f1b", false}, std::pair{"1f1b-merged", true}}) {
    Step step = with_experts(schedule, 1, 1, 8, 8);
    step.overlap_grad_reduce = false;
    TaskGraph graph = lowered(step);
    int beside = 0;
    for (const auto& [task, message] : messages_beside(graph)) {
      if (graph.work(message).collective != Collective::all_to_all) continue;
      EXPECT_NE(graph.tasks[task].micro_batch, graph.tasks[message].micro_batch);
      ++beside;
    }
    EXPECT_EQ(beside > 0, any) << schedule;
  }
}

// Megatron-Core's order of a layer: F attention, I experts, W experts, F experts, I attention, W attention.
TEST(Pairs, WithDelayedWeightGradientsPutEachBehindItsInputGradient) {
  Step step = with_experts("1f1b-merged", 1, 1, 2, 4);
  step.delay_weight_grads = true;
  const TaskGraph graph = lowered(step);
  EXPECT_TRUE(check_graph(graph).empty());
  std::string passes;  // of the second pair
  for (const std::string& label : compute_labels(graph, 0))
    if (label.starts_with("0F2") || label.starts_with("0I1") || label.starts_with("0W1")) passes += label[1];
  EXPECT_EQ(passes, "FIWFIWFIW");
}

// Tensor parallelism cuts norms off: their weights' gradients are made in the input gradient, which comes last.
TEST(Pairs, ReduceABlockBehindAllItsGradientsWithDelayedOnesToo) {
  for (const int zero : {0, 2}) {
    Step step;
    step.model = llama(
        "llama", {.layers = 2, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
    step.layout.tensor = 2, step.layout.data = 2, step.layout.zero = zero;
    step.layout.sequence_parallel = true;
    step.schedule = "1f1b-merged", step.global_batch = 8, step.delay_weight_grads = true;
    const TaskGraph graph = lowered(step);
    EXPECT_TRUE(check_graph(graph).empty()) << "ZeRO " << zero;
  }
}

// The message of an input gradient starts before the weight gradient: where messages take long, more is hidden.
TEST(Pairs, WithDelayedWeightGradientsHideMoreOfTheirMessages) {
  const PricedCluster cluster = two_nodes();
  const auto step_s = [&](bool delayed) {
    Step step = with_experts("1f1b-merged", 1, 1, 8, 8);
    step.delay_weight_grads = delayed;
    EXPECT_TRUE(check_graph(lowered(step)).empty());
    return simulated_step_s(step, cluster);
  };
  EXPECT_LT(step_s(true), step_s(false));
}

TEST(Pairs, HaveALowerBoundWhateverTheNetwork) {
  int compared = 0;
  for (const char* schedule : {"1f1b-merged", "dualpipe-v", "dualpipe"})
    for (const auto& [pipeline, data] : {std::pair{1, 8}, {2, 4}, {4, 2}})
      for (const int chunks : {1, 2})
        for (const bool delayed : {false, true})
          for (const double network : {10.0, 1.0, 0.1, 0.01})
            for (const Recompute recompute : {Recompute::none, Recompute::full}) {
              Step step = with_experts(schedule, pipeline, chunks, data, 8);
              step.delay_weight_grads = delayed, step.recompute = recompute;
              if (!legal(step)) continue;
              const PricedCluster cluster = with_network(network);
              const double bound_s = StepEstimator(step, cluster).passes_bound(step);
              EXPECT_LE(bound_s, simulated_step_s(step, cluster) * (1 + 1e-6))
                  << schedule << " pipeline " << pipeline << " chunks " << chunks << " delayed " << delayed
                  << " network " << network << " recompute " << static_cast<int>(recompute);
              ++compared;
            }
  EXPECT_GT(compared, 60);
}

// The tokens of a pair's forward and of its backward travel on one lane, so no order hides one behind the other.
TEST(Pairs, AreBoundedByAllTheirAllToAllsWhereTheNetworkIsSlow) {
  const PricedCluster cluster = with_network(0.01);
  const Step step = with_experts("1f1b-merged", 1, 1, 8, 8);
  TaskGraph graph = lower(step);
  const Durations durations = order_and_price(graph, cluster);
  double messages_s = 0;  // of rank 0, per step
  for (TaskId task = 0; task < graph.tasks.size(); ++task)
    if (graph.tasks[task].communicator != none && graph.communicator(graph.tasks[task]).axis == Axis::expert &&
        members_of(graph, task).front() == 0 && graph.tasks[task].step == 0)
      messages_s += durations[task];
  const double bound_s = StepEstimator(step, cluster).passes_bound(step);
  EXPECT_GT(bound_s, 0.95 * messages_s);
}

TEST(Pairs, AreWhatWeightGradientsAreDelayedIn) {
  Step step = with_experts("1f1b", 2, 1, 2, 4);
  step.delay_weight_grads = true;
  EXPECT_FALSE(legal(step));
  step.schedule = "1f1b-merged";
  EXPECT_TRUE(legal(step));
}

TEST(Pairs, WithoutMessagesInsideAreOneAfterTheOther) {
  Step step = with_experts("1f1b-merged", 1, 1, 1, 4);
  const auto labels = compute_labels(lowered(step), 0);
  EXPECT_EQ((std::vector<std::string>(labels.begin(), labels.begin() + 6)),
            (std::vector<std::string>{"0F0", "0F1", "0B0", "0F2", "0B1", "0F3"}));
}

TEST(Pairs, AndUnevenGroupsAndEmptyStagesHaveBoundsBelowTheSimulation) {
  const PricedCluster cluster = two_nodes();
  constexpr double rounding = 1 + 1e-9;
  struct Drawn {
    const char* schedule;
    int chunks;
    std::vector<int> split;
  };
  for (const auto& [schedule, chunks, split] :
       {Drawn{"1f1b-merged", 1, {}}, Drawn{"1f1b-merged", 2, {}}, Drawn{"dualpipe-v", 2, {}}, Drawn{"dualpipe", 1, {}},
        Drawn{"interleaved-1f1b", 2, {}}, Drawn{"looped-bfs", 2, {}}, Drawn{"v-min", 2, {}}, Drawn{"v-half", 2, {}},
        Drawn{"1f1b", 1, {1, 3}}, Drawn{"1f1b", 1, {4, 0}}, Drawn{"interleaved-1f1b", 2, {2, 0, 0, 2}},
        Drawn{"zb-v", 2, {2, 0, 0, 2}}, Drawn{"zb-v", 2, {0, 4, 0, 0}}})
    for (const int tensor : {1, 2})
      for (const int micro_batches : {2, 6, 8, 14})
        for (const bool experts : {false, true})
          for (const bool blocking : {false, true}) {
            Step step = with_experts(schedule, 2, chunks, 4 / tensor, micro_batches);
            step.layout.tensor = tensor, step.layout.sequence_parallel = tensor > 1;
            if (!experts) {
              step.model = llama(
                  "dense",
                  {.layers = 4, .hidden = 128, .ffn = 384, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 128});
              step.layout.expert = 1;
            } else {
              step.model = llama("experts", {.layers = 4,
                                             .hidden = 128,
                                             .ffn = 64,
                                             .heads = 4,
                                             .kv_heads = 4,
                                             .vocab = 256,
                                             .sequence = 128,
                                             .experts = 8,
                                             .experts_per_token = 2});
            }
            step.blocking_transfers = blocking;
            if (!split.empty()) step.layout.split = SplitKind::list, step.layout.split_list = split;
            TaskGraph graph = lower(step);
            EXPECT_TRUE([&] {
              set_global_order(graph, durations_of(graph, cluster));
              return check_graph(graph).empty();
            }());
            const Durations durations = order_and_price(graph, cluster);
            const Timeline timeline = simulate(graph, cluster, durations, {}).timeline;
            StepEstimator estimator(step, cluster);
            const StepEstimate estimate = estimator.estimate(step);
            const std::string text = std::string(schedule) + " v" + std::to_string(chunks) + " t" +
                                     std::to_string(tensor) + " m" + std::to_string(micro_batches) +
                                     (experts ? " experts" : "") + (blocking ? " blocking" : "") +
                                     (split.empty() ? "" : " split " + std::to_string(split.front()));
            EXPECT_LE(estimate.bound_s, step_time_of(graph, timeline) * rounding) << text;
            EXPECT_LE(estimator.passes_bound(step), step_time_of(graph, timeline) * rounding) << text;
            EXPECT_GT(estimate.bound_s, 0) << text;
            double fullest = 0;
            for (const RankMemory& rank : memory_timeline(graph, timeline)) fullest = std::max(fullest, rank.peak);
            EXPECT_LE(estimate.memory_bytes, fullest * rounding) << text;
          }
}

}  // namespace
}  // namespace slipway::test
