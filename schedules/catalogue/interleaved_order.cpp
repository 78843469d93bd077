#include "schedules/catalogue/interleaved_order.h"

#include <algorithm>
#include <string>

namespace slipway::schedules {

std::optional<ShapeRefusal> refuse_group(const ScheduleShape& shape) {
  if (shape.group == 0) return {};
  const int rest = shape.micro_batches % shape.group;
  const std::string problem =
      shape.group < shape.pipeline        ? "is less than layout.pipeline = " + std::to_string(shape.pipeline)
      : shape.group > shape.micro_batches ? "is more than the " + std::to_string(shape.micro_batches) + " micro-batches"
      : rest > 0 && rest < shape.pipeline
          ? "leaves a last group of " + std::to_string(rest) + ", fewer than layout.pipeline"
          : "";
  if (problem.empty()) return {};
  return ShapeRefusal{"a group of schedule.group = " + std::to_string(shape.group) + " micro-batches " + problem,
                      "change schedule.group, or leave it out"};
}

std::vector<int> groups_of(const ScheduleShape& shape) {
  if (shape.group > 0) {
    std::vector<int> sizes(static_cast<std::size_t>(shape.micro_batches / shape.group), shape.group);
    if (const int rest = shape.micro_batches % shape.group; rest > 0) sizes.push_back(rest);
    return sizes;
  }
  const int count = std::max(1, shape.micro_batches / shape.pipeline);
  std::vector<int> sizes(static_cast<std::size_t>(count), shape.micro_batches / count);
  for (int i = 0; i < shape.micro_batches % count; ++i) ++sizes[i];
  return sizes;
}

namespace {

// All forwards, or all backwards, of a rank in their order.
std::vector<Action> turns_of(const ScheduleShape& shape, int rank, Pass pass) {
  std::vector<Action> list;
  int first = 0;
  for (const int size : groups_of(shape)) {
    for (int i = 0; i < shape.chunks; ++i) {
      const int chunk = pass == Pass::forward ? i : shape.chunks - 1 - i;
      for (int m = first; m < first + size; ++m) list.push_back({pass, chunk * shape.pipeline + rank, m});
    }
    first += size;
  }
  return list;
}

}  // namespace

ActionLists take_turns(const ScheduleShape& shape, int more_forwards, bool in_pairs) {
  ActionLists lists(static_cast<std::size_t>(shape.pipeline));
  for (int rank = 0; rank < shape.pipeline; ++rank) {
    auto& list = lists[rank];
    const std::vector<Action> forwards = turns_of(shape, rank, Pass::forward);
    const std::vector<Action> backwards = turns_of(shape, rank, Pass::backward);
    const int wanted = (shape.pipeline - rank - 1) * 2 + (shape.chunks - 1) * groups_of(shape).front() + more_forwards;
    const auto warm_up = std::min(static_cast<std::size_t>(wanted), forwards.size());
    list.assign(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(warm_up));
    for (std::size_t k = 0; k < backwards.size(); ++k) {
      if (k + warm_up < forwards.size()) {
        list.push_back(forwards[k + warm_up]);
        list.back().with_next = in_pairs;
      }
      list.push_back(backwards[k]);
    }
  }
  return lists;
}

}  // namespace slipway::schedules
