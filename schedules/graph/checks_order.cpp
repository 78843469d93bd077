// I2 (every lane is a projection of the global order), I3 (members of a communicator see one sequence) and
// I8 (blocking rendezvous reaches the end): what must hold of orders.
#include <algorithm>
#include <map>

#include "schedules/graph/findings.h"

namespace slipway {
namespace {

bool is_member(const TaskGraph& graph, const Lane& lane) {
  const auto& ranks = graph.communicators[static_cast<std::size_t>(lane.communicator)].ranks;
  return std::find(ranks.begin(), ranks.end(), lane.rank) != ranks.end();
}

bool belongs(const Task& task, const Lane& lane) {
  return task.communicator == lane.communicator && (lane.communicator != none || task.rank == lane.rank);
}

void check_lane(const TaskGraph& graph, const Lane& lane, const std::vector<std::uint32_t>& position,
                Findings& findings) {
  const std::string name = "lane " + lane_name(graph, lane) + " of rank " + std::to_string(lane.rank);
  if (lane.communicator != none && !is_member(graph, lane)) {
    findings.add(lane.tasks, name + " belongs to no member of its communicator");
    return;
  }
  for (std::size_t i = 0; i < lane.tasks.size(); ++i) {
    const TaskId id = lane.tasks[i];
    if (!belongs(graph.tasks[id], lane)) findings.add({id}, spoken(graph, id) + " stands in " + name);
    if (i > 0 && position[lane.tasks[i - 1]] >= position[id]) {
      findings.add({lane.tasks[i - 1], id}, name + " runs " + label_of(graph, lane.tasks[i - 1]) +
                                                " before " + label_of(graph, id) +
                                                ", the global order has it the other way round");
    }
  }
}

// (kind, label, dtype) of lane positions; ids decide nearly always, strings only where they differ.
bool same_event(const TaskGraph& graph, TaskId a, TaskId b) {
  if (a == b) return true;
  const auto dtype = [&](TaskId id) {
    return graph.works[static_cast<std::size_t>(graph.tasks[id].work)].dtype;
  };
  return graph.tasks[a].kind == graph.tasks[b].kind && dtype(a) == dtype(b) &&
         kind_of(graph, a) == kind_of(graph, b) && label_of(graph, a) == label_of(graph, b);
}

void compare_members(const TaskGraph& graph, const Lane& first, const Lane& other, Findings& findings) {
  const std::string& name = graph.communicators[static_cast<std::size_t>(first.communicator)].name;
  const std::size_t common = std::min(first.tasks.size(), other.tasks.size());
  for (std::size_t i = 0; i < common; ++i) {
    const TaskId a = first.tasks[i], b = other.tasks[i];
    if (same_event(graph, a, b)) continue;
    findings.add({a, b}, "communicator " + name + ": as task " + std::to_string(i) + " rank " +
                             std::to_string(first.rank) + " runs " + label_of(graph, a) + " (" +
                             kind_of(graph, a) + "), rank " + std::to_string(other.rank) + " runs " +
                             label_of(graph, b) + " (" + kind_of(graph, b) + ")");
    return;
  }
  if (first.tasks.size() != other.tasks.size()) {
    const Lane& longer = first.tasks.size() > other.tasks.size() ? first : other;
    const Lane& shorter = &longer == &first ? other : first;
    findings.add({longer.tasks[common]}, "communicator " + name + ": rank " + std::to_string(shorter.rank) +
                                             " never runs " + label_of(graph, longer.tasks[common]) +
                                             ", which rank " + std::to_string(longer.rank) + " waits in");
  }
}

// Members of each communicator that have tasks.
std::vector<std::uint32_t> lowered_members(const TaskGraph& graph) {
  std::vector<std::uint32_t> counts;
  for (const Communicator& group : graph.communicators)
    counts.push_back(static_cast<std::uint32_t>(
        std::count_if(group.ranks.begin(), group.ranks.end(),
                      [&](std::int32_t rank) { return is_lowered(graph, rank); })));
  return counts;
}

std::uint32_t places_of(const TaskGraph& graph, const std::vector<std::uint32_t>& members, TaskId task) {
  const std::int32_t communicator = graph.tasks[task].communicator;
  return communicator == none ? 1 : members[static_cast<std::size_t>(communicator)];
}

// Of the tasks not yet run, the first in the global order heads all its lanes and has all that it needs, if every
// lane runs in that order, every task comes after its predecessors, and stands in as many lanes as it has members:
// then blocking rendezvous reaches the end, without being replayed.
bool runs_in_global_order(const TaskGraph& graph, const std::vector<Lane>& lanes) {
  const std::vector<std::uint32_t> position = positions_of(graph);
  if (position.size() != graph.tasks.size()) return false;
  std::vector<std::uint32_t> places(graph.tasks.size(), 0);
  for (const Lane& lane : lanes) {
    for (std::size_t i = 0; i < lane.tasks.size(); ++i) {
      ++places[lane.tasks[i]];
      if (i > 0 && position[lane.tasks[i - 1]] >= position[lane.tasks[i]]) return false;
    }
  }
  const std::vector<std::uint32_t> members = lowered_members(graph);
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (places[id] != places_of(graph, members, id)) return false;
    for (const TaskId before : graph.predecessors[id])
      if (position[before] >= position[id]) return false;
  }
  return true;
}

// Blocking rendezvous: a task runs when it heads the lanes of all its members and its predecessors are
// done.
class Rendezvous {
 public:
  Rendezvous(const TaskGraph& graph, const std::vector<Lane>& lanes)
      : graph_(graph), lanes_(lanes), head_(lanes.size(), 0), need_(graph.tasks.size(), 0) {
    const std::vector<std::uint32_t> members = lowered_members(graph);
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      need_[id] = static_cast<std::uint32_t>(graph.predecessors[id].size()) + places_of(graph, members, id);
    }
    count_places();
  }

  // True when every task ran.
  bool run() {
    std::size_t left = graph_.tasks.size();
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) reach_head(lane);
    while (!ready_.empty()) {
      const TaskId id = ready_.back();
      ready_.pop_back();
      --left;
      for (const TaskId next : graph_.successors[id]) release(next);
      for (std::uint32_t i = place_begin_[id]; i < place_begin_[id + 1]; ++i) {
        ++head_[places_[i]];
        reach_head(places_[i]);
      }
    }
    return left == 0;
  }

  std::vector<TaskId> stuck_heads() const {
    std::vector<TaskId> heads;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (head_[lane] < lanes_[lane].tasks.size()) heads.push_back(lanes_[lane].tasks[head_[lane]]);
    }
    std::sort(heads.begin(), heads.end());
    heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
    return heads;
  }

 private:
  // Which lanes hold each task, compressed.
  void count_places() {
    place_begin_.assign(graph_.tasks.size() + 1, 0);
    for (const Lane& lane : lanes_) {
      for (const TaskId id : lane.tasks) ++place_begin_[id + 1];
    }
    for (std::size_t i = 1; i < place_begin_.size(); ++i) place_begin_[i] += place_begin_[i - 1];
    places_.resize(place_begin_.back());
    std::vector<std::uint32_t> next(place_begin_.begin(), place_begin_.end() - 1);
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
      for (const TaskId id : lanes_[lane].tasks) places_[next[id]++] = lane;
    }
  }
  void reach_head(std::uint32_t lane) {
    if (head_[lane] < lanes_[lane].tasks.size()) release(lanes_[lane].tasks[head_[lane]]);
  }
  void release(TaskId id) {
    if (--need_[id] == 0) ready_.push_back(id);
  }

  const TaskGraph& graph_;
  const std::vector<Lane>& lanes_;
  std::vector<std::size_t> head_;
  std::vector<std::uint32_t> need_, place_begin_, places_;
  std::vector<TaskId> ready_;
};

}  // namespace

std::vector<Violation> check_lane_order(const TaskGraph& graph, const std::vector<Lane>& lanes) {
  Findings findings(2);
  const std::vector<std::uint32_t> position = positions_of(graph);
  if (position.size() != graph.tasks.size() || (position.empty() && !graph.order.empty())) {
    findings.add(
        {}, "the global order is no permutation of the " + std::to_string(graph.tasks.size()) + " tasks");
    return findings.take();
  }
  const std::vector<std::uint32_t> members = lowered_members(graph);
  std::size_t expected = 0, present = 0;
  for (TaskId id = 0; id < graph.tasks.size() && !findings.full(); ++id) {
    expected += places_of(graph, members, id);
    for (const TaskId before : graph.predecessors[id]) {
      if (position[before] < position[id]) continue;
      findings.add({before, id}, "the global order runs " + spoken(graph, id) + " before " +
                                     spoken(graph, before) + ", which it needs");
    }
  }
  for (const Lane& lane : lanes) {
    if (findings.full()) break;
    present += lane.tasks.size();
    check_lane(graph, lane, position, findings);
  }
  if (!findings.full() && present != expected) {
    findings.add({}, "the lanes hold " + std::to_string(present) + " tasks, their members " +
                         std::to_string(expected));
  }
  return findings.take();
}

std::vector<Violation> check_collectives(const TaskGraph& graph, const std::vector<Lane>& lanes) {
  Findings findings(3);
  std::vector<std::vector<const Lane*>> members(graph.communicators.size());
  for (const Lane& lane : lanes) {
    if (lane.communicator != none) members[static_cast<std::size_t>(lane.communicator)].push_back(&lane);
  }
  const Lane nobody{.rank = none, .communicator = none, .tasks = {}};
  for (std::size_t c = 0; c < members.size() && !findings.full(); ++c) {
    if (members[c].empty()) continue;
    std::map<std::int32_t, const Lane*> lane_of;
    for (const Lane* lane : members[c]) lane_of[lane->rank] = lane;
    std::vector<std::int32_t> ranks = graph.communicators[c].ranks;
    std::sort(ranks.begin(), ranks.end());
    const auto twin = std::adjacent_find(ranks.begin(), ranks.end());
    if (twin != ranks.end()) {
      findings.add({}, "communicator " + graph.communicators[c].name + " lists rank " +
                           std::to_string(*twin) + " twice");
    }
    for (const std::int32_t rank : ranks) {
      if (!is_lowered(graph, rank)) continue;
      Lane missing = nobody;
      missing.rank = rank, missing.communicator = static_cast<std::int32_t>(c);
      const auto found = lane_of.find(rank);
      compare_members(graph, *members[c].front(), found == lane_of.end() ? missing : *found->second,
                      findings);
    }
  }
  return findings.take();
}

std::vector<Violation> check_rendezvous(const TaskGraph& graph, const std::vector<Lane>& lanes) {
  Findings findings(8);
  if (runs_in_global_order(graph, lanes)) return {};
  Rendezvous replay(graph, lanes);
  if (!replay.run()) {
    std::vector<TaskId> heads = replay.stuck_heads();
    std::string names;
    constexpr std::size_t most_named = 8;
    for (std::size_t i = 0; i < std::min(heads.size(), most_named); ++i) {
      names += (i == 0 ? "" : "; ") + spoken(graph, heads[i]);
    }
    if (heads.size() > most_named) names += "; and " + std::to_string(heads.size() - most_named) + " more";
    findings.add(std::move(heads), "with blocking messages the ranks stop for ever at " + names);
  }
  return findings.take();
}

}  // namespace slipway
