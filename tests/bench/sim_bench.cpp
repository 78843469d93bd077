// The speed of one 1F1B step through the tool, each part apart: graph build (lower), global order, checks, simulation,
// trace. Tensor 1, so that compute and transfers are about half of the tasks each, and every transfer is a SimGrid
// flow. Argument: ranks; pipeline 8 or 16, the rest data parallel.
//
//   build/tests/sim_bench
//
// Rates are tasks (graph nodes) per second of wall time, because a simulation runs in a child process. `simulate`
// counts the whole call: planning, fork, platform, event loop, results; `loop` the event loop alone. In `Uneven` no two
// ranks are equally fast, so nothing happens at the same date. In the even step all replicas move together.
#include <benchmark/benchmark.h>

#include <map>

#include "models/machine/priced_cluster.h"
#include "schedules/check/check.h"
#include "schedules/draw/timeline_trace.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"

namespace slipway::test {
namespace {

// Round numbers of the size of a current GPU node, because only the speed of simulation matters.
PricedCluster bench_cluster(int ranks) {
  Machine gpu;
  gpu.name = "round numbers";
  gpu.memory_bytes = 80e9;
  gpu.peak_flops.fill(1e15);
  gpu.memory_bandwidth = 3e12;
  PricedCluster cluster;
  cluster.name = "bench";
  cluster.groups.push_back({gpu, ranks / 8, 8});
  Fabric node, network;
  node.name = "node";
  node.scope = Fabric::Scope::node;
  node.groups = network.groups = {0};
  node.bandwidth = 400e9;
  node.latency = 2e-6;
  network.name = "network";
  network.bandwidth = 50e9;
  network.latency = 5e-6;
  cluster.fabrics = {node, network};
  return cluster;
}

Step bench_step(int ranks) {
  Step input;
  input.layout.pipeline = ranks >= 512 ? 16 : 8;
  input.layout.data = ranks / input.layout.pipeline;
  input.layout.zero = 1;
  input.model = llama("bench", {.layers = 2 * input.layout.pipeline,
                                .hidden = 4096,
                                .ffn = 14336,
                                .heads = 32,
                                .kv_heads = 8,
                                .vocab = 128256,
                                .sequence = 4096});
  input.micro_batch = 1;
  input.global_batch = 64 * input.layout.data;
  return input;
}

struct OrderedStep {
  PricedCluster cluster;
  TaskGraph graph;
  Durations durations;
};

const OrderedStep& step_of(int ranks) {
  static std::map<int, OrderedStep> steps;
  auto [at, missing] = steps.try_emplace(ranks);
  OrderedStep& step = at->second;
  if (missing) {
    step.cluster = bench_cluster(ranks);
    step.graph = lower(bench_step(ranks));
    step.durations = durations_of(step.graph, step.cluster);
    set_global_order(step.graph, step.durations);
  }
  return step;
}

void count_tasks(benchmark::State& state, const TaskGraph& graph) {
  const auto tasks = static_cast<double>(graph.tasks.size());
  state.counters["tasks"] = tasks;
  state.counters["tasks/s"] =
      benchmark::Counter(tasks * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

int ranks_of(const benchmark::State& state) { return static_cast<int>(state.range(0)); }

void Lower(benchmark::State& state) {
  const Step input = bench_step(ranks_of(state));
  for (auto _ : state) benchmark::DoNotOptimize(lower(input));
  count_tasks(state, step_of(ranks_of(state)).graph);
}

void Order(benchmark::State& state) {
  const OrderedStep& step = step_of(ranks_of(state));
  TaskGraph graph = step.graph;
  for (auto _ : state) set_global_order(graph, step.durations);
  count_tasks(state, graph);
}

void Check(benchmark::State& state) {
  const OrderedStep& step = step_of(ranks_of(state));
  for (auto _ : state)
    if (!check_graph(step.graph).empty()) state.SkipWithError("the graph is not sound");
  count_tasks(state, step.graph);
}

void simulate_step(benchmark::State& state, const Durations& durations) {
  const OrderedStep& step = step_of(ranks_of(state));
  SimulationOptions options;
  options.steps = 1;
  double loop_s = 0;
  std::uint64_t flows = 0;
  for (auto _ : state) {
    const Simulation result = simulate(step.graph, step.cluster, durations, options);
    loop_s += result.wall_s;
    flows = result.flows;
  }
  count_tasks(state, step.graph);
  state.counters["flows"] = static_cast<double>(flows);
  state.counters["loop tasks/s"] =
      static_cast<double>(step.graph.tasks.size()) * static_cast<double>(state.iterations()) / loop_s;
}

void Simulate(benchmark::State& state) { simulate_step(state, step_of(ranks_of(state)).durations); }

void SimulateUneven(benchmark::State& state) {
  Durations durations = step_of(ranks_of(state)).durations;
  for (std::size_t id = 0; id < durations.size(); ++id)  // up to 10 % slower, the same each time
    durations[id] *= 1 + 0.1 * static_cast<double>(id * 2654435761U % 1000003) / 1000003;
  simulate_step(state, durations);
}

void MakeTrace(benchmark::State& state) {
  const OrderedStep& step = step_of(ranks_of(state));
  const Timeline timeline = replay(step.graph, step.durations);
  for (auto _ : state) benchmark::DoNotOptimize(trace_of(step.graph, timeline, "replay"));
  count_tasks(state, step.graph);
}

#define SLIPWAY_RANKS ->Arg(8)->Arg(64)->Arg(1024)->Arg(8192)->Unit(benchmark::kMillisecond)->UseRealTime()
BENCHMARK(Lower) SLIPWAY_RANKS;
BENCHMARK(Order) SLIPWAY_RANKS;
BENCHMARK(Check) SLIPWAY_RANKS;
BENCHMARK(Simulate) SLIPWAY_RANKS;
BENCHMARK(SimulateUneven) SLIPWAY_RANKS;
BENCHMARK(MakeTrace) SLIPWAY_RANKS;
#undef SLIPWAY_RANKS

}  // namespace
}  // namespace slipway::test
