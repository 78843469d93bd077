#include "schedules/graph/compute_places.h"

#include <algorithm>
#include <limits>

namespace slipway {
namespace {

constexpr auto of_no_action = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void ComputePlaces::at_end(int rank, TaskId task) {
  state_.placed[static_cast<std::size_t>(rank)].emplace_back(of_no_action, task);
}

void ComputePlaces::behind(int rank, TaskId task, TaskId follower, bool waits_for_message) {
  behind_[static_cast<std::size_t>(rank)].push_back({task, follower, waits_for_message});
}

void ComputePlaces::write() {
  auto& order = state_.graph.compute_order.values;
  for (std::size_t rank = 0; rank < state_.placed.size(); ++rank) {
    const auto& list = state_.placed[rank];
    auto& behind = behind_[rank];
    std::stable_sort(behind.begin(), behind.end(), [](const Behind& a, const Behind& b) { return a.task < b.task; });
    std::vector<TaskId> late;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool passes_end = i + 1 == list.size() || list[i + 1].first == of_no_action;
      const TaskId task = list[i].second;
      order.push_back(task);
      order.insert(order.end(), late.begin(), late.end());
      late.clear();
      auto each = std::lower_bound(behind.begin(), behind.end(), task, [](const Behind& a, TaskId b) { return a.task < b; });
      for (; each != behind.end() && each->task == task; ++each)
        (each->waits_for_message && !passes_end ? late : order).push_back(each->follower);
    }
    state_.graph.compute_order.begin.push_back(static_cast<std::uint32_t>(order.size()));
  }
}

}  // namespace slipway
