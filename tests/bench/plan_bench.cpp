// The speed of screening, bounding and pricing layouts: Llama 2 70B on 128 nodes of eight H100-like GPUs.
//
//   build/tests/plan_bench
//
// `Screen` is the closed form of every legal layout of the space (layouts/s on one core; the goal is 20,000). `Bound`
// is the walk through the schedule's actions, `Simulate` the simulation of one layout (its representative ranks:
// representatives.h). `Search` is the whole search on all cores (the goal is ten seconds on two).
#include <benchmark/benchmark.h>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/search/screen.h"
#include "scenarios/search/search.h"
#include "schedules/bound/estimate.h"
#include "sim/simulate.h"

namespace slipway::test {
namespace {

Scenario example(const std::string& name) {
  LoadResult result = load_scenario(SLIPWAY_SOURCE_DIR "/scenarios/examples/" + name + ".yaml", {});
  if (!result.errors.empty()) throw std::runtime_error(describe(result.errors));
  return std::move(result.scenario);
}

const Scenario& scenario() {
  static const Scenario loaded = example("llama-70b-1024xh100");
  return loaded;
}

const Step& first_guess() { return scenario().step; }

void Screen(benchmark::State& state) {
  std::int64_t layouts = 0;
  for (auto _ : state) layouts += screen(scenario(), search_space(scenario(), {}), 0.8, 1, [] { return false; }).legal;
  state.counters["layouts"] = static_cast<double>(layouts) / static_cast<double>(state.iterations());
  state.counters["layouts/s"] = benchmark::Counter(static_cast<double>(layouts), benchmark::Counter::kIsRate);
}

void Bound(benchmark::State& state) {
  StepEstimator estimator(scenario().step, priced_cluster(scenario()));
  for (auto _ : state) benchmark::DoNotOptimize(estimator.passes_bound(first_guess()));
}

void Simulate(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(price_layout(scenario(), first_guess()));
}

// The same step with all its ranks, to show the gain of representatives, on 64 GPUs.
void SimulateRepresentativesOf64(benchmark::State& state) {
  const Scenario small = example("llama-8b-64xh100");
  for (auto _ : state) benchmark::DoNotOptimize(price_layout(small, small.step));
}

void SimulateWholeOn64(benchmark::State& state) {
  for (auto _ : state) {
    const PreparedStep prepared = prepared_step(example("llama-8b-64xh100"));
    benchmark::DoNotOptimize(simulate(prepared.graph, prepared.cluster, prepared.durations, {}).tasks);
  }
}

void Search(benchmark::State& state) {
  SearchOptions options;
  options.memory_share = 0.8;
  for (auto _ : state) benchmark::DoNotOptimize(search_layouts(scenario(), search_space(scenario(), {}), options));
}

BENCHMARK(Screen)->Unit(benchmark::kMillisecond);
BENCHMARK(Bound)->Unit(benchmark::kMicrosecond);
BENCHMARK(Simulate)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(SimulateRepresentativesOf64)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(SimulateWholeOn64)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Search)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace slipway::test
