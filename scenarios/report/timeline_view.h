// One step of a trace, as the page of `--report` shows it.
//
//   records of one step ──► spans by rank and lane ──► causes ──► identical ranks once ──► critical path ──► reduced
//
// A span's cause is what it waited for. A simulated step has its graph, so the cause is the task that had to end before and
// ended last (schedules/time/waits.h). A trace from a file has dates alone. There the cause is judged by them: of all that
// ended on the rank before the span could begin, the last. A communication begins when its last member is ready, so its
// cause is that of this member.
//
//   compute  ██ 0F0 ██░░░░░░░░░▒▒▒▒▒██ 0B0 ██     ░ idle, waits for another rank: bubble
//   pp.bwd            ···wait···▓▓▓▓▓             ▒ idle while the communication runs that the next task needs: exposed
// Guarded by tests/scenarios/timeline_view_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/trace/trace.h"
#include "schedules/time/replay.h"

namespace slipway::scenarios {

// The colour of a kind of task on the page.
enum class SpanColour : std::uint8_t { forward, backward, weight_grad, recompute, optimizer, communication, other };
SpanColour colour_of_kind(std::string_view kind);

// The reason why a span could not begin before its cause ended.
enum class Wait : std::uint8_t {
  none,         // it waited for nothing
  input,        // the cause makes what it needs
  lane,         // the cause was before it on its lane
  step_before,  // for a task of the step before, which is not in the view
  by_dates,     // judged by dates
};

struct TaskSpan {
  double start_s = 0, end_s = 0;  // from the view's begin
  double wait_s = 0;              // for other members, at its start
  double busy_s = 0;              // of its tasks without waiting; end − start − wait where it is one task
  double bytes = 0;
  std::uint32_t label = 0, kind = 0;  // indices in TimelineView::labels and kinds
  std::int32_t cause = -1;            // index in TimelineView::spans; −1: none that is shown
  Wait wait_for = Wait::none;
  std::int32_t step = 0;
  // More than 1: neighbours as one; then label is that of the first, kind that of most seconds.
  std::uint32_t tasks = 1;
  bool critical = false;
};

struct LaneView {
  std::string name;
  bool computes = false;
  std::vector<std::uint32_t> spans;  // indices in TimelineView::spans, ascending start
};

struct IdleView {
  double start_s = 0, end_s = 0;  // idle time of the compute lane with exposed communication
  std::uint32_t lane = 0;         // of the row: that of the communication; reduced: of the first of several
};

struct MemoryPoint {
  double at_s = 0, bytes = 0;  // holds until the next point
};

// The spans of a rank. Identical ranks share one object.
struct RankView {
  std::vector<int> ranks;
  std::vector<LaneView> lanes;
  std::vector<IdleView> exposed;
  std::vector<MemoryPoint> memory;  // of its tensors; empty where the trace does not say
};

// Seconds of the critical path by what is on it: a kind of task, "host and gaps" where nothing ended just
// before, and "the step before" up to the first task where that waited for it.
struct PathShare {
  std::string name;
  double seconds = 0;
  SpanColour colour = SpanColour::other;
};

struct TimelineView {
  double seconds = 0;  // the width: from the first start to the last end of the step
  int step = 0, ranks = 0;
  bool causes_by_dates = true;
  std::vector<std::string> labels, kinds;
  std::vector<TaskSpan> spans;
  std::vector<RankView> rows;
  std::vector<PathShare> path;  // sums to `seconds`; the longest first
  std::uint64_t tasks = 0;      // of all rows before reduction
};

// The step of a trace with the median period, without the first and the last.
int typical_step(const Trace& trace);
TimelineView view_of(const Trace& trace, int step);
// The measured step of a simulated timeline (schedules/time/metrics.h).
TimelineView view_of(const TaskGraph& graph, const Timeline& timeline);

// Seconds of exposed communication, mean over ranks, by the first part of the lane's name ("tp", "dp", "pp"); the most
// first.
std::vector<std::pair<std::string, double>> exposed_by_axis(const TimelineView& view);

}  // namespace slipway::scenarios
