#include "schedules/catalogue/v_pattern.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace slipway::schedules {
namespace {

constexpr int passes_of_a_micro_batch = 6;  // on a rank: F, I and W of two stages

}  // namespace

std::optional<ShapeRefusal> refuse_v(const std::string& name, const ScheduleShape& shape) {
  if (shape.chunks != 2) {
    return ShapeRefusal{name + " needs 2 chunks per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 2 or choose another schedule.name"};
  }
  if (shape.slices != 1) {
    return ShapeRefusal{name + " does not cut sequences into slices", "set schedule.slices to 1"};
  }
  return {};
}

ActionLists v_order(const ScheduleShape& shape, VPattern pattern) {
  const int p = shape.pipeline;
  ActionLists lists(static_cast<std::size_t>(p));
  for (int rank = 0; rank < p; ++rank) {
    const int down = rank, up = 2 * p - 1 - rank;
    const std::array<int, 4> begins = pattern(p, rank);
    const std::array<std::pair<Pass, int>, 4> passes{
        {{Pass::forward, down}, {Pass::forward, up}, {Pass::input_grad, up}, {Pass::input_grad, down}}};
    std::vector<std::pair<int, Action>> placed;
    for (int m = 0; m < shape.micro_batches; ++m)
      for (std::size_t i = 0; i < passes.size(); ++i)
        placed.push_back({begins[i] + passes_of_a_micro_batch * m, {passes[i].first, passes[i].second, m}});
    std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    auto& list = lists[rank];
    std::vector<Action> waiting;
    std::size_t first_waiting = 0;
    int free = 0;  // the next place of the pattern
    for (const auto& [time, action] : placed) {
      for (; free < time && first_waiting < waiting.size(); ++free) list.push_back(waiting[first_waiting++]);
      list.push_back(action);
      if (action.pass == Pass::input_grad) waiting.push_back({Pass::weight_grad, action.stage, action.micro_batch});
      free = time + 1;
    }
    list.insert(list.end(), waiting.begin() + static_cast<std::ptrdiff_t>(first_waiting), waiting.end());
  }
  return lists;
}

}  // namespace slipway::schedules
