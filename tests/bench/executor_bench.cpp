// The cost of one task in the lane runtime: on one lane, and with a hand-over to another lane's thread every time.
#include <benchmark/benchmark.h>

#include "exec/lanes/overhead.h"

namespace {

void task_overhead(benchmark::State& state) {
  constexpr int tasks = 20000;
  double seconds = 0;
  for (auto _ : state) {
    const double per_task = slipway::exec::task_overhead_seconds(static_cast<int>(state.range(0)), tasks);
    state.SetIterationTime(per_task * tasks);
    seconds = per_task;
  }
  state.counters["us_per_task"] = seconds * 1e6;
  state.SetItemsProcessed(state.iterations() * tasks);
}
BENCHMARK(task_overhead)->ArgName("lanes")->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
