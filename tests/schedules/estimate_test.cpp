// The closed form of a step against the simulator and the list replay, over random layouts of small models.
#include "schedules/bound/estimate.h"
#include "models/machine/cost.h"

#include <gtest/gtest.h>

#include <random>

#include "models/machine/priced_cluster.h"
#include "models/model/parameters.h"
#include "schedules/lower/lowering.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/rules/rules.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/metrics.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"
#include "tests/support/round_gpu.h"

namespace slipway::test {
namespace {

// Two nodes of four GPUs.
PricedCluster two_nodes(double task_overhead = 0) {
  Machine gpu = round_gpu();
  gpu.task_overhead = task_overhead;
  PricedCluster cluster;
  cluster.name = "two nodes";
  cluster.groups = {{gpu, 2, 4}};
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

struct Drawn {
  Step input;
  std::string text;
};

// The same with latent attention, a first layer without experts and multi-token prediction.
Model with_several_kinds(const Model& model) {
  Block layer = model.runs[1].block;
  layer.kv_latent = 32, layer.q_latent = 64, layer.rope_head_dim = 8, layer.v_head_dim = 16;
  Block features = layer, dense = layer;
  features.vocab = model.runs.back().block.vocab, features.predicted_tokens = 1;
  dense.experts = dense.experts_per_token = dense.shared_ffn = 0;
  std::vector<Block> layers(8, layer);
  layers.front() = dense;
  return models::decoder(model.name + " of several kinds", models::Family::llama, model.sequence, features, layers);
}

// A random layout of eight ranks that can be lowered.
Drawn random_step(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<int> list) {
    return *(list.begin() + std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random));
  };
  for (;;) {
    Drawn drawn;
    Step& in = drawn.input;
    const bool is_gpt = one_of({0, 0, 1}) == 1;
    in.model = is_gpt ? gpt("gpt", {.layers = 8,
                                    .hidden = 128,
                                    .ffn = 512,
                                    .heads = 4,
                                    .vocab = 512,
                                    .max_positions = 64,
                                    .sequence = 64,
                                    .tied = true})
                      : llama("llama", {.layers = 8,
                                        .hidden = 128,
                                        .ffn = 384,
                                        .heads = 4,
                                        .kv_heads = one_of({1, 4, 4}),
                                        .vocab = 1024,
                                        .sequence = 64});
    const bool experts = one_of({0, 0, 1}) == 1;
    if (experts)
      in.model = llama("experts", {.layers = 8,
                                   .hidden = 128,
                                   .ffn = 64,
                                   .heads = 4,
                                   .kv_heads = 4,
                                   .vocab = 512,
                                   .sequence = 64,
                                   .experts = 8,
                                   .experts_per_token = 2,
                                   .shared_ffn = 64});
    if ((experts || !is_gpt) && one_of({0, 0, 1}) == 1) in.model = with_several_kinds(in.model);
    Layout& l = in.layout;
    l.tensor = one_of({1, 2, 4}), l.context = one_of({1, 1, 2}), l.pipeline = one_of({1, 2, 4});
    if (8 % (l.tensor * l.context * l.pipeline) != 0) continue;
    l.data = 8 / (l.tensor * l.context * l.pipeline);
    l.context_exchange = one_of({0, 1}) == 1 ? ContextExchange::ring : ContextExchange::all_gather;
    l.sequence_parallel = l.tensor > 1 && one_of({0, 1}) == 1;
    l.zero = l.data * l.context > 1 ? one_of({0, 1, 2, 3}) : 0;
    if (experts) {
      l.expert_tensor = one_of({0, 1}), l.expert = one_of({1, 2, 4, 8});
      l.sequence_parallel = l.tensor > 1;
      const int cut = l.expert_tensor > 0 ? 1 : l.tensor;
      while (l.expert > 1 && member_count(l) % (l.expert * cut) != 0) l.expert /= 2;
    }
    in.schedule = l.pipeline == 1 ? "1f1b" : one_of({0, 1}) == 1 ? "1f1b" : "interleaved-1f1b";
    if (one_of({0, 0, 1}) == 1) in.schedule = "gpipe";
    l.chunks = in.schedule == "interleaved-1f1b" ? 2 : 1;
    l.split = one_of({0, 1}) == 1 ? SplitKind::balanced : SplitKind::even;
    in.micro_batch = one_of({1, 2});
    in.recompute = one_of({0, 1}) == 1 ? Recompute::full : Recompute::none;
    in.global_batch = in.micro_batch * l.data * l.pipeline * one_of({1, 2, 3});
    in.clip_norm = one_of({0, 1});
    drawn.text = in.model->name + " " + in.schedule + " t" + std::to_string(l.tensor) + " sp" +
                 std::to_string(l.sequence_parallel) + " c" + std::to_string(l.context) +
                 (l.context_exchange == ContextExchange::ring ? " ring" : "") + " p" + std::to_string(l.pipeline) +
                 " d" + std::to_string(l.data) + " e" + std::to_string(l.expert) + "/" +
                 std::to_string(l.expert_tensor) + " z" + std::to_string(l.zero) + " b" +
                 std::to_string(in.micro_batch) + " of " + std::to_string(in.global_batch) + " r" +
                 std::to_string(static_cast<int>(in.recompute)) + " clip" +
                 std::to_string(static_cast<int>(in.clip_norm));
    return drawn;
  }
}

struct Lowered {
  TaskGraph graph;
  Durations durations;
};
Lowered lowered(const Step& input, const PricedCluster& cluster) {
  Lowered run{lower(input), {}};
  run.durations = durations_of(run.graph, cluster);
  set_global_order(run.graph, run.durations);
  return run;
}
StepMetrics metrics(const Lowered& run, const Timeline& timeline) { return metrics_of(run.graph, timeline, 1); }

double fullest(const TaskGraph& graph, const Timeline& timeline) {
  double most = 0;
  for (const RankMemory& rank : memory_timeline(graph, timeline)) most = std::max(most, rank.peak);
  return most;
}

constexpr double rounding = 1 + 1e-9;

TEST(StepEstimate, IsALowerBoundOnClustersWithSlowAndFastGpusAndSlowPortsToo) {
  std::mt19937 random(5);
  PricedCluster cluster = two_nodes(0);
  for (std::uint64_t gpu = 0; gpu < 8; ++gpu)
    cluster.degradation.slowdown.push_back(spread_factor(Spread::lognormal, 0.3, 1, gpu));
  cluster.degradation.ports = {{static_cast<int>(cluster.fabrics.size()) - 1, 1, -1, 0.7, 1e-3, 0.4}};
  for (int i = 0; i < 100; ++i) {
    const Drawn drawn = random_step(random);
    const Step& in = drawn.input;
    TaskGraph graph = lower(in);
    const Durations durations = order_and_price(graph, cluster);
    const StepMetrics step = metrics_of(graph, simulate(graph, cluster, durations, {}).timeline, 1);
    const Step& choice = in;
    StepEstimator estimator(in, cluster);
    EXPECT_LE(estimator.estimate(choice).bound_s, step.step_time_s * rounding) << drawn.text;
    EXPECT_LE(estimator.passes_bound(choice), step.step_time_s * rounding) << drawn.text;
  }
}

// A node of fast GPUs and one of slow ones, in both orders. Replicas sit on either, and the slow ones set the step.
TEST(StepEstimate, IsALowerBoundOnSeveralMachinesAndKnowsTheSlowestReplica) {
  std::mt19937 random(9);
  for (const bool slow_first : {false, true}) {
    PricedCluster cluster = two_nodes();
    cluster.groups = {{cluster.groups[0].machine, 1, 4}, {cluster.groups[0].machine, 1, 4}};
    Machine& slow = cluster.groups[slow_first ? 0 : 1].machine;
    slow.name = "slow", slow.peak_flops.fill(2e12);
    cluster.fabrics = default_fabrics(cluster.groups);
    double closest_of_replicas = 0;
    for (int i = 0; i < 100; ++i) {
      const Drawn drawn = random_step(random);
      const Step& in = drawn.input;
      const Lowered run = lowered(in, cluster);
      const double step_s = step_time_of(run.graph, simulate(run.graph, cluster, run.durations, {}).timeline);
      const Step& choice = in;
      StepEstimator estimator(in, cluster);
      const double bound = estimator.estimate(choice).bound_s;
      EXPECT_LE(bound, step_s * rounding) << drawn.text;
      EXPECT_LE(estimator.passes_bound(choice), step_s * rounding) << drawn.text;
      if (in.layout.pipeline == 1 && in.layout.data > 1)
        closest_of_replicas = std::max(closest_of_replicas, bound / step_s);
    }
    EXPECT_GT(closest_of_replicas, 0.9) << slow_first;
  }
}

TEST(StepEstimate, IsALowerBoundOfTheSimulatedStepAndOfItsMemory) {
  std::mt19937 random(1);
  double closest = 0;
  for (const double overhead : {0.0, 5e-6}) {
    const PricedCluster cluster = two_nodes(overhead);
    for (int i = 0; i < 300; ++i) {
      const Drawn drawn = random_step(random);
      const Step& in = drawn.input;
      StepEstimator estimator(in, cluster);
      const Step& choice = in;
      const StepEstimate estimate = estimator.estimate(choice);
      const double sharper = estimator.passes_bound(choice);
      const Lowered run = lowered(in, cluster);
      const Simulation simulated = simulate(run.graph, cluster, run.durations, {});
      const StepMetrics step = metrics(run, simulated.timeline);
      EXPECT_LE(estimate.bound_s, sharper * rounding) << drawn.text;
      EXPECT_LE(sharper, step.step_time_s * rounding) << drawn.text;
      EXPECT_LE(estimate.memory_bytes, fullest(run.graph, simulated.timeline) * rounding) << drawn.text;
      const StepTerms& t = estimate.terms;
      EXPECT_NEAR(t.compute + t.tensor + t.context + t.pipeline + t.data + t.optimizer + t.host, estimate.bound_s,
                  1e-9 * estimate.bound_s);
      closest += sharper / step.step_time_s / 600;
    }
  }
  EXPECT_GT(closest, 0.85);  // a bound of 0 would be safe too
}

// Two GPUs of four ranks each, and one of eight: in any layout a GPU does the work of all its ranks.
TEST(StepEstimate, IsALowerBoundWhereRanksShareGpusAndKnowsThatTheyDo) {
  std::mt19937 random(11);
  for (const int gpus : {1, 2, 4}) {
    PricedCluster cluster = two_nodes(5e-6);
    cluster.groups[0].nodes = 1, cluster.groups[0].gpus_per_node = gpus;
    cluster.ranks_per_gpu = 8 / gpus;
    cluster.fabrics = default_fabrics(cluster.groups);
    for (const Fabric& fabric : shared_gpu_fabrics(cluster.groups)) cluster.fabrics.push_back(fabric);
    double closest = 0;
    for (int i = 0; i < 150; ++i) {
      const Drawn drawn = random_step(random);
      const Step& in = drawn.input;
      const Lowered run = lowered(in, cluster);
      const double step_s = step_time_of(run.graph, simulate(run.graph, cluster, run.durations, {}).timeline);
      StepEstimator estimator(in, cluster);
      const Step& choice = in;
      const double bound = estimator.passes_bound(choice);
      EXPECT_LE(bound, step_s * rounding) << drawn.text << " on " << gpus;
      if (in.layout.tensor == 1 || in.clip_norm > 0) closest = std::max(closest, bound / step_s);
    }
    EXPECT_GT(closest, 0.8) << gpus;
  }
}

// Gives the step this schedule, with its chunks. False where it has no pipeline for it, or the schedule refuses it.
bool takes(Step& step, const Schedule& schedule) {
  step.schedule = schedule.name;
  step.layout.chunks = schedule.default_chunks;
  if (step.layout.pipeline == 1 || schedule.default_slices > 1) return false;
  if (schedule.copies > 1) step.layout.zero = std::min(step.layout.zero, 1);
  return !schedule.refuse(schedule_shape(step));
}

// Schedules that plan does not search by itself: split backwards, stages in a V, copies of the model.
TEST(StepEstimate, IsALowerBoundOfEverySchedule) {
  std::mt19937 random(3);
  const PricedCluster cluster = two_nodes(5e-6);
  int compared = 0;
  for (int i = 0; i < 60; ++i) {
    Drawn drawn = random_step(random);
    for (const Schedule& schedule : all_schedules()) {
      Step& in = drawn.input;
      if (!takes(in, schedule)) continue;
      StepEstimator estimator(in, cluster);
      Step choice = in;
      choice.schedule = schedule.name;
      const double bound = estimator.passes_bound(choice);
      const Lowered run = lowered(in, cluster);
      const Simulation simulated = simulate(run.graph, cluster, run.durations, {});
      EXPECT_LE(bound, metrics(run, simulated.timeline).step_time_s * rounding) << schedule.name << drawn.text;
      EXPECT_LE(estimator.estimate(choice).memory_bytes, fullest(run.graph, simulated.timeline) * rounding)
          << schedule.name << " for " << drawn.text;
      EXPECT_GT(bound, 0);
      ++compared;
    }
  }
  EXPECT_GT(compared, 100);
}

// Two nodes of four GPUs, with kernels as if measured.
PricedCluster trained_nodes(const TrainerFacts& facts, const StepConstants& constants) {
  PricedCluster cluster = two_nodes();
  Machine& gpu = cluster.groups[0].machine;
  gpu.generation = Generation::ampere;
  const auto bfloat16 = static_cast<std::size_t>(Format::bfloat16);
  gpu.kernels.gemm[bfloat16] = GemmConstants{.share = 0.7, .area = 1e4, .launch = 1e-6};
  gpu.kernels.attention[bfloat16] = {{128, {.share = 0.5, .memory = 1, .launch = 1e-6}}};
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce})
    gpu.kernels.collective[static_cast<std::size_t>(collective)] =
        CollectiveConstants{.share = 0.8, .own = 0.3, .launch = 4e-6, .hop = 1e-6, .ramp = 2e-8};
  return priced(cluster, facts, [&](const Machine&) { return constants; });
}

// `host_kernel`: seconds.
StepConstants constants_with_host(double host_kernel, double beside = 0.5) {
  StepConstants constants = book_constants();
  constants.whole = 1.1, constants.fixed = 1e-4, constants.host_kernel = host_kernel, constants.host_member = 1e-5;
  constants.node_start = 4e-6, constants.network_start = 6e-6, constants.beside = beside;
  return constants;
}

std::vector<std::pair<std::string, TrainerFacts>> trainers() {
  return {{"plain", {.cuts_transfers = false}},
          {"each tensor", {.reduces_each_tensor = true}},
          {"all-reduces", {.all_reduces_gradients = true, .cuts_transfers = true}},
          {"hosts drive", {.cuts_transfers = false, .host_driven_collectives = true}},
          {"graphs", {.cuda_graphs = true}}};
}

// What a trainer's habits make of a random step.
Drawn random_trained_step(std::mt19937& random) {
  Drawn drawn = random_step(random);
  const auto chance = [&] { return std::bernoulli_distribution(0.5)(random); };
  drawn.input.overlap_grad_reduce = chance();
  drawn.input.overlap_param_gather = chance();
  drawn.input.blocking_transfers = chance();
  drawn.text += " overlaps" + std::to_string(drawn.input.overlap_grad_reduce) +
                std::to_string(drawn.input.overlap_param_gather) + (drawn.input.blocking_transfers ? " blocks" : "");
  return drawn;
}

// A step's bounds against its list replay, hosts included.
struct Compared {
  StepEstimate estimate;
  double passes_s = 0, step_s = 0;
};
Compared compared(const Step& step, const PricedCluster& cluster) {
  TaskGraph graph = lower(step);
  const Durations durations = order_and_price(graph, cluster);
  StepEstimator estimator(step, cluster);
  return {estimator.estimate(step), estimator.passes_bound(step), step_time_of(graph, replay(graph, durations, 3))};
}

Drawn random_step_with_levers(std::mt19937& random) {
  Drawn drawn = random_trained_step(random);
  Step& in = drawn.input;
  const auto one_of = [&](int count) { return std::uniform_int_distribution(0, count - 1)(random); };
  Levers& levers = in.levers;
  for (const auto& module : recomputed_module_names)
    if (in.recompute == Recompute::none && one_of(3) == 0) levers.recomputed.add(module.value);
  for (const auto& scope : {GraphScope::attn, GraphScope::mlp, GraphScope::moe_router})
    if (one_of(3) == 0) levers.graphs.add(scope);
  levers.lora.rank = 4 * one_of(2);
  if (!legal(in)) in.levers = {};
  in.layout.replicate = 1 + one_of(2);
  if (!legal(in)) in.layout.replicate = 1;
  drawn.text += " recomputed " + std::to_string(levers.recomputed.bits) + " graphs " +
                std::to_string(levers.graphs.bits) + " lora " + std::to_string(levers.lora.rank) + " copies " +
                std::to_string(in.layout.replicate);
  return drawn;
}

TEST(StepEstimate, IsALowerBoundOfAStepWithLevers) {
  std::mt19937 random(31);
  int with_levers = 0;
  for (const double host : {0.0, 5e-6, 5e-5})
    for (int i = 0; i < 200; ++i) {
      const Drawn drawn = random_step_with_levers(random);
      const Step& step = drawn.input;
      const PricedCluster cluster = trained_nodes({}, constants_with_host(host));
      const Compared bounds = compared(step, cluster);
      EXPECT_LE(bounds.estimate.bound_s, bounds.passes_s * rounding) << drawn.text;
      EXPECT_LE(bounds.passes_s, bounds.step_s * rounding) << host << " " << drawn.text;
      TaskGraph graph = lower(step);
      const Durations durations = order_and_price(graph, cluster);
      EXPECT_LE(bounds.estimate.memory_bytes, fullest(graph, replay(graph, durations)) * rounding) << drawn.text;
      with_levers += step.levers != Levers{};
    }
  EXPECT_GT(with_levers, 300);
}

TEST(StepEstimate, IsALowerBoundOfATrainersStep) {
  std::mt19937 random(17);
  double closest = 0, closest_by_host = 0;
  int steps = 0, by_host = 0;
  for (const auto& [trainer, facts] : trainers())
    for (const double host : {0.0, 1e-6, 5e-6, 5e-5})
      for (int i = 0; i < 60; ++i) {
        const Drawn drawn = random_trained_step(random);
        const Compared bounds = compared(drawn.input, trained_nodes(facts, constants_with_host(host)));
        EXPECT_LE(bounds.estimate.bound_s, bounds.passes_s * rounding) << drawn.text;
        EXPECT_LE(bounds.passes_s, bounds.step_s * rounding) << trainer << " " << host << " " << drawn.text;
        const double close = bounds.passes_s / bounds.step_s;
        const bool host_decides = bounds.estimate.terms.host > 0;
        ++steps, closest += close;
        if (host_decides) ++by_host, closest_by_host += close;
      }
  EXPECT_GT(closest / steps, 0.85);
  EXPECT_GT(closest_by_host / by_host, 0.85);
  EXPECT_GT(by_host, steps / 4);
}

TEST(StepEstimate, IsALowerBoundHoweverMuchMessagesSlowProducts) {
  std::mt19937 random(43);
  for (const double beside : {0.05, 5.0})
    for (int i = 0; i < 120; ++i) {
      const Drawn drawn = random_trained_step(random);
      const Compared bounds = compared(drawn.input, trained_nodes({}, constants_with_host(0, beside)));
      EXPECT_LE(bounds.passes_s, bounds.step_s * rounding) << beside << " " << drawn.text;
    }
}

TEST(StepEstimate, IsALowerBoundOfATrainersStepOnOneNodeAndOnSlowAndUnequalOnes) {
  std::mt19937 random(23);
  for (const auto& [trainer, facts] : trainers())
    for (const double host : {0.0, 3e-6, 5e-5}) {
      PricedCluster one = trained_nodes(facts, constants_with_host(host));
      PricedCluster slow = one, unequal = one;
      one.groups[0].nodes = 1, one.groups[0].gpus_per_node = 8;
      for (std::uint64_t gpu = 0; gpu < 8; ++gpu)
        slow.degradation.slowdown.push_back(spread_factor(Spread::lognormal, 0.3, 1, gpu));
      slow.degradation.ports = {{static_cast<int>(slow.fabrics.size()) - 1, 1, -1, 0.7, 1e-3, 0.4}};
      unequal.groups = {{one.groups[0].machine, 1, 4}, {one.groups[0].machine, 1, 4}};
      Machine& other = unequal.groups[1].machine;
      other.name = "other", other.peak_flops.fill(3e12), other.constants.host_kernel = 2 * host;
      unequal.fabrics = default_fabrics(unequal.groups);
      unequal = priced(unequal, facts, [](const Machine& machine) { return machine.constants; });
      for (const PricedCluster& cluster : {one, slow, unequal})
        for (int i = 0; i < 20; ++i) {
          const Drawn drawn = random_trained_step(random);
          const Compared bounds = compared(drawn.input, cluster);
          EXPECT_LE(bounds.passes_s, bounds.step_s * rounding) << trainer << " " << host << " " << drawn.text;
        }
    }
}

TEST(StepEstimate, IsALowerBoundOfEveryScheduleOfATrainer) {
  std::mt19937 random(29);
  int compared_ones = 0;
  for (const double host : {0.0, 5e-6, 5e-5})
    for (int i = 0; i < 30; ++i) {
      Drawn drawn = random_trained_step(random);
      for (const Schedule& schedule : all_schedules()) {
        Step& in = drawn.input;
        if (!takes(in, schedule)) continue;
        const Compared bounds =
            compared(in, trained_nodes(trainers()[i % trainers().size()].second, constants_with_host(host)));
        EXPECT_LE(bounds.passes_s, bounds.step_s * rounding) << schedule.name << drawn.text;
        EXPECT_GT(bounds.passes_s, 0);
        ++compared_ones;
      }
    }
  EXPECT_GT(compared_ones, 100);
}

Step small_step() {
  Step step;
  step.model = llama(
      "llama", {.layers = 8, .hidden = 128, .ffn = 384, .heads = 4, .kv_heads = 4, .vocab = 1024, .sequence = 64});
  step.global_batch = 8;
  return step;
}

// K-FAC has no moments for the matrices of layers. Its inverses are shared out among replicas, so they may be smaller.
TEST(StepEstimate, IsALowerBoundOfTheMemoryThatKfacTakesWhateverTheReplicas) {
  for (const auto& [data, context, pipeline] :
       {std::array{1, 1, 1}, std::array{2, 1, 1}, std::array{1, 2, 1}, std::array{4, 2, 1}, std::array{2, 1, 4}}) {
    Step step = small_step();
    step.optimizer.name = "kfac", step.fill = Fill::kfac;
    step.layout.data = data, step.layout.context = context, step.layout.pipeline = pipeline;
    ASSERT_TRUE(legal(step));
    const Lowered run = lowered(step, two_nodes());
    const double most = fullest(run.graph, replay(run.graph, run.durations));
    const double bound = StepEstimator(step, two_nodes()).estimate(step).memory_bytes;
    EXPECT_LE(bound, most * rounding) << data << context << pipeline;
    EXPECT_GT(bound, 0.5 * most) << data << context << pipeline;
  }
}

// Where a host is never late, and where it always is.
TEST(StepEstimate, OfATrainersOneRankIsTheStepItself) {
  for (const double host : {0.0, 1e-9, 1e-3})
    for (const double clip_norm : {0.0, 1.0})
      for (const Recompute recompute : {Recompute::none, Recompute::full}) {
        Step step = small_step();
        step.clip_norm = clip_norm, step.recompute = recompute;
        const Compared bounds = compared(step, trained_nodes({}, constants_with_host(host)));
        EXPECT_NEAR(bounds.estimate.bound_s, bounds.step_s, 1e-12 * bounds.step_s) << host << " " << clip_norm;
        EXPECT_EQ(bounds.estimate.terms.host > 0, host > 1e-6);
      }
}

// Four stages of two layers. The last one has the head and is the slowest, so it sets the pace: three stages fill and
// drain the pipeline, and at the end the first rank updates its parameters.
TEST(StepEstimate, OfAPipelineWithFreeMessagesIsMicroBatchesOfTheSlowestStageAndOneOfTheOthers) {
  StepConstants constants = constants_with_host(0);
  constants.node_start = constants.network_start = constants.network_hop = 0;
  PricedCluster cluster = trained_nodes({.cuts_transfers = false}, constants);
  for (Fabric& fabric : cluster.fabrics) fabric.bandwidth = 1e30, fabric.latency = 0;
  Step step = small_step();
  step.layout.pipeline = 4;
  const Machine& gpu = cluster.groups[0].machine;
  std::vector<double> pass_s(4, 0);
  for (const Operator& op : operators_of(step.model, 0, 10, work_shape(step)))
    pass_s[std::clamp((op.block - 1) / 2, 0, 3)] += constants.whole * (operator_seconds(gpu, op, Direction::forward) +
                                                                       operator_seconds(gpu, op, Direction::backward));
  double elements = 0;
  for (const int block : {0, 1, 2})
    elements += static_cast<double>(block_shard_elements(step.model, block, {}, false).sum());
  const double update_s = constants.whole * (constants.fixed + optimizer_seconds(gpu, elements, step.dtype));
  ASSERT_GT(pass_s[3], pass_s[0]);
  const double step_s = pass_s[0] + pass_s[1] + pass_s[2] + 8 * pass_s[3] + update_s;
  const Compared bounds = compared(step, cluster);
  EXPECT_NEAR(bounds.estimate.bound_s, step_s, 1e-9 * step_s);
  EXPECT_NEAR(bounds.step_s, step_s, 1e-9 * step_s);
}

TEST(StepEstimate, OfOneRankWithoutCommunicationIsTheStepItself) {
  Drawn drawn;
  Step& in = drawn.input;
  in.model = llama("llama",
                   {.layers = 8, .hidden = 128, .ffn = 384, .heads = 4, .kv_heads = 4, .vocab = 1024, .sequence = 64});
  in.global_batch = 4;
  PricedCluster cluster = two_nodes();
  const Lowered run = lowered(in, cluster);
  const double step = metrics(run, replay(run.graph, run.durations, 3)).step_time_s;
  EXPECT_NEAR(StepEstimator(in, cluster).estimate(in).bound_s, step, 1e-12 * step);
}

}  // namespace
}  // namespace slipway::test
