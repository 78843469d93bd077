// Membership of ranks in tasks, answered without a walk over member lists. A group of all ranks has as many
// predecessors and buffers as members, and a walk for each of them is quadratic.
//
//   communicator 5: ranks {4, 0, 2}  ──►  sorted {(0, 1), (2, 2), (4, 0)}: rank and place in the list
//
// Guarded by tests/schedules/task_graph_test.cpp: results equal walks of the member lists, and a group of all ranks
// has as many edges as members.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

class Membership {
 public:
  // `graph` must outlive this. Its tasks and communicators must not change.
  explicit Membership(const TaskGraph& graph);

  // Index of `rank` in members_of(graph, task); none when it takes no part. Logarithmic in the members.
  std::int32_t place_of(TaskId task, std::int32_t rank) const;
  bool has(TaskId task, std::int32_t rank) const { return place_of(task, rank) != none; }

  // Calls visit(place in members_of(graph, task)) for every member of `task` that takes part in `other` too.
  // The number of look-ups is the size of the smaller group.
  template <class Visit>
  void for_common(TaskId task, TaskId other, const Visit& visit) const {
    const auto members = members_of(graph_, task), others = members_of(graph_, other);
    if (members.size() <= others.size()) {
      for (std::size_t i = 0; i < members.size(); ++i)
        if (has(other, members[i])) visit(i);
    } else {
      for (const std::int32_t rank : others)
        if (const std::int32_t at = place_of(task, rank); at != none) visit(static_cast<std::size_t>(at));
    }
  }

 private:
  struct Member {
    std::int32_t rank, place;
  };
  const TaskGraph& graph_;
  std::vector<std::size_t> begin_{0};  // per communicator
  std::vector<Member> members_;        // by rank
};

// The predecessors that a member of a task takes part in too: what this member itself waits for. Only the tasks named
// are indexed; their edges are visited once.
class OwnPredecessors {
 public:
  OwnPredecessors(const TaskGraph& graph, const Membership& membership, std::vector<TaskId> tasks);

  // Empty for a rank that takes no part and for a task that was not named.
  std::span<const TaskId> of(TaskId task, std::int32_t rank) const;
  std::size_t edges() const { return rows_.values.size(); }

 private:
  static constexpr std::size_t not_named = ~std::size_t{0};
  const Membership& membership_;
  std::vector<std::size_t> first_row_;  // per task
  Rows rows_;                           // per (named task, member)
};

}  // namespace slipway::schedules
