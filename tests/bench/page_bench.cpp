// The page of --report for traces of a million tasks: 64 ranks, all different or all equal. The goal is five seconds from
// the trace to the page, which is at most five megabytes.
//
//   build/tests/page_bench
#include <benchmark/benchmark.h>

#include "scenarios/report/page.h"
#include "scenarios/report/report.h"
#include "scenarios/report/sections.h"

namespace slipway::test {
namespace {

// Forward, message, backward, message, and so on; every rank is later by another odd time.
Trace trace_of_ranks(int ranks, int tasks, bool equal) {
  Trace trace;
  trace.ranks = ranks, trace.steps = 1;
  trace.records.reserve(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(tasks));
  for (int rank = 0; rank < ranks; ++rank) {
    double at = equal ? 0 : 1e-4 * rank;
    for (int i = 0; i < tasks; ++i) {
      const bool message = i % 2 == 1, forward = i % 4 < 2;
      TraceRecord record;
      record.rank = rank, record.group = message ? 0 : -1;
      record.lane = message ? "tp" : "compute";
      record.label = std::to_string(rank % 8) + (forward ? 'F' : 'B') + std::to_string(i / 64) + ".L" +
                     std::to_string(i / 4 % 16) + (message ? ".ar" : ".mlp");
      record.kind = message ? "all-reduce" : forward ? "forward" : "backward";
      const double length = 1e-4 * (1 + (i * 7 + (equal ? 0 : rank * 3)) % 5);
      record.start_s = at, record.end_s = at + length;
      record.bytes = message ? 1 << 20 : 0;
      at += length;
      trace.records.push_back(std::move(record));
    }
  }
  return trace;
}

void Page(benchmark::State& state, bool equal) {
  const Trace trace = trace_of_ranks(64, 15'625, equal);
  double bytes = 0, spans = 0;
  for (auto _ : state) {
    TimelineSection section = timeline_section(view_of(trace, 0));
    spans = static_cast<double>(section.view.spans.size());
    Report report;
    report.command = "simulate";
    report.sections.push_back(std::move(section));
    bytes = static_cast<double>(page_text(report).size());
  }
  state.counters["tasks"] = static_cast<double>(trace.records.size());
  state.counters["spans"] = spans;
  state.counters["page_MB"] = bytes / 1e6;
}
BENCHMARK_CAPTURE(Page, all_ranks_differ, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Page, all_ranks_are_equal, true)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace slipway::test
