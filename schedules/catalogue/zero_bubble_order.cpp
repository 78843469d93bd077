#include "schedules/catalogue/zero_bubble_order.h"

#include <algorithm>

namespace slipway::schedules {

std::optional<ShapeRefusal> refuse_zero_bubble(const std::string& name, const ScheduleShape& shape) {
  if (shape.chunks != 1) {
    return ShapeRefusal{name + " runs one stage per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 1 or choose schedule.name zb-v"};
  }
  return refuse_slices(name, shape);
}

ActionLists zero_bubble_order(const ScheduleShape& shape, int depth) {
  const int p = shape.pipeline, m = shape.micro_batches;
  const int most_held = depth * p - (depth - 1);
  ActionLists lists(static_cast<std::size_t>(p));
  for (int rank = 0; rank < p; ++rank) {
    auto& list = lists[rank];
    int forwards = 0, weights = 0;
    const auto forward = [&] { list.push_back({Pass::forward, rank, forwards++}); };
    const auto weight = [&] { list.push_back({Pass::weight_grad, rank, weights++}); };
    while (forwards < std::min(most_held - depth * rank, m)) forward();
    for (int input = 0; input < m; ++input) {
      list.push_back({Pass::input_grad, rank, input});
      if (forwards < m) {
        if (forwards - weights == most_held) weight();
        forward();
      } else if (input - weights >= depth * rank) {
        weight();
      }
    }
    while (weights < m) weight();
  }
  return lists;
}

}  // namespace slipway::schedules
