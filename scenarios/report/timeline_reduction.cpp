#include <algorithm>

#include "scenarios/report/timeline_reduction.h"

namespace slipway::scenarios {
namespace {

// Neighbours of a lane that become one span, one run after another. visit(first, last): places in lane.spans.
template <typename Visit>
void each_run(const TimelineView& view, const LaneView& lane, double cell_s, const Visit& visit) {
  constexpr double critical_share = 1.0 / 64;  // of the cell
  const auto own_cell = [&](const TaskSpan& span) { return span.critical ? critical_share * cell_s : cell_s; };
  const auto is_short = [&](const TaskSpan& span) { return span.end_s - span.start_s < own_cell(span); };
  const auto cell = [&](const TaskSpan& span) { return static_cast<std::int64_t>(span.start_s / own_cell(span)); };
  for (std::size_t first = 0, last = 0; first < lane.spans.size(); first = last) {
    const TaskSpan& span = view.spans[lane.spans[first]];
    const auto joins = [&](const TaskSpan& next) {
      return next.critical == span.critical && is_short(next) && cell(next) == cell(span);
    };
    last = first + 1;
    if (is_short(span))
      while (last < lane.spans.size() && joins(view.spans[lane.spans[last]])) ++last;
    visit(first, last);
  }
}

// Exposed communication in the same way: what is shorter than a cell becomes one part with its seconds.
std::vector<IdleView> joined(const std::vector<IdleView>& parts, double cell_s) {
  std::vector<IdleView> kept;
  std::int64_t cell = -1;  // of the last one kept; -1: it is long
  for (const IdleView& part : parts) {
    const bool is_short = part.end_s - part.start_s < cell_s;
    const std::int64_t own = is_short ? static_cast<std::int64_t>(part.start_s / cell_s) : -1;
    if (is_short && own == cell)
      kept.back().end_s += part.end_s - part.start_s;
    else
      kept.push_back(part);
    cell = own;
  }
  return kept;
}

std::size_t size_of(const TimelineView& view, double cell_s) {
  std::size_t count = 0;
  for (const RankView& row : view.rows) {
    count += joined(row.exposed, cell_s).size();
    for (const LaneView& lane : row.lanes) each_run(view, lane, cell_s, [&](std::size_t, std::size_t) { ++count; });
  }
  return count;
}

TaskSpan joined(const TimelineView& view, const LaneView& lane, std::size_t first, std::size_t last) {
  TaskSpan all = view.spans[lane.spans[first]];
  if (last == first + 1) return all;
  std::vector<double> busy(view.kinds.size());
  all.wait_s = all.busy_s = all.bytes = 0, all.tasks = 0;
  for (std::size_t i = first; i < last; ++i) {
    const TaskSpan& span = view.spans[lane.spans[i]];
    all.end_s = std::max(all.end_s, span.end_s);
    all.wait_s += span.wait_s, all.busy_s += span.busy_s, all.bytes += span.bytes, all.tasks += span.tasks;
    busy[span.kind] += span.busy_s;
  }
  all.kind = static_cast<std::uint32_t>(std::ranges::max_element(busy) - busy.begin());
  return all;
}

}  // namespace

std::vector<MemoryPoint> thinned(const std::vector<MemoryPoint>& points, double seconds) {
  constexpr double cells = 500;
  std::vector<MemoryPoint> kept;
  for (std::size_t first = 0, last = 0; first < points.size(); first = last) {
    MemoryPoint most = points[first];
    for (last = first; last < points.size() && points[last].at_s < points[first].at_s + seconds / cells; ++last)
      most.bytes = std::max(most.bytes, points[last].bytes);
    kept.push_back(most);
    if (last > first + 1 && points[last - 1].bytes != most.bytes) kept.push_back(points[last - 1]);
    last = std::max(last, first + 1);
  }
  return kept;
}

TimelineView reduced(TimelineView view, std::size_t most) {
  double cell_s = view.seconds / (1 << 22);
  if (size_of(view, 0) <= most) return view;
  while (size_of(view, cell_s) > most && cell_s < view.seconds) cell_s *= 2;
  std::vector<std::int32_t> number(view.spans.size());
  std::vector<TaskSpan> spans;
  for (RankView& row : view.rows) {
    row.exposed = joined(row.exposed, cell_s);
    for (LaneView& lane : row.lanes) {
      std::vector<std::uint32_t> kept;
      each_run(view, lane, cell_s, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) number[lane.spans[i]] = static_cast<std::int32_t>(spans.size());
        kept.push_back(static_cast<std::uint32_t>(spans.size()));
        spans.push_back(joined(view, lane, first, last));
      });
      lane.spans = std::move(kept);
    }
  }
  for (TaskSpan& span : spans)
    if (span.cause >= 0) span.cause = number[static_cast<std::size_t>(span.cause)];
  view.spans = std::move(spans);
  return view;
}

}  // namespace slipway::scenarios
