#include "scenarios/predict/step_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace slipway::scenarios {
namespace {

// The compute lane of a rank in one window. Without bubble work a window is one step.
struct ComputeSpan {
  double start = std::numeric_limits<double>::infinity(), end = 0, busy = 0;
};

// [window][rank]. Leaves out a last window that the training's end cut, unless it is the only one.
std::vector<std::vector<ComputeSpan>> compute_spans(const Trace& trace) {
  const auto windows = static_cast<std::size_t>(std::max(1, trace.steps / trace.window));
  const auto ranks = static_cast<std::size_t>(trace.ranks);
  // The file's numbers of steps and ranks are untrusted, so large ones need as many records. For small ones the error
  // below names what is missing.
  constexpr std::size_t few = 1'000'000;
  if (windows * ranks > std::max(few, trace.records.size()))
    throw std::invalid_argument("the trace has " + std::to_string(trace.records.size()) + " tasks, too few for " +
                                std::to_string(trace.steps) + " steps of " + std::to_string(ranks) + " ranks");
  std::vector<std::vector<ComputeSpan>> spans(windows, std::vector<ComputeSpan>(ranks));
  for (const TraceRecord& record : trace.records) {
    const auto window = static_cast<std::size_t>(record.step / trace.window);
    const bool is_cut = window == spans.size() && record.step < trace.steps;
    if (is_communication(record.kind) || is_cut) continue;
    ComputeSpan& span = spans.at(window).at(record.rank);
    span.start = std::min(span.start, record.start_s);
    span.end = std::max(span.end, record.end_s);
    span.busy += record.end_s - record.start_s;
  }
  for (std::size_t window = 0; window < spans.size(); ++window) {
    for (std::size_t rank = 0; rank < spans[window].size(); ++rank) {
      if (std::isfinite(spans[window][rank].start)) continue;
      throw std::invalid_argument("the trace has no compute task of rank " + std::to_string(rank) + " in step " +
                                  std::to_string(steps_before(trace) + static_cast<int>(window) * trace.window + 1));
    }
  }
  return spans;
}

}  // namespace

int steps_before(const Trace& trace) {
  return trace.losses.empty() ? 0 : std::max(0, trace.losses.back().step + 1 - trace.steps);
}

StepTimes step_times(const Trace& trace) {
  if (trace.steps < 1 || trace.window < 1 || trace.ranks < 1)
    throw std::invalid_argument("the trace has no steps or no ranks");
  const auto spans = compute_spans(trace);
  const int windows = static_cast<int>(spans.size());
  const bool alone = windows == 1;
  const int length = std::min(trace.window, trace.steps);
  const int first = windows > 2 ? 1 : 0, last = alone ? 0 : windows - 2;
  StepTimes times;
  times.first = first * trace.window;
  times.last = last * trace.window + length - 1;
  double idle_sum = 0, period_sum = 0;
  for (int k = first; k <= last; ++k) {
    const auto& now = spans[k];
    double longest = 0, idle = 0, begin = now[0].start, end = now[0].end;
    for (std::size_t rank = 0; rank < now.size(); ++rank) {
      begin = std::min(begin, now[rank].start);
      end = std::max(end, now[rank].end);
    }
    for (std::size_t rank = 0; rank < now.size(); ++rank) {
      const double period = alone ? end - begin : spans[static_cast<std::size_t>(k) + 1][rank].start - now[rank].start;
      longest = std::max(longest, period);
      idle += period - now[rank].busy;
      period_sum += period;
    }
    idle_sum += idle;
    times.period_s.push_back(longest / length);
    times.idle_s.push_back(idle / static_cast<double>(now.size()) / length);
  }
  times.median_period_s = median(times.period_s);
  times.median_idle_s = median(times.idle_s);
  times.idle_share = period_sum > 0 ? idle_sum / period_sum : 0;
  return times;
}

}  // namespace slipway::scenarios
