#include "schedules/graph/membership.h"

#include <algorithm>

namespace slipway::schedules {

Membership::Membership(const TaskGraph& graph) : graph_(graph) {
  begin_.reserve(graph.communicators.size() + 1);
  for (const Communicator& communicator : graph.communicators) {
    for (std::size_t i = 0; i < communicator.ranks.size(); ++i)
      members_.push_back({communicator.ranks[i], static_cast<std::int32_t>(i)});
    // Stable: if a wrong graph lists a rank twice, the first place counts.
    std::stable_sort(members_.begin() + static_cast<std::ptrdiff_t>(begin_.back()), members_.end(),
                     [](const Member& a, const Member& b) { return a.rank < b.rank; });
    begin_.push_back(members_.size());
  }
}

std::int32_t Membership::place_of(TaskId id, std::int32_t rank) const {
  const Task& task = graph_.tasks[id];
  if (task.communicator == none) return task.rank == rank ? 0 : none;
  const auto c = static_cast<std::size_t>(task.communicator);
  const auto last = members_.begin() + static_cast<std::ptrdiff_t>(begin_[c + 1]);
  const auto at = std::lower_bound(members_.begin() + static_cast<std::ptrdiff_t>(begin_[c]), last, rank,
                                   [](const Member& member, std::int32_t r) { return member.rank < r; });
  return at != last && at->rank == rank ? at->place : none;
}

OwnPredecessors::OwnPredecessors(const TaskGraph& graph, const Membership& membership, std::vector<TaskId> tasks)
    : membership_(membership), first_row_(graph.tasks.size(), not_named) {
  std::vector<std::vector<TaskId>> own;
  for (const TaskId task : tasks) {
    first_row_[task] = rows_.size();
    own.resize(std::max(own.size(), members_of(graph, task).size()));
    for (const TaskId before : graph.predecessors[task])
      membership.for_common(task, before, [&](std::size_t member) { own[member].push_back(before); });
    for (std::size_t member = 0; member < members_of(graph, task).size(); ++member) {
      rows_.values.insert(rows_.values.end(), own[member].begin(), own[member].end());
      rows_.begin.push_back(static_cast<std::uint32_t>(rows_.values.size()));
      own[member].clear();
    }
  }
}

std::span<const TaskId> OwnPredecessors::of(TaskId task, std::int32_t rank) const {
  const std::int32_t member = membership_.place_of(task, rank);
  if (first_row_[task] == not_named || member == none) return {};
  return rows_[first_row_[task] + static_cast<std::size_t>(member)];
}

}  // namespace slipway::schedules
