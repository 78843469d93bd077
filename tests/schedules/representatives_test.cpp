// A step of representative ranks against the step of all ranks: simulated, replayed and in memory. Layouts are random,
// on clusters with different links, shared ports or unlike nodes.
#include "schedules/lower/representatives.h"
#include "models/machine/priced_cluster.h"
#include "schedules/lower/lowering.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "models/machine/topology.h"
#include "schedules/check/check.h"
#include "schedules/draw/timeline_trace.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/rules/rules.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/metrics.h"
#include "sim/simulate.h"
#include "tests/support/round_gpu.h"

namespace slipway::test {
namespace {

Machine gpu(double network_bandwidth) {
  Machine machine = round_gpu();
  machine.overlap_slowdown = 1.1;
  machine.network_link.bandwidth = network_bandwidth;
  machine.host_to_device = machine.device_to_host = {"pcie", 2e9, 5e-6, 0.9};
  return machine;
}

struct Setting {
  const char* name;
  int nodes, gpus, gpus_per_port;
  double network_bandwidth;
  bool represented;  // some layout must have representatives
  Algorithm algorithm = Algorithm::ring;
  const char* topology = "";  // of the network, with leaves of eight ports or a unit of two nodes
  double oversubscription = 1;
};
constexpr Setting settings[] = {{"nodes of four", 4, 4, 1, 4e9, true},
                                {"a slow network", 8, 2, 1, 5e8, true},
                                {"single GPUs", 16, 1, 1, 4e9, true},
                                {"one node", 1, 16, 1, 4e9, true},
                                {"two GPUs a port", 4, 4, 2, 4e9, true},
                                {"four GPUs a port", 4, 4, 4, 4e9, true},
                                {"rings on every port", 4, 4, 1, 4e9, true, Algorithm::multi_ring},
                                {"two levels", 4, 4, 1, 4e9, true, Algorithm::hierarchical},
                                {"as NCCL chooses", 4, 4, 1, 4e9, true, Algorithm::nccl},
                                {"a full fat tree", 4, 4, 1, 4e9, true, Algorithm::ring, "fat-tree"},
                                {"a full fat tree as NCCL chooses", 4, 4, 1, 4e9, true, Algorithm::nccl, "fat-tree"},
                                {"trees", 4, 4, 1, 4e9, true, Algorithm::tree},
                                {"rails", 4, 4, 1, 4e9, true, Algorithm::multi_ring, "rail-optimised"},
                                {"an oversubscribed fat tree", 4, 4, 1, 4e9, false, Algorithm::ring, "fat-tree", 2}};

PricedCluster cluster_of(const Setting& setting) {
  PricedCluster cluster;
  cluster.name = setting.name;
  cluster.groups = {{gpu(setting.network_bandwidth), setting.nodes, setting.gpus}};
  cluster.fabrics = default_fabrics(cluster.groups);
  for (Fabric& fabric : cluster.fabrics)
    if (fabric.scope == Fabric::Scope::cluster) {
      fabric.gpus_per_port = setting.gpus_per_port;
      fabric.topology = topology_named(setting.topology);
      fabric.parameters = {{"oversubscription", setting.oversubscription},
                           {"shape", {setting.topology == std::string("fat-tree") ? 8 : 2}}};
    }
  cluster.algorithms.fill(setting.algorithm);
  return cluster;
}

constexpr const char* pipelined[] = {"1f1b", "interleaved-1f1b", "gpipe",    "zb-h1",   "zb-h2",
                                     "zb-v", "dualpipe-v",       "terapipe", "chimera", "dualpipe"};

Model with_experts(std::int64_t layers) {
  return llama("experts", {.layers = layers,
                           .hidden = 128,
                           .ffn = 64,
                           .heads = 8,
                           .kv_heads = 8,
                           .vocab = 4096,
                           .sequence = 64,
                           .experts = 8,
                           .experts_per_token = 2,
                           .shared_ffn = 64});
}

Step random_step(std::mt19937& random, int ranks) {
  const auto one_of = [&](std::initializer_list<int> list) {
    return *(list.begin() + std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random));
  };
  Step in;
  in.model = llama("llama", {.layers = 8,
                             .hidden = 128,
                             .ffn = 384,
                             .heads = 8,
                             .kv_heads = one_of({1, 2, 8, 8}),
                             .vocab = 4096,
                             .sequence = 64,
                             .tied = one_of({0, 1}) == 1});
  const bool experts = one_of({0, 0, 1}) == 1;
  if (experts) in.model = with_experts(8);
  Layout& l = in.layout;
  do {
    l.tensor = one_of({1, 2, 4, 8}), l.context = one_of({1, 1, 2, 4}), l.pipeline = one_of({1, 2, 4});
  } while (ranks % (l.tensor * l.context * l.pipeline) != 0);
  l.data = ranks / (l.tensor * l.context * l.pipeline);
  l.context_exchange = one_of({0, 1}) == 1 ? ContextExchange::ring : ContextExchange::all_gather;
  l.sequence_parallel = l.tensor > 1 && one_of({0, 1}) == 1;
  l.zero = l.data * l.context > 1 ? one_of({0, 1, 2, 3}) : 0;
  if (experts) {
    l.expert_tensor = one_of({0, 1}), l.expert = one_of({2, 4, 8});
    l.sequence_parallel = l.tensor > 1;
    const int cut = l.expert_tensor > 0 ? 1 : l.tensor;
    l.dispatcher = static_cast<Dispatcher>(one_of({0, 0, 1, 2, 3}));
    if (cut > 1 && l.dispatcher == Dispatcher::allgather) l.dispatcher = Dispatcher::deepep;
    in.routing.skew = one_of({0, 1});
    while (member_count(l) % (l.expert * cut) != 0) l.expert /= 2;
  }
  in.schedule = l.pipeline == 1 ? "1f1b" : pipelined[one_of({0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 9})];
  l.chunks = in.schedule == "interleaved-1f1b" || in.schedule == "zb-v" || in.schedule == "dualpipe-v" ? 2 : 1;
  if (in.schedule == "chimera" || in.schedule == "dualpipe") l.zero = std::min(l.zero, 1);
  in.recompute = static_cast<Recompute>(one_of({0, 1, 2}));
  in.kernels = one_of({0, 1}) == 1 ? Kernels::torch : Kernels::flash2;
  in.micro_batch = one_of({1, 2});
  if (in.schedule == "terapipe" && l.context == 1 && in.recompute != Recompute::full) {
    in.slices = one_of({2, 4});
  }
  if (experts && in.slices == 1 && one_of({0, 1}) == 1) {
    in.routing.balancing_loss = 0.01;
    in.routing.balancing_sequences = one_of({0, 1, static_cast<int>(in.micro_batch) * l.data});
  }
  if (l.pipeline > 1 && one_of({0, 1}) == 1) {  // uneven: the first stage has a layer less, the last one more
    l.split = SplitKind::list;
    l.split_list.assign(stage_count(l), 8 / stage_count(l));
    if (l.split_list.front() > 1) --l.split_list.front(), ++l.split_list.back();
  }
  in.global_batch = in.micro_batch * l.data * l.pipeline * one_of({2, 3});
  in.clip_norm = one_of({0, 1});
  l.replicate = one_of({1, 1, 2});
  if (!legal(in)) l.replicate = 1;
  if (one_of({0, 0, 1}) == 1) in.levers.offloaded = set_of(OffloadedInput::core_attn, OffloadedInput::mlp_norm);
  if (one_of({0, 0, 1}) == 1) in.levers.recomputed = set_of(RecomputedModule::mlp, RecomputedModule::moe_act);
  if (!legal(in)) in.levers = {};
  return legal(in) ? in : random_step(random, ranks);
}

std::string text_of(const Step& in) {
  const Layout& l = in.layout;
  return in.schedule + " t" + std::to_string(l.tensor) + " c" + std::to_string(l.context) +
         (l.context_exchange == ContextExchange::ring ? " ring" : "") + " p" + std::to_string(l.pipeline) + " d" +
         std::to_string(l.data) + " e" + std::to_string(l.expert) + "/" + std::to_string(l.expert_tensor) + " " +
         name_of(l.dispatcher) + " z" + std::to_string(l.zero) + "/" + std::to_string(l.replicate) + " sp" +
         std::to_string(l.sequence_parallel) + " batch " + std::to_string(in.global_batch) + " slices " +
         std::to_string(in.slices) + " recompute " + std::to_string(static_cast<int>(in.recompute)) +
         (l.split == SplitKind::list ? " uneven" : "") + (in.model->runs.back().block.tied ? " tied" : "") +
         (in.levers == Levers{} ? "" : " with levers");
}

struct OrderedStep {
  StepMetrics metrics;
  double fullest = 0;
  std::size_t tasks = 0;
};
OrderedStep simulated(const Step& input, const PricedCluster& cluster, const Representatives& representatives = {}) {
  TaskGraph graph = lower(input, representatives);
  const Durations durations = durations_of(graph, cluster);
  set_global_order(graph, durations);
  EXPECT_TRUE(check_graph(graph).empty()) << text_of(input) << describe(graph, check_graph(graph).front());
  const Simulation simulation = simulate(graph, cluster, durations, {});
  OrderedStep step{metrics_of(graph, simulation.timeline, 1), 0, graph.tasks.size()};
  for (const RankMemory& rank : memory_timeline(graph, simulation.timeline))
    step.fullest = std::max(step.fullest, rank.peak);
  return step;
}

class RepresentedSteps : public testing::TestWithParam<Setting> {};

TEST_P(RepresentedSteps, AreTheStepsOfAllRanks) {
  std::mt19937 random(3);
  const PricedCluster cluster = cluster_of(GetParam());
  const int ranks = rank_capacity(cluster);
  int represented = 0;
  for (int i = 0; i < 40; ++i) {
    Step input = random_step(random, ranks);
    const OrderedStep whole = simulated(input, cluster);
    const Representatives representatives = representatives_of(cluster, input.layout, joined_ranks(input));
    if (representatives.tensor * representatives.replicas == ranks / input.layout.pipeline) continue;
    ++represented;
    const OrderedStep step = simulated(input, cluster, representatives);
    EXPECT_LT(step.tasks, whole.tasks) << text_of(input);
    EXPECT_NEAR(step.metrics.step_time_s, whole.metrics.step_time_s, 1e-9 * whole.metrics.step_time_s)
        << text_of(input);
    EXPECT_NEAR(step.metrics.compute_share, whole.metrics.compute_share, 1e-6) << text_of(input);
    EXPECT_NEAR(step.metrics.bubble_share, whole.metrics.bubble_share, 1e-6) << text_of(input);
    EXPECT_NEAR(step.metrics.exposed_comm_share, whole.metrics.exposed_comm_share, 1e-6) << text_of(input);
    EXPECT_NEAR(step.fullest, whole.fullest, 1) << text_of(input);
  }
  EXPECT_EQ(represented > 10, GetParam().represented) << represented;
}

INSTANTIATE_TEST_SUITE_P(On, RepresentedSteps, testing::ValuesIn(settings), [](const auto& of) {
  std::string name = of.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

TEST(Representatives, LeavesOutOnlyMembersThatAreLikeAnother) {
  Layout layout;
  layout.tensor = 2, layout.data = 8;
  const auto lowered = [&](const PricedCluster& cluster) {
    const Representatives representatives = representatives_of(cluster, layout, {});
    return representatives.tensor * representatives.replicas;
  };
  PricedCluster cluster = cluster_of(settings[0]);
  EXPECT_EQ(lowered(cluster), 2);  // of a node's two data members, one sends within it and one to the next
  PricedCluster rails = cluster;
  rails.algorithms.fill(Algorithm::multi_ring);
  EXPECT_EQ(lowered(rails), 1);  // on all ports, each member sends within its node and to the next
  PricedCluster mixed = cluster;
  mixed.groups = {{gpu(4e9), 2, 4}, {gpu(2e9), 2, 4}};
  mixed.groups[0].machine.network_link.latency = 1e-6;
  mixed.fabrics = default_fabrics(mixed.groups);
  EXPECT_EQ(lowered(mixed), 8);  // the two of a tensor group are still alike
  PricedCluster offset = cluster;
  offset.groups[0].gpus_per_node = 3;  // tensor groups cross nodes in some places
  offset.groups[0].nodes = 6;
  EXPECT_EQ(lowered(offset), 16);
  PricedCluster cores = cluster;
  cores.groups[0].machine.cores = 2;
  EXPECT_EQ(lowered(cores), 16);
}

TEST(Representatives, TheirGraphIsCheckedLikeAnyOther) {
  std::mt19937 random(3);
  Step input = random_step(random, 16);
  input.layout.tensor = input.layout.context = 1, input.layout.pipeline = 2, input.layout.data = 8;
  input.layout.sequence_parallel = false, input.layout.zero = 1, input.layout.chunks = 1;
  input.layout.split = SplitKind::even;
  input.schedule = "1f1b", input.slices = 1, input.global_batch = 32;
  input.micro_batch = 1;
  TaskGraph graph = lower(input, representatives_of(cluster_of(settings[2]), input.layout, {}));
  set_global_order(graph, durations_of(graph, cluster_of(settings[2])));
  ASSERT_EQ(lowered_count(graph.step.layout, graph.representatives), 2);
  EXPECT_TRUE(check_graph(graph).empty());
  for (Task& task : graph.tasks)  // no task updates the parameters
    if (task.kind == TaskKind::optimizer) task.kind = TaskKind::compute, task.work = 0;
  EXPECT_FALSE(check_graph(graph).empty());
}

TEST(Representatives, TheTraceOfTheirStepIsThatOfAllRanks) {
  std::mt19937 random(5);
  const PricedCluster cluster = cluster_of(settings[0]);
  int compared = 0;
  for (int i = 0; i < 20; ++i) {
    Step input = random_step(random, 16);
    Representatives representatives;
    const auto trace = [&] {
      TaskGraph graph = lower(input, representatives);
      const Durations durations = durations_of(graph, cluster);
      set_global_order(graph, durations);
      SimulationOptions options;
      options.steps = 2;
      return trace_of(graph, simulate(graph, cluster, durations, options).timeline, "simgrid");
    };
    const Trace whole = trace();
    representatives = representatives_of(cluster, input.layout, joined_ranks(input));
    if (lowered_count(input.layout, representatives) == 16) continue;
    const Trace represented = trace();
    ASSERT_EQ(represented.records.size(), whole.records.size()) << text_of(input);
    for (std::size_t r = 0; r < whole.records.size(); ++r) {
      const TraceRecord &a = whole.records[r], &b = represented.records[r];
      ASSERT_EQ(std::tie(a.step, a.rank, a.lane, a.label, a.kind, a.flops, a.bytes, a.group),
                std::tie(b.step, b.rank, b.lane, b.label, b.kind, b.flops, b.bytes, b.group))
          << text_of(input);
      ASSERT_NEAR(a.start_s, b.start_s, 1e-9 * whole.records.back().end_s) << text_of(input) << " " << a.label;
      ASSERT_NEAR(a.end_s, b.end_s, 1e-9 * whole.records.back().end_s) << text_of(input) << " " << a.label;
      ASSERT_NEAR(a.wait_s, b.wait_s, 1e-9 * whole.records.back().end_s) << text_of(input) << " " << a.label;
    }
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

TEST(Representatives, OfLikeMembersOfAnExpertGroupAreOneWhoseTokensLeaveInOneFlowPerFabric) {
  std::mt19937 random(3);
  for (const char* schedule : {"1f1b", "dualpipe"}) {
    Step input = random_step(random, 16);
    input.model = with_experts(4);
    input.layout = {.pipeline = 2, .data = 8, .expert = 8, .zero = 1};
    input.schedule = schedule, input.slices = 1, input.micro_batch = 1, input.global_batch = 64, input.group = 0;
    PricedCluster cluster = cluster_of(settings[8]);
    cluster.groups[0].gpus_per_node = 4, cluster.groups[0].nodes = 4;
    for (Fabric& fabric : cluster.fabrics) fabric.bandwidth /= 50;  // messages wait for one another
    const auto run = [&](const Representatives& representatives) {
      TaskGraph graph = lower(input, representatives);
      const Durations durations = durations_of(graph, cluster);
      set_global_order(graph, durations);
      SimulationOptions options;
      options.collectives = sim::CollectiveFidelity::flows;
      options.steps = 2;
      const Simulation result = simulate(graph, cluster, durations, options);
      return std::pair(metrics_of(graph, result.timeline, 1).step_time_s, result.flows);
    };
    const Representatives one = representatives_of(cluster, input.layout, joined_ranks(input));
    EXPECT_EQ(one, (Representatives{1, 1})) << schedule;
    const auto [whole_s, whole_flows] = run({});
    const auto [one_s, one_flows] = run(one);
    EXPECT_NEAR(one_s, whole_s, 1e-9 * whole_s) << schedule;
    EXPECT_LT(one_flows * 20, whole_flows) << schedule;  // of 8 · 7 flows, 2
  }
}

TEST(Representatives, KeepsWholeNodesWhereTheirGpusShareAPort) {
  Layout layout;
  layout.tensor = 2, layout.data = 8;
  const Representatives representatives = representatives_of(cluster_of(settings[4]), layout, {});
  EXPECT_EQ(representatives.tensor, 2);
  EXPECT_EQ(representatives.replicas, 2);
}

}  // namespace
}  // namespace slipway::test
