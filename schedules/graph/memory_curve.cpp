#include "schedules/graph/memory_curve.h"

#include <algorithm>
#include <iterator>

namespace slipway {

MemoryCurve::MemoryCurve(const TaskGraph& graph, const BufferLives& lives, std::span<const BufferId> buffers, double fixed)
    : fixed_(fixed) {
  struct Change {
    double time, bytes;
  };
  std::vector<Change> changes;
  for (const BufferId buffer : buffers) {
    changes.push_back({lives.taken(buffer), graph.buffers[buffer].bytes});
    changes.push_back({lives.freed(buffer), -graph.buffers[buffer].bytes});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
  });
  double live = fixed;
  for (const Change& change : changes) {
    if (points_.empty() || points_.back().time != change.time) points_.push_back({change.time, live, live});
    live += change.bytes;
    points_.back().taken = live;
    if (change.bytes < 0) points_.back().given_back = live;
  }
}

MemoryCurve::Use MemoryCurve::during(double start, double end) const {
  const auto behind = [&](double time) {
    return std::upper_bound(points_.begin(), points_.end(), time, [](double t, const Point& point) { return t < point.time; });
  };
  const auto first = behind(start);
  Use use;
  use.most = use.at_end = first == points_.begin() ? fixed_ : std::prev(first)->taken;
  for (auto point = first; point != points_.end() && point->time <= end; ++point) {
    use.at_end = point->time == end ? point->given_back : point->taken;
    use.most = std::max(use.most, use.at_end);
  }
  return use;
}

}  // namespace slipway
