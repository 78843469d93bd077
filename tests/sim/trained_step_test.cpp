// Steps on a cluster as a trainer uses it: the simulator against the list replay, task by task, where no two messages
// meet, and against closed forms where they do.
#include <gtest/gtest.h>

#include <cmath>

#include "models/machine/cost.h"
#include "models/machine/priced_cluster.h"
#include "models/machine/ring.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/critical_path.h"
#include "schedules/time/durations.h"
#include "schedules/time/host_issue.h"
#include "schedules/time/link_path.h"
#include "schedules/time/metrics.h"
#include "schedules/time/periodic.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"
#include "sim/together.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

// Kernels and collectives of round numbers. With a small model, every kind of message shows beside compute.
Machine measured_gpu() {
  Machine gpu;
  gpu.name = "round";
  gpu.memory_bytes = 80e9;
  gpu.generation = Generation::ampere;
  gpu.peak_flops.fill(1e13);
  gpu.memory_bandwidth = 1e12;
  gpu.reduce_bandwidth = 2e11;
  gpu.overlap_slowdown = 1.2;
  gpu.node_link = {"bus", 2e10, 2e-6, 1};
  gpu.network_link = {"wire", 4e9, 5e-6, 1};
  for (const Format format : {Format::bfloat16, Format::float32}) {
    gpu.kernels.gemm[static_cast<std::size_t>(format)] = GemmConstants{.share = 0.5, .launch = 3e-6};
    gpu.kernels.attention[static_cast<std::size_t>(format)] = {{16, {.share = 0.5, .memory = 1}}};
  }
  const auto set = [&](Collective collective, CollectiveConstants constants) {
    gpu.kernels.collective[static_cast<std::size_t>(collective)] = constants;
  };
  set(Collective::all_reduce, {.share = 0.8, .own = 0.3, .launch = 4e-6, .hop = 2e-6, .ramp = 1e-9});
  set(Collective::all_gather, {.share = 0.7, .own = 0.2, .launch = 3e-6, .hop = 1e-6, .ramp = 1e-9});
  set(Collective::all_to_all, {.share = 0.6, .own = 0.1, .launch = 3e-6, .hop = 1e-6, .ramp = 1e-9});
  return gpu;
}

struct Hardware {
  double host_kernel = 0;
  int nodes = 4, gpus = 4, gpus_per_port = 1;
  TrainerFacts trainer{};
};

PricedCluster priced_cluster(const Hardware& hardware) {
  PricedCluster cluster;
  cluster.name = "trained";
  cluster.groups = {{measured_gpu(), hardware.nodes, hardware.gpus}};
  cluster.fabrics = default_fabrics(cluster.groups);
  for (Fabric& fabric : cluster.fabrics)
    if (fabric.scope == Fabric::Scope::cluster) fabric.gpus_per_port = hardware.gpus_per_port;
  StepConstants constants = book_constants();
  constants.whole = 1.1;
  constants.host_kernel = hardware.host_kernel;
  constants.host_member = hardware.host_kernel / 4;
  constants.fixed = 1e-4;
  return priced(cluster, hardware.trainer, [&](const Machine&) { return constants; });
}

struct Axes {
  int tensor, context, pipeline, data, expert = 1;
};

Step step_of(const Axes& axes) {
  Step in;
  in.model =
      llama("llama", {.layers = 8, .hidden = 128, .ffn = 384, .heads = 8, .kv_heads = 8, .vocab = 512, .sequence = 64});
  in.layout.tensor = axes.tensor, in.layout.context = axes.context;
  in.layout.pipeline = axes.pipeline, in.layout.data = axes.data;
  if (axes.expert > 1) {
    in.model = llama("experts", {.layers = 8,
                                 .hidden = 128,
                                 .ffn = 64,
                                 .heads = 8,
                                 .kv_heads = 8,
                                 .vocab = 512,
                                 .sequence = 64,
                                 .experts = 8,
                                 .experts_per_token = 2,
                                 .shared_ffn = 64});
    in.layout.expert = axes.expert, in.layout.expert_tensor = 1;
    in.layout.sequence_parallel = axes.tensor > 1;
  }
  in.global_batch = axes.data * axes.pipeline * 2;
  return in;
}

// Every date within 1e-9 of the end of the steps.
void expect_same(const TaskGraph& graph, const Timeline& got, const Timeline& expected, const std::string& text) {
  ASSERT_EQ(got.start.size(), expected.start.size());
  const double tolerance = 1e-9 * expected.makespan_s;
  for (std::size_t i = 0; i < expected.start.size(); ++i) {
    const auto name = [&] {
      return text + " " + label_of(graph, static_cast<TaskId>(i % graph.tasks.size())) + " in step " +
             std::to_string(i / graph.tasks.size());
    };
    ASSERT_NEAR(got.start[i], expected.start[i], tolerance) << name();
    ASSERT_NEAR(got.end[i], expected.end[i], tolerance) << name();
  }
}

constexpr double fast_host = 1e-9, even_host = 1e-5, slow_host = 1e-3;  // seconds per kernel

TEST(TrainedStep, HasTheDatesOfTheReplayWhereNothingContends) {
  int steps = 0, by_host = 0;
  for (const double host : {0.0, fast_host, even_host, slow_host})
    for (const auto& axes : {Axes{4, 1, 4, 1}, Axes{2, 1, 2, 4}, Axes{2, 2, 2, 2}, Axes{1, 4, 1, 4}, Axes{1, 1, 4, 4},
                             Axes{2, 1, 2, 4, 4}, Axes{1, 1, 1, 16, 8}})
      for (const int zero : {0, 1, 2, 3})
        for (const char* schedule : {"1f1b", "interleaved-1f1b", "zb-h1"}) {
          Step in = step_of(axes);
          if (axes.pipeline == 1 && std::string(schedule) != "1f1b") continue;
          if (zero > 0 && axes.data * axes.context == 1) continue;
          if (zero > 1 && axes.expert > 1) continue;
          in.schedule = schedule, in.layout.zero = zero;
          in.layout.chunks = in.schedule == "interleaved-1f1b" ? 2 : 1;
          in.layout.sequence_parallel = axes.tensor > 1 && (axes.expert > 1 || zero % 2 == 0);
          in.clip_norm = zero % 2;
          TrainerFacts trainer;
          trainer.all_reduces_gradients = zero == 2;
          trainer.reduces_each_tensor = zero == 3;
          trainer.host_driven_collectives = true;
          const PricedCluster cluster = priced_cluster({.host_kernel = host, .trainer = trainer});
          TaskGraph graph = lower(in);
          for (Work& work : graph.works)
            if (work.kind == WorkKind::transfer) work.bytes = 0;  // flows may meet; closed forms do not
          const Durations durations = order_and_price(graph, cluster);
          const Timeline expected = replay(graph, durations, 3);
          const std::string text = in.schedule + " t" + std::to_string(axes.tensor) + " c" +
                                   std::to_string(axes.context) + " p" + std::to_string(axes.pipeline) + " d" +
                                   std::to_string(axes.data) + " z" + std::to_string(zero) + " host " +
                                   std::to_string(host);
          for (const bool chains : {true, false}) {
            SimulationOptions options;
            options.collectives = CollectiveFidelity::closed_form;
            options.chains = chains;
            expect_same(graph, simulate(graph, cluster, durations, options).timeline, expected, text);
            if (testing::Test::HasFatalFailure()) return;
          }
          Durations without = durations;
          without.host = {};
          by_host += replay(graph, without, 3).makespan_s < 0.99 * expected.makespan_s ? 1 : 0;
          ++steps;
        }
  EXPECT_GT(by_host, steps / 4);
  EXPECT_LT(by_host, steps);
}

// Transfers of two stages and collectives of one group are alone on their links.
TEST(TrainedStep, HasTheDatesOfTheReplayWithFlowsThatDoNotMeet) {
  for (const double host : {0.0, even_host, slow_host})
    for (const auto& axes : {Axes{1, 1, 2, 1}, Axes{1, 1, 1, 2}, Axes{1, 1, 1, 8}, Axes{4, 1, 1, 1}})
      for (const int zero : {0, 1}) {
        if (zero > 0 && axes.data == 1) continue;
        Step in = step_of(axes);
        in.layout.zero = zero;
        const PricedCluster cluster = priced_cluster(
            {.host_kernel = host, .nodes = axes.pipeline == 2 ? 2 : 4, .gpus = axes.pipeline == 2 ? 1 : 4});
        TaskGraph graph = lower(in);
        const Durations durations = order_and_price(graph, cluster);
        const Timeline expected = replay(graph, durations, 3);
        for (const auto fidelity : {CollectiveFidelity::automatic, CollectiveFidelity::flows})
          for (const bool chains : {true, false}) {
            SimulationOptions options;
            options.collectives = fidelity;
            options.chains = chains;
            const Simulation simulation = simulate(graph, cluster, durations, options);
            EXPECT_TRUE(simulation.flows > 0 || fidelity == CollectiveFidelity::automatic);
            expect_same(graph, simulation.timeline, expected, "host " + std::to_string(host));
            if (testing::Test::HasFatalFailure()) return;
          }
      }
}

// Every task starts when the last of these is over: what it waits for, what is before it on its lanes, and its hosts'
// issue. So it is under contention too, where tasks of two steps run at the same time.
TEST(TrainedStep, UnderContentionWaitsForNothingButItsHostsLanesAndPredecessors) {
  for (const double host : {even_host, slow_host})
    for (const auto& axes : {Axes{2, 1, 4, 4}, Axes{1, 1, 4, 4}, Axes{2, 2, 2, 4}})
      for (const int zero : {0, 1, 3}) {
        Step in = step_of(axes);
        in.layout.zero = zero;
        const PricedCluster cluster = priced_cluster(
            {.host_kernel = host, .nodes = 4, .gpus = axes.tensor * axes.context * axes.data, .gpus_per_port = 2});
        TaskGraph graph = lower(in);
        const Durations durations = order_and_price(graph, cluster);
        const Simulation simulation = simulate(graph, cluster, durations, {});
        EXPECT_GT(simulation.flows, 0U);
        const Timeline& timeline = simulation.timeline;
        const std::size_t count = graph.tasks.size();
        Hosts hosts(durations.host, timeline.steps);
        std::vector<double> rank_free(rank_count(in.layout), 0), communicator_free(graph.communicators.size(), 0);
        int by_host = 0;
        for (std::size_t step = 0; step < static_cast<std::size_t>(timeline.steps); ++step)
          for (const TaskId id : graph.order) {
            const Task& task = graph.tasks[id];
            double& free = task.communicator == none ? rank_free[task.rank] : communicator_free[task.communicator];
            double begin = free;
            for (const TaskId before : graph.predecessors[id])
              begin = std::max(begin, timeline.end[step * count + before]);
            for (const auto& [before, after] : graph.carried)
              if (after == id && step > 0) begin = std::max(begin, timeline.end[(step - 1) * count + before]);
            const double issued = hosts.start(step, id, task.communicator != none);
            by_host += issued > begin ? 1 : 0;
            const double start = timeline.start[step * count + id];
            ASSERT_NEAR(start, std::max(begin, issued), 1e-9 * timeline.makespan_s) << label_of(graph, id);
            hosts.begin(step, id, start);
            free = timeline.end[step * count + id];
            if (task.communicator == none) {
              ASSERT_GE(free, (1 - 1e-9) * hosts.end(step, id)) << label_of(graph, id);
            }
          }
        EXPECT_GT(by_host, 0);
      }
}

struct Alone {
  Algorithm algorithm;
  int nodes, gpus, gpus_per_port;
};

double seconds(const PricedCluster& cluster, Collective kind, const std::vector<std::vector<std::int32_t>>& groups,
               CollectiveFidelity fidelity, double bytes = 1e7) {
  HandGraph hand(rank_capacity(cluster));
  for (const auto& ranks : groups) hand.collective(kind, ranks, bytes);
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  options.collectives = fidelity;
  return simulate(hand.graph, cluster, options).timeline.makespan_s;
}

double seconds_of_transfer(const PricedCluster& cluster, int from, int to, double bytes) {
  HandGraph hand(rank_capacity(cluster));
  hand.transfer(from, to, bytes);
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  return simulate(hand.graph, cluster, options).timeline.makespan_s;
}

TEST(TrainedCollective, AloneTakesAsFlowsWhatItsPriceSays) {
  for (const Alone& at :
       {Alone{Algorithm::nccl, 4, 4, 1}, Alone{Algorithm::nccl, 4, 4, 2}, Alone{Algorithm::nccl, 1, 8, 1},
        Alone{Algorithm::nccl, 8, 1, 1}, Alone{Algorithm::ring, 4, 4, 1}, Alone{Algorithm::ring, 4, 4, 4},
        Alone{Algorithm::multi_ring, 4, 4, 4}, Alone{Algorithm::tree, 8, 4, 1}, Alone{Algorithm::tree, 9, 2, 2},
        Alone{Algorithm::hierarchical, 4, 4, 1}, Alone{Algorithm::hierarchical, 4, 4, 4}})
    for (const bool each_tensor : {false, true})
      for (const Collective kind :
           {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all}) {
        TrainerFacts trainer;
        trainer.reduces_each_tensor = each_tensor;
        PricedCluster cluster =
            priced_cluster({.nodes = at.nodes, .gpus = at.gpus, .gpus_per_port = at.gpus_per_port, .trainer = trainer});
        cluster.algorithms.fill(at.algorithm);
        std::vector<std::int32_t> ranks;
        for (int rank = 0; rank < rank_capacity(cluster); ++rank) ranks.push_back(rank);
        const double closed = seconds(cluster, kind, {ranks}, CollectiveFidelity::closed_form);
        for (const auto fidelity : {CollectiveFidelity::flows, CollectiveFidelity::automatic})
          EXPECT_NEAR(seconds(cluster, kind, {ranks}, fidelity), closed, 1e-9 * closed)
              << name_of(kind) << " " << name_of(at.algorithm) << " on " << at.nodes << " nodes of " << at.gpus << ", "
              << at.gpus_per_port << " a port";
      }
}

// What the links of an all-reduce of `ranks` carry, in seconds, if it is alone.
double on_links(const PricedCluster& cluster, const std::vector<std::int32_t>& ranks, double bytes) {
  const LinkPath path = path_of(cluster, {"dp", Axis::data, ranks});
  const int members = static_cast<int>(ranks.size());
  const Algorithm algorithm = algorithm_of(path, Collective::all_reduce, members, bytes);
  return path.measured->constants.whole * ring_traffic(Collective::all_reduce, members, bytes).bytes_per_link /
         links_of(path, Collective::all_reduce, algorithm).bandwidth;
}

TEST(TrainedCollective, TwoGroupsThatShareAPortEachTakeTwiceTheTimeOnLinks) {
  const double bytes = 1e8;
  // GPUs with a port each: both groups use those of ranks 0 and 4, whose ring has the same way.
  const PricedCluster own = priced_cluster({.nodes = 2, .gpus = 4});
  HandGraph hand(8);
  hand.collective(Collective::all_gather, {0, 4}, bytes);
  hand.graph.communicators.push_back(hand.graph.communicators.front());
  hand.collective(Collective::all_gather, {4, 0}, bytes);
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  const double alone = seconds(own, Collective::all_gather, {{0, 4}}, CollectiveFidelity::flows, bytes);
  const LinkPath path = path_of(own, {"dp", Axis::data, {0, 4}});
  const double links = path.measured->constants.whole * bytes / 2 /
                       links_of(path, Collective::all_gather, Algorithm::multi_ring).bandwidth;
  const Simulation both = simulate(hand.graph, own, options);
  EXPECT_GT(both.flows, 0U);
  EXPECT_NEAR(both.timeline.makespan_s, alone + links, 1e-9 * alone);
}

// The price of a message already has its share of the port; so all GPUs of it together are no slower.
TEST(TrainedCollective, GpusOfOnePortTogetherTakeWhatThePriceOfEachSays) {
  const double bytes = 1e8;
  const PricedCluster cluster = priced_cluster({.nodes = 2, .gpus = 4, .gpus_per_port = 2});
  const double alone = seconds(cluster, Collective::all_reduce, {{0, 4}}, CollectiveFidelity::closed_form, bytes);
  for (const auto fidelity : {CollectiveFidelity::flows, CollectiveFidelity::automatic}) {
    EXPECT_NEAR(seconds(cluster, Collective::all_reduce, {{0, 4}}, fidelity, bytes), alone, 1e-9 * alone);
    EXPECT_NEAR(seconds(cluster, Collective::all_reduce, {{0, 4}, {1, 5}}, fidelity, bytes), alone, 1e-9 * alone);
  }
  // A second message of each: four on one port.
  const double links = on_links(cluster, {0, 4}, bytes);
  EXPECT_NEAR(
      seconds(cluster, Collective::all_reduce, {{0, 4}, {1, 5}, {4, 0}, {5, 1}}, CollectiveFidelity::automatic, bytes),
      alone + links, 1e-9 * alone);
}

// launch + hop (n − 1) + v S/(B share) + own S/(n B) + ramp √(v S), as the study of kernels fits it
// (scenarios/studies/kernels/README.md), on a port as training has it; besides, the start and the sums of gradients.
TEST(TrainedCollective, InsideANodeTakesTheFormOfTheMeasuredKernelsOverSizeAndMembers) {
  const PricedCluster cluster = priced_cluster({.nodes = 1, .gpus = 8});
  const double port = 0.85 * 2e10, whole = 1.1, sums = 2e11, start = 4e-5;  // the book's share and start
  for (const int n : {2, 3, 8})
    for (const double S : {1e5, 1e7, 1e9}) {
      std::vector<std::int32_t> ranks(n);
      for (int rank = 0; rank < n; ++rank) ranks[rank] = rank;
      const double part = (n - 1.0) / n;
      const auto takes = [&](Collective kind, double expected) {
        for (const auto fidelity : {CollectiveFidelity::closed_form, CollectiveFidelity::flows})
          EXPECT_NEAR(seconds(cluster, kind, {ranks}, fidelity, S), whole * expected, 1e-9 * expected)
              << name_of(kind) << " of " << S << " bytes over " << n;
      };
      takes(Collective::all_reduce, start + 4e-6 + 2e-6 * (n - 1) + 2 * part * S / (port * 0.8) + 0.3 * S / n / port +
                                        1e-9 * std::sqrt(2 * part * S) + part * S / sums);
      const double gather =
          start + 3e-6 + 1e-6 * (n - 1) + part * S / (port * 0.7) + 0.2 * S / n / port + 1e-9 * std::sqrt(part * S);
      takes(Collective::all_gather, gather);
      takes(Collective::reduce_scatter, gather + part * S / sums);
    }
}

// One node each of a GPU and of one with half of all its rates and twice its starts.
PricedCluster mixed_cluster(bool slow_first, int nodes_of_slow, int nodes_of_fast) {
  Machine fast = measured_gpu(), slow = measured_gpu();
  fast.name = "fast", slow.name = "slow";
  slow.node_link.bandwidth /= 2, slow.network_link.bandwidth /= 2, slow.reduce_bandwidth /= 2;
  for (auto& constants : slow.kernels.collective)
    if (constants) constants->launch *= 2;
  PricedCluster cluster;
  if (nodes_of_fast > 0) cluster.groups.push_back({fast, nodes_of_fast, 2});
  cluster.groups.insert(slow_first ? cluster.groups.begin() : cluster.groups.end(), {slow, nodes_of_slow, 2});
  cluster.fabrics = default_fabrics(cluster.groups);
  return priced(cluster, {}, [](const Machine& machine) {
    StepConstants constants = book_constants();
    if (machine.name == "slow") constants.network_start *= 2, constants.network_hop *= 2, constants.node_start *= 2;
    return constants;
  });
}

TEST(TrainedCollective, BetweenTwoKindsOfMachineTakesTheTimeOfTheSlowerOne) {
  const std::vector<std::int32_t> all{0, 1, 2, 3};
  const PricedCluster slow = mixed_cluster(true, 2, 0);
  for (const bool slow_first : {true, false}) {
    const PricedCluster mixed = mixed_cluster(slow_first, 1, 1);
    for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                  Collective::all_to_all, Collective::shift})
      for (const auto& ranks : {all, std::vector<std::int32_t>{0, 2}, std::vector<std::int32_t>{3, 1}}) {
        const double expected = seconds(slow, kind, {ranks}, CollectiveFidelity::closed_form);
        EXPECT_NEAR(seconds(mixed, kind, {ranks}, CollectiveFidelity::closed_form), expected, 1e-12)
            << name_of(kind) << " of " << ranks.size() << (slow_first ? ", slow first" : ", fast first");
      }
    for (const auto& [from, to] : {std::pair{0, 2}, {3, 1}}) {
      const auto transfer = [&, from = from, to = to](const PricedCluster& cluster) {
        return seconds_of_transfer(cluster, from, to, 1e7);
      };
      EXPECT_NEAR(transfer(mixed), transfer(slow), 1e-12);
    }
  }
}

// The faster machine's own messages stay its own.
TEST(TrainedCollective, InsideANodeOfTheFasterMachineIsNotSlowedByTheOther) {
  const PricedCluster mixed = mixed_cluster(true, 1, 1), slow = mixed_cluster(true, 2, 0);
  const auto inside = [&](const PricedCluster& cluster, std::int32_t first) {
    return seconds(cluster, Collective::all_gather, {{first, first + 1}}, CollectiveFidelity::closed_form, 1e9);
  };
  EXPECT_DOUBLE_EQ(inside(mixed, 0), inside(slow, 0));
  EXPECT_NEAR(inside(mixed, 2) / inside(slow, 2), 0.5, 0.01);
}

// A GPU alone in its node has its port to itself; the four of the other node share theirs, whoever comes first.
TEST(TrainedCollective, BetweenNodesOfOneAndOfFourGpusHasAQuarterOfThePort) {
  const double bytes = 1e8;
  for (const bool one_first : {true, false}) {
    PricedCluster cluster;
    cluster.groups = {{measured_gpu(), 1, one_first ? 1 : 4}, {measured_gpu(), 1, one_first ? 4 : 1}};
    cluster.fabrics = default_fabrics(cluster.groups);
    for (Fabric& fabric : cluster.fabrics)
      if (fabric.scope == Fabric::Scope::cluster) fabric.gpus_per_port = 4;
    StepConstants constants = book_constants();
    constants.host_kernel = 0;
    cluster = priced(cluster, {}, [&](const Machine&) { return constants; });
    const double port = 0.8 * 4e9;
    const std::vector<std::int32_t> pair{0, one_first ? 1 : 4};
    EXPECT_NEAR(seconds(cluster, Collective::all_gather, {pair}, CollectiveFidelity::closed_form, bytes),
                3e-5 + 3e-6 + 1e-5 + bytes / 2 / (port / 4), 1e-12)
        << (one_first ? "one first" : "four first");
  }
}

// Two nodes of two GPUs behind one port each. A GPU has half of the port; the weak pair of nodes carries `factor` of a
// port for each message, so 0.6 slows nothing and 0.3 does.
TEST(TrainedCollective, OfGpusOnOnePortOfAWeakPairTakesTheLesserOfItsShareAndThePairs) {
  const double bytes = 1e8, port = 0.8 * 4e9, whole = 1.1;
  for (const double factor : {0.6, 0.3}) {
    PricedCluster cluster = priced_cluster({.nodes = 2, .gpus = 2, .gpus_per_port = 2});
    cluster.weak_pairs = {{0, 1, factor}};
    const double rate = std::min(0.5, factor) * port;
    const double links = whole * bytes / 2 / rate, alone = whole * (3e-5 + 3e-6 + 1e-5) + links;
    for (const auto fidelity :
         {CollectiveFidelity::closed_form, CollectiveFidelity::flows, CollectiveFidelity::automatic}) {
      EXPECT_NEAR(seconds(cluster, Collective::all_gather, {{0, 2}}, fidelity, bytes), alone, 1e-9 * alone) << factor;
      EXPECT_NEAR(seconds(cluster, Collective::all_gather, {{0, 2}, {1, 3}}, fidelity, bytes), alone, 1e-9 * alone)
          << factor;
    }
    // Four at once have a quarter of the port each, more than which 0.3 would give them: 1.2 ports.
    const double four = seconds(cluster, Collective::all_gather, {{0, 2}, {1, 3}, {2, 0}, {3, 1}},
                                CollectiveFidelity::automatic, bytes);
    EXPECT_NEAR(four, alone + links * (rate / (0.25 * port) - 1), 1e-9 * alone) << factor;
    for (const Algorithm algorithm : {Algorithm::nccl, Algorithm::ring, Algorithm::multi_ring, Algorithm::hierarchical})
      for (const Collective kind :
           {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all}) {
        cluster.algorithms.fill(algorithm);
        const double closed = seconds(cluster, kind, {{0, 1, 2, 3}}, CollectiveFidelity::closed_form, bytes);
        EXPECT_NEAR(seconds(cluster, kind, {{0, 1, 2, 3}}, CollectiveFidelity::flows, bytes), closed, 1e-9 * closed)
            << name_of(kind) << ' ' << name_of(algorithm) << ' ' << factor;
      }
  }
}

TEST(TrainedCollective, InsideANodeTwoGroupsOfTheSameGpusTakeTwiceTheTimeOnLinks) {
  const double bytes = 1e8;
  const PricedCluster cluster = priced_cluster({.nodes = 1, .gpus = 4});
  const std::vector<std::int32_t> ranks{0, 1, 2, 3};
  const double alone = seconds(cluster, Collective::all_reduce, {ranks}, CollectiveFidelity::closed_form, bytes);
  EXPECT_NEAR(seconds(cluster, Collective::all_reduce, {ranks, {1, 2, 3, 0}}, CollectiveFidelity::automatic, bytes),
              alone + on_links(cluster, ranks, bytes), 1e-9 * alone);
}

// A collective inside a node has no latency per round; its start is what it waits for.
TEST(TrainedCollective, ThatMostlyStartsIsNoTraffic) {
  const PricedCluster cluster = priced_cluster({.nodes = 1, .gpus = 4});
  HandGraph hand(4);
  hand.collective(Collective::all_reduce, {0, 1, 2, 3}, 8);
  hand.collective(Collective::all_reduce, {1, 2, 3, 0}, 8);
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  EXPECT_EQ(simulate(hand.graph, cluster, options).flows, 0U);
}

TEST(TrainedStep, OfASlowHostTakesTheHostsTime) {
  const PricedCluster cluster = priced_cluster({.host_kernel = slow_host, .nodes = 1, .gpus = 1});
  TaskGraph graph = lower(step_of({1, 1, 1, 1}));
  const Durations durations = order_and_price(graph, cluster);
  const Timeline timeline = simulate(graph, cluster, durations, {}).timeline;
  double issue = 0;
  for (const TaskId id : graph.order)
    issue += host_seconds(graph, graph.work(id), 1, Axis::tensor, cluster.groups[0].machine);
  const std::size_t count = graph.tasks.size();
  const TaskId first = graph.order.front();
  EXPECT_NEAR(timeline.start[2 * count + first] - timeline.start[count + first], issue, 0.02 * issue);
}

// Layers and micro-batches times one more forward pass of a layer, and four states of generators.
TEST(TrainedStep, OfASlowHostTakesTheStatesOfGeneratorsForEachRecomputedLayer) {
  const PricedCluster cluster = priced_cluster({.host_kernel = slow_host, .nodes = 1, .gpus = 1});
  const Machine& machine = cluster.groups[0].machine;
  const auto period = [&](Recompute recompute) {
    Step in = step_of({1, 1, 1, 1});
    in.recompute = recompute;
    TaskGraph graph = lower(in);
    const Timeline timeline = simulate(graph, cluster, order_and_price(graph, cluster), {}).timeline;
    const TaskId first = graph.order.front();
    return timeline.start[2 * graph.tasks.size() + first] - timeline.start[graph.tasks.size() + first];
  };
  TaskGraph graph = lower(step_of({1, 1, 1, 1}));
  double layers = 0;
  for (const Operator& op : graph.operators(0))
    if (blocks_of(graph.step.model)[op.block].kind == BlockKind::transformer)
      layers += host_seconds(machine, op, Direction::forward) * machine.constants.whole;
  layers += 8 * 4 * machine.constants.whole * slow_host;
  const double more = graph.micro_batches * layers;
  EXPECT_NEAR(period(Recompute::full) - period(Recompute::none), more, 0.02 * more);
}

// The device takes `device_s` for each compute task, the host one second, and that leads by `lead_s` at first.
bool has_period(double device_s, double lead_s) {
  Step in = step_of({1, 1, 2, 1});
  constexpr int micro_batches = 60;
  const auto actions = periodic_actions((in.global_batch = micro_batches, action_lists(in)), micro_batches, 1);
  in.actions = std::make_shared<const ActionLists>(actions.value().actions);
  in.global_batch = actions->micro_batches;
  const PricedCluster cluster = priced_cluster({.host_kernel = even_host, .nodes = 2, .gpus = 1});
  TaskGraph graph = lower(in);
  Durations durations = order_and_price(graph, cluster);
  std::vector<double> issued(2, -lead_s);
  for (const TaskId id : graph.order) {
    const bool computes = graph.tasks[id].communicator == none;
    durations[id] = computes ? device_s : 0;
    for (std::uint32_t at = durations.host.begin[id]; at < durations.host.begin[id + 1]; ++at) {
      HostIssue::Share& share = durations.host.shares[at];
      share.before = issued[share.rank];
      if (share.waits) issued[share.rank] = -lead_s;
      share.after = issued[share.rank];
      if (computes) issued[share.rank] += 1;
    }
  }
  return periodic_timeline(graph, durations, *actions, replay(graph, durations, 3)).has_value();
}

TEST(TrainedStep, RepeatsNoPeriodWhereAHostsLeadWouldBeUsedUpLater) {
  EXPECT_TRUE(has_period(1.1, 0));      // the device is slower
  EXPECT_TRUE(has_period(0.9, 0));      // the host is slower from the beginning
  EXPECT_TRUE(has_period(1.1, 1000));   // the device is slower, and the host leads
  EXPECT_FALSE(has_period(0.9, 1000));  // dates repeat only as long as the host leads
}

// What the terms of the critical path of a replayed step sum to, and the step's time.
struct PathAndStep {
  double path_s = 0, step_s = 0;
};
PathAndStep path_and_step(const Step& in, const PricedCluster& cluster) {
  TaskGraph graph = lower(in);
  const Durations durations = order_and_price(graph, cluster);
  const Timeline timeline = replay(graph, durations, 3);
  const std::vector<PathTerm> terms = critical_path(graph, cluster, durations, timeline);
  const std::vector<double> each = term_seconds(graph, cluster, terms);
  PathAndStep both{0, step_time_of(graph, timeline)};
  for (std::size_t i = 0; i < terms.size(); ++i) both.path_s += terms[i].count * each[i];
  return both;
}

TEST(TrainedStep, HasACriticalPathOfTasksAndLaunchesThatTakesAsLong) {
  for (const double host : {0.0, even_host, slow_host})
    for (const char* schedule : {"1f1b", "interleaved-1f1b"}) {
      Step in = step_of({2, 1, 2, 2});
      in.schedule = schedule, in.layout.chunks = in.schedule == "1f1b" ? 1 : 2;
      in.layout.zero = 1;
      const auto [path_s, step_s] = path_and_step(in, priced_cluster({.host_kernel = host}));
      EXPECT_NEAR(path_s, step_s, 1e-6 * step_s) << schedule << " host " << host;
    }
}

// Prices of the path are those of the replay also where a product hides a part of a message, and on slow GPUs.
TEST(TrainedStep, HasACriticalPathThatTakesAsLongWithHiddenMessagesAndOnSlowGpus) {
  for (const bool overlaps : {false, true})
    for (const bool slow : {false, true})
      for (const double host : {0.0, even_host}) {
        Step in = step_of({2, 1, 2, 2});
        in.layout.sequence_parallel = true, in.overlap_tensor = overlaps, in.layout.zero = 1;
        PricedCluster cluster = priced_cluster({.host_kernel = host});
        if (slow)
          for (int gpu = 0; gpu < 16; ++gpu) cluster.degradation.slowdown.push_back(1 + 0.1 * (gpu % 5));
        const auto [path_s, step_s] = path_and_step(in, cluster);
        EXPECT_NEAR(path_s, step_s, 1e-9 * step_s) << overlaps << slow << " host " << host;
      }
}

TEST(TrainedStep, OfTwoRanksOnAGpuWaitsForTheirHostsToo) {
  PricedCluster cluster = priced_cluster({.host_kernel = slow_host, .nodes = 1, .gpus = 1});
  cluster.ranks_per_gpu = 2;
  const std::vector<Fabric> shared = shared_gpu_fabrics(cluster.groups);
  cluster.fabrics.insert(cluster.fabrics.begin(), shared.begin(), shared.end());
  TaskGraph graph = lower(step_of({1, 1, 2, 1}));
  const Durations durations = order_and_price(graph, cluster);
  const Timeline expected = replay(graph, durations, 3), timeline = simulate(graph, cluster, durations, {}).timeline;
  EXPECT_GE(timeline.makespan_s, (1 - 1e-9) * expected.makespan_s);
  EXPECT_LT(timeline.makespan_s, 1.05 * expected.makespan_s);  // the GPU is idle most of the time
}

TEST(TrainedStep, OfTwoJobsThatDoNotMeetHasTheDatesOfEachAlone) {
  for (const double host : {even_host, slow_host}) {
    const PricedCluster hardware = priced_cluster({.host_kernel = host, .nodes = 2, .gpus = 4});
    TaskGraph graph = lower(step_of({2, 1, 1, 2}));
    PricedCluster a = hardware, b = hardware;
    a.gpu_of_rank = {0, 1, 2, 3}, b.gpu_of_rank = {4, 5, 6, 7};
    const Durations durations = order_and_price(graph, a);
    const Timeline alone = simulate(graph, a, durations, {}).timeline;
    const Job jobs[] = {{graph, a, durations, 3}, {graph, b, durations, 3}};
    for (const Timeline& timeline : simulate_together(hardware, jobs, {})) expect_same(graph, timeline, alone, "");
  }
}

}  // namespace
}  // namespace slipway::test
