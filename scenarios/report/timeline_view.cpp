#include "scenarios/report/timeline_view.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "schedules/draw/timeline_trace.h"
#include "schedules/time/metrics.h"
#include "schedules/time/waits.h"

namespace slipway::scenarios {

SpanColour colour_of_kind(std::string_view kind) {
  static const std::map<std::string_view, SpanColour> colours = {
      {"forward", SpanColour::forward},     {"backward", SpanColour::backward},
      {"input-grad", SpanColour::backward}, {"weight-grad", SpanColour::weight_grad},
      {"recompute", SpanColour::recompute}, {"optimizer", SpanColour::optimizer},
      {"grad-norm", SpanColour::optimizer}, {"worker-norm", SpanColour::optimizer},
      {"tied-grad", SpanColour::optimizer},
  };
  if (is_communication(kind)) return SpanColour::communication;
  const auto found = colours.find(kind);
  return found == colours.end() ? SpanColour::other : found->second;
}

namespace {

// A rounding error of two dates that are equal.
constexpr double rounding = 1e-9;  // of the step

// Numbers texts in the order of their first use.
class Numbers {
 public:
  explicit Numbers(std::vector<std::string>& texts) : texts_(texts) {}
  std::uint32_t of(const std::string& text) {
    const auto [at, is_new] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return at->second;
  }

 private:
  std::vector<std::string>& texts_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

class Builder {
 public:
  Builder(int step, int window) : labels_(view_.labels), kinds_(view_.kinds), step_(step), window_(window) {
    view_.step = step;
  }

  // `task`: of the graph; 0 where there is none.
  void add(const TraceRecord& record, TaskId task = 0) {
    if (record.step / window_ != step_ / window_) return;
    LaneView& lane = lane_of(record);
    lane.spans.push_back(static_cast<std::uint32_t>(view_.spans.size()));
    TaskSpan span;
    span.start_s = record.start_s, span.end_s = record.end_s, span.wait_s = record.wait_s;
    span.busy_s = work_seconds(record), span.bytes = record.bytes;
    span.label = labels_.of(record.label), span.kind = kinds_.of(record.kind), span.step = record.step;
    view_.spans.push_back(span);
    at_.push_back({row_, record.group, 0, task});
    if (record.group < 0 && record.memory_peak_bytes > 0) {
      RankView& row = view_.rows[row_];
      row.memory.push_back({record.start_s, record.memory_peak_bytes});
      row.memory.push_back({record.end_s, record.memory_bytes});
    }
  }

  // same_as(rank): the ranks that do what it does, itself included. `causes`: per task of the graph; null: by dates.
  TimelineView finished(int ranks, const std::function<std::vector<int>(int)>& same_as,
                        const std::vector<CauseOfWait>* causes) {
    view_.ranks = ranks;
    view_.tasks = view_.spans.size();
    if (view_.spans.empty()) return std::move(view_);
    for (auto& [rank, row] : rows_) view_.rows[row].ranks = same_as(rank);
    begin_at_zero();
    for (RankView& row : view_.rows) order(row);
    if (causes == nullptr)
      find_causes();
    else
      set_causes(*causes);
    for (std::uint32_t row = 0; row < view_.rows.size(); ++row) find_exposed(row);
    merge_identical_rows();
    mark_critical_path();
    return std::move(view_);
  }

 private:
  struct Place {
    std::uint32_t row = 0;
    int group = -1;
    std::uint32_t lane = 0;  // of the row, once lanes are in order
    TaskId task = 0;
  };

  LaneView& lane_of(const TraceRecord& record) {
    const auto [at, is_new] = rows_.try_emplace(record.rank, static_cast<std::uint32_t>(view_.rows.size()));
    if (is_new) view_.rows.emplace_back();
    row_ = at->second;
    std::vector<LaneView>& lanes = view_.rows[row_].lanes;
    for (LaneView& lane : lanes)
      if (lane.name == record.lane) return lane;
    lanes.push_back({record.lane, record.group < 0, {}});
    return lanes.back();
  }

  // The step begins with its first work. A receiver that waits since the step before is no work.
  void begin_at_zero() {
    double first = std::numeric_limits<double>::infinity(), last = 0;
    for (const TaskSpan& span : view_.spans)
      first = std::min(first, begin_of_work(span)), last = std::max(last, span.end_s);
    for (TaskSpan& span : view_.spans) {
      const double work = begin_of_work(span) - first;
      span.start_s = std::max(0.0, span.start_s - first), span.end_s -= first;
      span.wait_s = std::max(0.0, work - span.start_s);
    }
    for (RankView& row : view_.rows)
      for (MemoryPoint& point : row.memory) point.at_s -= first;
    view_.seconds = last - first;
    slack_ = rounding * view_.seconds;
  }

  // Lanes that compute first; spans and memory by date.
  void order(RankView& row) {
    std::ranges::stable_sort(row.lanes, {}, [](const LaneView& lane) { return !lane.computes; });
    for (std::uint32_t l = 0; l < row.lanes.size(); ++l) {
      std::vector<std::uint32_t>& spans = row.lanes[l].spans;
      std::ranges::stable_sort(spans, {}, [&](std::uint32_t i) { return view_.spans[i].start_s; });
      for (const std::uint32_t i : spans) at_[i].lane = l;
    }
    std::ranges::stable_sort(row.memory, {}, &MemoryPoint::at_s);
  }

  bool communicates(std::uint32_t span) const { return at_[span].group >= 0; }
  double begin_of_work(const TaskSpan& span) const { return span.start_s + span.wait_s; }

  // A cause with several members is shown where it ran on the span's own rank.
  void set_causes(const std::vector<CauseOfWait>& causes) {
    view_.causes_by_dates = false;
    constexpr std::uint32_t end = ~0U;
    std::vector<std::uint32_t> first(causes.size(), end), next(view_.spans.size(), end);  // spans of each task
    for (std::uint32_t i = static_cast<std::uint32_t>(view_.spans.size()); i-- > 0;)
      next[i] = std::exchange(first[at_[i].task], i);
    for (std::uint32_t i = 0; i < view_.spans.size(); ++i) {
      const CauseOfWait& cause = causes[at_[i].task];
      TaskSpan& span = view_.spans[i];
      if (!cause.exists) continue;
      span.wait_for = wait_of(cause.reason);
      if (span.wait_for == Wait::step_before) continue;
      std::uint32_t shown = first[cause.task];
      for (std::uint32_t j = shown; j != end; j = next[j]) {
        if (at_[j].row != at_[i].row) continue;
        shown = j;
        break;
      }
      if (shown != end) span.cause = static_cast<std::int32_t>(shown);
    }
  }

  static Wait wait_of(Waits::Reason reason) {
    switch (reason) {
      case Waits::Reason::input:
        return Wait::input;
      case Waits::Reason::lane:
        return Wait::lane;
      default:
        return Wait::step_before;
    }
  }

  void find_causes() {
    for (const RankView& row : view_.rows) find_causes(row);
    // A communication begins with its last member, so it waited for what this member waited for.
    std::map<std::tuple<int, std::uint32_t, int>, std::uint32_t> last;  // (group, label, step) → member
    const auto key = [&](std::uint32_t i) {
      return std::tuple(at_[i].group, view_.spans[i].label, view_.spans[i].step);
    };
    for (std::uint32_t i = 0; i < view_.spans.size(); ++i) {
      if (!communicates(i)) continue;
      const auto [at, is_new] = last.try_emplace(key(i), i);
      if (!is_new && view_.spans[i].start_s > view_.spans[at->second].start_s) at->second = i;
    }
    std::vector<std::int32_t> causes;
    for (std::uint32_t i = 0; i < view_.spans.size(); ++i)
      causes.push_back(view_.spans[communicates(i) ? last.at(key(i)) : i].cause);
    for (std::uint32_t i = 0; i < view_.spans.size(); ++i) {
      view_.spans[i].cause = causes[i];
      if (causes[i] >= 0) view_.spans[i].wait_for = Wait::by_dates;
    }
  }

  // The cause of a span is the span of its rank that ended last before it began. Among several at one date it is that
  // of its lane.
  void find_causes(const RankView& row) {
    struct End {
      double at;
      std::uint32_t span, lane;
    };
    std::vector<End> ends;
    for (std::uint32_t l = 0; l < row.lanes.size(); ++l)
      for (const std::uint32_t i : row.lanes[l].spans) ends.push_back({view_.spans[i].end_s, i, l});
    std::ranges::stable_sort(ends, {}, &End::at);
    for (std::uint32_t l = 0; l < row.lanes.size(); ++l) {
      for (const std::uint32_t i : row.lanes[l].spans) {
        TaskSpan& span = view_.spans[i];
        auto at = std::ranges::upper_bound(ends, span.start_s + slack_, {}, &End::at);
        const End* best = nullptr;
        while (at != ends.begin() && (best == nullptr || (best->lane != l && (at - 1)->at >= best->at - slack_))) {
          --at;
          if (view_.spans[at->span].start_s >= span.start_s) continue;  // without duration, at this date
          if (best == nullptr || at->lane == l) best = &*at;
        }
        if (best != nullptr) span.cause = static_cast<std::int32_t>(best->span);
      }
    }
  }

  // Idle time of the compute lane while communication runs that the next task needs, also through other communications.
  void find_exposed(std::uint32_t number) {
    RankView& row = view_.rows[number];
    for (const LaneView& lane : row.lanes) {
      if (!lane.computes) continue;
      double free = 0;
      for (const std::uint32_t i : lane.spans) {
        const TaskSpan& span = view_.spans[i];
        if (span.start_s > free + slack_) add_exposed(row, number, free, span);
        free = std::max(free, span.end_s);
      }
    }
  }

  void add_exposed(RankView& row, std::uint32_t number, double free, const TaskSpan& next) {
    std::vector<IdleView> parts;
    for (std::int32_t at = next.cause; at >= 0; at = view_.spans[at].cause) {
      const auto cause = static_cast<std::uint32_t>(at);
      const TaskSpan& span = view_.spans[cause];
      if (!communicates(cause) || at_[cause].row != number || span.end_s <= free) break;
      const double from = std::max(free, begin_of_work(span));
      if (span.end_s > from) parts.push_back({from, span.end_s, at_[cause].lane});
    }
    row.exposed.insert(row.exposed.end(), parts.rbegin(), parts.rend());
  }

  bool are_equal(const TaskSpan& a, const TaskSpan& b) const {
    const auto values = [](const TaskSpan& s) {
      return std::tie(s.start_s, s.end_s, s.wait_s, s.bytes, s.label, s.kind);
    };
    return values(a) == values(b);
  }

  // Names of lanes may differ: they hold numbers of ranks.
  bool are_equal(const RankView& a, const RankView& b) const {
    return std::ranges::equal(a.lanes, b.lanes,
                              [&](const LaneView& x, const LaneView& y) {
                                return std::ranges::equal(x.spans, y.spans, [&](std::uint32_t i, std::uint32_t j) {
                                  return are_equal(view_.spans[i], view_.spans[j]);
                                });
                              }) &&
           std::ranges::equal(a.memory, b.memory, [](const MemoryPoint& x, const MemoryPoint& y) {
             return x.at_s == y.at_s && x.bytes == y.bytes;
           });
  }

  // A hash that equal rows share.
  std::size_t hash_of(const RankView& row) const {
    std::size_t hash = row.lanes.size();
    const auto mix = [&](std::size_t value) { hash = (hash ^ value) * 1099511628211U; };  // FNV's prime
    for (const LaneView& lane : row.lanes)
      for (const std::uint32_t i : lane.spans)
        mix(std::hash<double>()(view_.spans[i].start_s)), mix(view_.spans[i].label);
    return hash;
  }

  void merge_identical_rows() {
    std::vector<RankView> kept;
    std::multimap<std::size_t, std::size_t> by_hash;
    std::vector<std::int32_t> moved(view_.spans.size(), -1);  // a span of a dropped row → that of the kept one
    std::iota(moved.begin(), moved.end(), 0);
    for (RankView& row : view_.rows) {
      const std::size_t hash = hash_of(row);
      const auto [first, last] = by_hash.equal_range(hash);
      const auto twin =
          std::find_if(first, last, [&](const auto& entry) { return are_equal(kept[entry.second], row); });
      if (twin == last) {
        by_hash.emplace(hash, kept.size());
        kept.push_back(std::move(row));
        continue;
      }
      RankView& other = kept[twin->second];
      other.ranks.insert(other.ranks.end(), row.ranks.begin(), row.ranks.end());
      for (std::size_t l = 0; l < row.lanes.size(); ++l)
        for (std::size_t i = 0; i < row.lanes[l].spans.size(); ++i)
          moved[row.lanes[l].spans[i]] = static_cast<std::int32_t>(other.lanes[l].spans[i]);
    }
    view_.rows = std::move(kept);
    std::ranges::sort(view_.rows, {}, [](RankView& row) {
      std::ranges::sort(row.ranks);
      return row.ranks.empty() ? -1 : row.ranks.front();
    });
    for (TaskSpan& span : view_.spans)
      if (span.cause >= 0) span.cause = moved[static_cast<std::size_t>(span.cause)];
    keep_only_rows();
  }

  // Drops the spans of dropped rows.
  void keep_only_rows() {
    std::vector<std::int32_t> number(view_.spans.size(), -1);
    std::vector<TaskSpan> spans;
    std::vector<Place> places;
    for (RankView& row : view_.rows)
      for (LaneView& lane : row.lanes)
        for (std::uint32_t& i : lane.spans) {
          number[i] = static_cast<std::int32_t>(spans.size());
          spans.push_back(view_.spans[i]), places.push_back(at_[i]);
          i = static_cast<std::uint32_t>(spans.size() - 1);
        }
    for (TaskSpan& span : spans)
      if (span.cause >= 0) span.cause = number[static_cast<std::size_t>(span.cause)];
    view_.spans = std::move(spans), at_ = std::move(places);
    view_.tasks = view_.spans.size();
  }

  // "tp all-gather", "pp transfer"; a compute task's kind.
  std::string name_on_path(const std::string& lane, const TaskSpan& span) const {
    const std::string& kind = view_.kinds[span.kind];
    return is_communication(kind) ? lane.substr(0, lane.find('.')) + ' ' + kind : kind;
  }

  void mark_critical_path() {
    std::vector<const std::string*> lane_of(view_.spans.size());
    for (const RankView& row : view_.rows)
      for (const LaneView& lane : row.lanes)
        for (const std::uint32_t i : lane.spans) lane_of[i] = &lane.name;
    std::map<std::string, PathShare> shares;
    const auto add = [&](const std::string& name, SpanColour colour, double seconds) {
      PathShare& share = shares[name];
      share.name = name, share.colour = colour, share.seconds += seconds;
    };
    const auto last = std::ranges::max_element(view_.spans, {}, &TaskSpan::end_s);
    double reached = last->end_s;
    const TaskSpan* first = nullptr;
    for (auto at = static_cast<std::int32_t>(last - view_.spans.begin()); at >= 0;
         at = view_.spans[static_cast<std::size_t>(at)].cause) {
      const auto i = static_cast<std::size_t>(at);
      TaskSpan& span = view_.spans[i];
      add("host and gaps", SpanColour::other, std::max(0.0, reached - span.end_s));
      reached = std::min(reached, span.end_s);
      span.critical = true, first = &span;
      const double from = std::min(reached, begin_of_work(span));
      add(name_on_path(*lane_of[i], span), colour_of_kind(view_.kinds[span.kind]), reached - from);
      reached = from;
    }
    const bool from_before = first != nullptr && first->wait_for == Wait::step_before;
    add(from_before ? "the step before" : "host and gaps", SpanColour::other, reached);
    for (auto& [name, share] : shares)
      if (share.seconds > slack_) view_.path.push_back(share);
    std::ranges::stable_sort(view_.path, std::greater(), &PathShare::seconds);
  }

  TimelineView view_;
  Numbers labels_, kinds_;
  std::map<int, std::uint32_t> rows_;  // rank → row
  std::uint32_t row_ = 0;              // of the record at hand
  std::vector<Place> at_;              // per span
  int step_, window_;
  double slack_ = 0;
};

}  // namespace

std::vector<std::pair<std::string, double>> exposed_by_axis(const TimelineView& view) {
  std::map<std::string, double> seconds;
  for (const RankView& row : view.rows)
    for (const IdleView& idle : row.exposed) {
      const std::string& lane = row.lanes[idle.lane].name;
      seconds[lane.substr(0, lane.find('.'))] +=
          (idle.end_s - idle.start_s) * static_cast<double>(row.ranks.size()) / view.ranks;
    }
  std::vector<std::pair<std::string, double>> sorted(seconds.begin(), seconds.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, double>::second);
  return sorted;
}

int typical_step(const Trace& trace) {
  std::map<int, double> starts;  // of each window
  for (const TraceRecord& record : trace.records) {
    const auto [at, is_new] = starts.try_emplace(record.step / trace.window, record.start_s);
    if (!is_new) at->second = std::min(at->second, record.start_s);
  }
  std::vector<std::pair<double, int>> periods;
  for (auto at = starts.begin(); at != starts.end() && std::next(at) != starts.end(); ++at)
    if (at != starts.begin() || starts.size() == 2) periods.push_back({std::next(at)->second - at->second, at->first});
  if (periods.empty()) return 0;
  std::ranges::sort(periods);
  return periods[(periods.size() - 1) / 2].second * trace.window;
}

TimelineView view_of(const Trace& trace, int step) {
  Builder builder(step, trace.window);
  for (const TraceRecord& record : trace.records) builder.add(record);
  return builder.finished(
      trace.ranks, [](int rank) { return std::vector{rank}; }, nullptr);
}

TimelineView view_of(const TaskGraph& graph, const Timeline& timeline) {
  const int step = static_cast<int>(measured_step(timeline));
  Builder builder(step * graph.window, graph.window);
  each_record(graph, timeline, [&](const TraceRecord& record, TaskId task) { builder.add(record, task); },
              {.first_step = step, .last_step = step, .representatives_only = true});
  std::map<int, std::vector<int>> same;
  const int ranks = rank_count(graph.step.layout);
  for (int rank = 0; rank < ranks; ++rank)
    same[representative_of(graph.step.layout, graph.representatives, rank)].push_back(rank);
  const auto causes = causes_of_waits(graph, timeline, measured_step(timeline));
  return builder.finished(
      ranks, [&](int rank) { return same[rank]; }, &causes);
}

}  // namespace slipway::scenarios
