#include <algorithm>

#include "scenarios/report/timeline_view.h"

namespace slipway::scenarios {
namespace {

// Neighbours of a lane that become one span, one run after another. visit(first, last): places in lane.spans.
template <typename Visit>
void each_run(const TimelineView& view, const LaneView& lane, double cell_s, const Visit& visit) {
  const auto is_short = [&](const TaskSpan& span) { return !span.critical && span.end_s - span.start_s < cell_s; };
  const auto cell = [&](const TaskSpan& span) { return static_cast<std::int64_t>(span.start_s / cell_s); };
  for (std::size_t first = 0, last = 0; first < lane.spans.size(); first = last) {
    const TaskSpan& span = view.spans[lane.spans[first]];
    last = first + 1;
    if (is_short(span))
      while (last < lane.spans.size() && is_short(view.spans[lane.spans[last]]) &&
             cell(view.spans[lane.spans[last]]) == cell(span))
        ++last;
    visit(first, last);
  }
}

std::size_t runs(const TimelineView& view, double cell_s) {
  std::size_t count = 0;
  for (const RankView& row : view.rows)
    for (const LaneView& lane : row.lanes) each_run(view, lane, cell_s, [&](std::size_t, std::size_t) { ++count; });
  return count;
}

TaskSpan joined(const TimelineView& view, const LaneView& lane, std::size_t first, std::size_t last) {
  TaskSpan all = view.spans[lane.spans[first]];
  if (last == first + 1) return all;
  std::vector<double> busy(view.kinds.size());
  all.wait_s = all.busy_s = all.bytes = 0, all.tasks = 0, all.cause = -1;
  for (std::size_t i = first; i < last; ++i) {
    const TaskSpan& span = view.spans[lane.spans[i]];
    all.end_s = std::max(all.end_s, span.end_s);
    all.wait_s += span.wait_s, all.busy_s += span.busy_s, all.bytes += span.bytes, all.tasks += span.tasks;
    busy[span.kind] += span.busy_s;
  }
  all.kind = static_cast<std::uint32_t>(std::ranges::max_element(busy) - busy.begin());
  return all;
}

// Keeps the largest of the points that are in one cell, and the last.
std::vector<MemoryPoint> thinned(const std::vector<MemoryPoint>& points, double cell_s) {
  std::vector<MemoryPoint> kept;
  for (std::size_t first = 0, last = 0; first < points.size(); first = last) {
    MemoryPoint most = points[first];
    for (last = first; last < points.size() && points[last].at_s < points[first].at_s + cell_s; ++last)
      most.bytes = std::max(most.bytes, points[last].bytes);
    kept.push_back(most);
    if (last > first + 1 && points[last - 1].bytes != most.bytes) kept.push_back(points[last - 1]);
    last = std::max(last, first + 1);
  }
  return kept;
}

}  // namespace

TimelineView reduced(TimelineView view, std::size_t most) {
  constexpr double memory_points = 500;
  for (RankView& row : view.rows) row.memory = thinned(row.memory, view.seconds / memory_points);
  if (view.spans.size() <= most) return view;
  double cell_s = view.seconds / (1 << 22);
  while (runs(view, cell_s) > most && cell_s < view.seconds) cell_s *= 2;
  std::vector<std::int32_t> number(view.spans.size());
  std::vector<TaskSpan> spans;
  for (RankView& row : view.rows)
    for (LaneView& lane : row.lanes) {
      std::vector<std::uint32_t> kept;
      each_run(view, lane, cell_s, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) number[lane.spans[i]] = static_cast<std::int32_t>(spans.size());
        kept.push_back(static_cast<std::uint32_t>(spans.size()));
        spans.push_back(joined(view, lane, first, last));
      });
      lane.spans = std::move(kept);
    }
  for (TaskSpan& span : spans)
    if (span.cause >= 0) span.cause = number[static_cast<std::size_t>(span.cause)];
  view.spans = std::move(spans);
  return view;
}

}  // namespace slipway::scenarios
