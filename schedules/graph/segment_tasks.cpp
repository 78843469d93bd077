#include "schedules/graph/segment_tasks.h"

#include <algorithm>
#include <numeric>

#include "schedules/graph/parallel.h"

namespace slipway {
namespace {

bool comes_first(const SegmentTask& a, const SegmentTask& b) { return a.fields() < b.fields(); }

// Sorts one rank's tasks after another's. Neighbours have theirs in the same disorder mostly: what sorted the one
// before is tried first.
class AlikeSort {
 public:
  void operator()(std::span<SegmentTask> list) {
    if (from_.size() == list.size() && arranged(list)) return;
    from_.resize(list.size());
    std::iota(from_.begin(), from_.end(), std::uint32_t{0});
    std::sort(from_.begin(), from_.end(), [&](std::uint32_t a, std::uint32_t b) { return comes_first(list[a], list[b]); });
    arranged(list);
  }

 private:
  // Puts `list` in the order of from_ if that sorts it.
  bool arranged(std::span<SegmentTask> list) {
    sorted_.clear();
    for (const std::uint32_t at : from_) sorted_.push_back(list[at]);
    if (!std::is_sorted(sorted_.begin(), sorted_.end(), comes_first)) return false;
    std::copy(sorted_.begin(), sorted_.end(), list.begin());
    return true;
  }

  std::vector<std::uint32_t> from_;  // where each place's task stood
  std::vector<SegmentTask> sorted_;
};

}  // namespace

std::vector<SegmentTask> sorted_segments(const TaskGraph& graph) {
  const auto is_segment = [&](const Task& task) {
    return task.kind == TaskKind::compute &&
           graph.works[static_cast<std::size_t>(task.work)].kind == WorkKind::segment;
  };
  const int last_rank = rank_count(graph.layout) - 1;  // a rank that is none stays in order beyond the ends
  const auto row_of = [&](const Task& task) {
    return static_cast<std::size_t>(std::clamp(task.rank, 0, last_rank));
  };
  std::vector<std::size_t> begin(static_cast<std::size_t>(last_rank) + 2);
  for (const Task& task : graph.tasks)
    if (is_segment(task)) ++begin[row_of(task) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<SegmentTask> segments(begin.back());
  std::vector<std::size_t> next = begin;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    if (!is_segment(task)) continue;
    const Work& work = graph.works[static_cast<std::size_t>(task.work)];
    segments[next[row_of(task)]++] = {
        {task.rank, work.stage, task.micro_batch, task.slice}, work.first_op, work.last_op, work.pass, id};
  }
  parts_in_parallel(begin.size() - 1, segments.size(), [&](std::size_t first, std::size_t last) {
    AlikeSort sort;
    for (std::size_t rank = first; rank < last; ++rank)
      sort(std::span(segments).subspan(begin[rank], begin[rank + 1] - begin[rank]));
  });
  return segments;
}

}  // namespace slipway
