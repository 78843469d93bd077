#include "schedules/check/check.h"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/topological_sort.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "schedules/check/findings.h"
#include "schedules/draw/grid.h"
#include "schedules/graph/membership.h"
#include "schedules/graph/parallel.h"
#include "schedules/time/replay.h"

namespace slipway::schedules {

namespace {

std::string gibibytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", bytes / (1024.0 * 1024.0 * 1024.0));
  return text;
}

// Within a step two tasks have the same label iff stage, pass, micro-batch, slice and suffix agree. The part that comes
// from the work is interned. Integers remain to be compared, so no label is spelled out.
struct WorkLabels {
  std::uint32_t in_micro_batch, once;  // once per step there is no pass
};

std::vector<WorkLabels> interned_labels(const TaskGraph& graph, std::size_t& count) {
  std::unordered_map<std::string, std::uint32_t> numbers;
  const auto number = [&numbers](const std::string& text) {
    return numbers.emplace(text, static_cast<std::uint32_t>(numbers.size())).first->second;
  };
  std::vector<WorkLabels> labels;
  for (const Work& work : graph.works) {
    const std::string stage = work.stage == none ? "" : std::to_string(work.stage);
    labels.push_back({number(stage + letter_of(work.pass) + work.suffix), number(stage + work.suffix)});
  }
  count = numbers.size();
  return labels;
}

auto label_fields(const Task& task) { return std::tuple(task.micro_batch, task.slice, task.step); }

// Tasks by the work's part of their label, then by the rest of it, then by id.
Rows tasks_by_label(const TaskGraph& graph) {
  std::size_t count = 0;
  const std::vector<WorkLabels> labels = interned_labels(graph, count);
  const auto row_of = [&](const Task& task) -> std::size_t {
    const WorkLabels& label = labels[task.work];
    return task.micro_batch == none ? label.once : label.in_micro_batch;
  };
  Rows rows;
  rows.begin.assign(count + 1, 0);
  for (const Task& task : graph.tasks) ++rows.begin[row_of(task) + 1];
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  rows.values.resize(graph.tasks.size());
  std::vector<std::uint32_t> next = rows.begin;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) rows.values[next[row_of(graph.tasks[id])]++] = id;
  const auto earlier = [&](TaskId a, TaskId b) { return label_fields(graph.tasks[a]) < label_fields(graph.tasks[b]); };
  for (std::size_t row = 0; row < count; ++row) {  // lowered in the order of micro-batches, so mostly sorted already
    const auto first = rows.values.begin() + rows.begin[row], last = rows.values.begin() + rows.begin[row + 1];
    if (!std::is_sorted(first, last, earlier)) std::stable_sort(first, last, earlier);
  }
  return rows;
}

}  // namespace

std::vector<Violation> check_memory(const std::vector<RankMemory>& memory, const std::vector<double>& capacity) {
  Findings findings(7);
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    if (fits(memory[rank], capacity[rank])) continue;
    findings.add({}, "rank " + std::to_string(rank) + " needs " + gibibytes(memory[rank].peak) + " of " +
                         gibibytes(capacity[rank]) + ", most of it during " + memory[rank].peak_task);
  }
  return findings.take();
}

std::vector<Violation> check_labels(const TaskGraph& graph) {
  Findings findings(9);
  const Rows rows = tasks_by_label(graph);
  std::int32_t ranks = rank_count(graph.step.layout);
  for (const Task& task : graph.tasks) ranks = std::max(ranks, task.rank + 1);
  for (const Communicator& group : graph.communicators) {
    for (const std::int32_t rank : group.ranks) ranks = std::max(ranks, rank + 1);
  }
  // owner[rank] is the place of the last task of that rank. It shares the label iff it is in the same run of tasks.
  const std::size_t nowhere = rows.values.size();
  std::vector<std::size_t> owner(ranks, nowhere);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::size_t run = rows.begin[row];
    for (std::size_t i = run; i < rows.begin[row + 1] && !findings.full(); ++i) {
      const TaskId id = rows.values[i];
      if (label_fields(graph.tasks[id]) != label_fields(graph.tasks[rows.values[run]])) run = i;
      for (const std::int32_t rank : members_of(graph, id)) {
        std::size_t& seen = owner[rank];
        if (seen >= run && seen < i) {
          findings.add({rows.values[seen], id},
                       "two tasks of rank " + std::to_string(rank) + " are called " + label_of(graph, id));
        }
        seen = i;
      }
    }
  }
  return findings.take();
}

std::vector<Violation> check_graph(const TaskGraph& graph) {
  std::vector<Violation> all;
  const auto collect_all = [&](const std::vector<std::function<std::vector<Violation>()>>& checks) {
    std::vector<std::vector<Violation>> found(checks.size());
    queued_in_parallel(checks.size(), graph.tasks.size(), [&](std::size_t i) { found[i] = checks[i](); });
    for (auto& more : found)
      all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  const std::vector<Lane> lanes = graph.order.size() == graph.tasks.size() ? lanes_of(graph) : std::vector<Lane>{};
  collect_all({[&] { return check_acyclic(graph); }, [&] { return check_lane_order(graph, lanes); }});
  if (!all.empty()) return all;             // the other checks require a valid order
  const bool is_window = graph.window > 1;  // the step that it repeats was checked (fill.cpp)
  collect_all({[&] { return is_window ? std::vector<Violation>{} : check_passes(graph); },
               [&] { return check_labels(graph); }, [&] { return check_buffers(graph); },
               [&] { return check_rendezvous(graph, lanes); }, [&] { return check_collectives(graph, lanes); },
               [&] { return check_transfers(graph); }});
  return all;
}

std::string describe(const TaskGraph& graph, const Violation& violation) {
  constexpr int columns_around = 8;
  const std::string head = "I" + std::to_string(violation.invariant) + ": " + violation.message + "\n";
  if (violation.culprits.empty()) return head;
  return head + grid(graph, {.ranks = {}, .culprits = violation.culprits, .around = columns_around});
}

// I1. The only file that includes Boost.Graph.

namespace {

using Csr = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                               boost::no_property, std::uint32_t, std::size_t>;

Csr csr_of(const TaskGraph& graph) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  edges.reserve(graph.successors.values.size());
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    for (const TaskId next : graph.successors[id]) edges.emplace_back(id, next);
  }
  return {boost::edges_are_sorted, edges.begin(), edges.end(), static_cast<std::uint32_t>(graph.tasks.size())};
}

bool has_topological_order(const Csr& graph) {
  std::vector<std::uint32_t> order;
  order.reserve(boost::num_vertices(graph));
  try {
    boost::topological_sort(graph, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    return false;
  }
  return true;
}

// A global order in which every task comes after its predecessors is a topological order. To verify it is quicker than
// to find one.
bool is_topological(const TaskGraph& graph) {
  const std::vector<std::uint32_t> position = positions_of(graph);
  if (position.size() != graph.tasks.size()) return false;
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    for (const TaskId next : graph.successors[id])
      if (position[next] <= position[id]) return false;
  return true;
}

// Returns one circle of tasks. What remains when everything that can run has run waits for something that remains too,
// so a walk backwards inside the rest must come round.
std::vector<TaskId> circle_in(const TaskGraph& graph) {
  std::vector<std::uint32_t> waiting(graph.tasks.size());
  std::vector<TaskId> ready;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    for (const TaskId next : graph.successors[id]) ++waiting[next];
  }
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (waiting[id] == 0) ready.push_back(id);
  }
  while (!ready.empty()) {
    const TaskId id = ready.back();
    ready.pop_back();
    for (const TaskId next : graph.successors[id]) {
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
  // before[x] = a task of the rest that x waits for.
  std::vector<std::int64_t> before(graph.tasks.size(), none), visited(graph.tasks.size(), none);
  std::int64_t at = none;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (waiting[id] == 0) continue;
    if (at == none) at = id;
    for (const TaskId next : graph.successors[id]) {
      if (waiting[next] > 0) before[next] = id;
    }
  }
  std::vector<TaskId> path;
  while (visited[at] == none) {
    visited[at] = static_cast<std::int64_t>(path.size());
    path.push_back(static_cast<TaskId>(at));
    at = before[at];
  }
  path.erase(path.begin(), path.begin() + visited[at]);
  std::reverse(path.begin(), path.end());
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  return path;
}

// `successors` must be `predecessors` read the other way: engines use either.
void check_transposed(const TaskGraph& graph, Findings& findings) {
  std::vector<std::uint64_t> balance(graph.tasks.size(), 0);  // sum of hashes of both ends' views
  const auto mixed = [](std::uint64_t x) { return (x + 0x9E3779B97F4A7C15ULL) * 0xBF58476D1CE4E5B9ULL; };
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    for (const TaskId before : graph.predecessors[id]) balance[id] += mixed(before);
    for (const TaskId next : graph.successors[id]) balance[next] -= mixed(id);
  }
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (balance[id] != 0) {
      findings.add({id}, "the predecessors of " + spoken(graph, id) + " are not those that name it as successor");
    }
  }
}

}  // namespace

std::vector<Violation> check_acyclic(const TaskGraph& graph) {
  Findings findings(1);
  if (!is_topological(graph) && !has_topological_order(csr_of(graph))) {
    std::vector<TaskId> circle = circle_in(graph);
    constexpr std::size_t most_named = 12;
    std::string path;
    for (std::size_t i = 0; i < std::min(circle.size(), most_named); ++i) path += label_of(graph, circle[i]) + " → ";
    if (circle.size() > most_named) path += "… → ";
    path += label_of(graph, circle.front());
    findings.add(std::move(circle), "tasks wait for each other in a circle: " + path);
  }
  check_transposed(graph, findings);
  return findings.take();
}

// I2 (every lane is a projection of the global order), I3 (members of a communicator see one sequence) and I8 (blocking
// rendezvous reaches the end): conditions on orders.

namespace {

bool is_member(const TaskGraph& graph, const Lane& lane) {
  const auto& ranks = graph.communicators[lane.communicator].ranks;
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
      findings.add({lane.tasks[i - 1], id}, name + " runs " + label_of(graph, lane.tasks[i - 1]) + " before " +
                                                label_of(graph, id) + ", the global order has it the other way round");
    }
  }
}

// Compares (kind, label, dtype) of lane positions. Ids decide nearly always, strings only where they differ.
bool same_event(const TaskGraph& graph, TaskId a, TaskId b) {
  if (a == b) return true;
  const auto dtype = [&](TaskId id) { return graph.work(id).dtype; };
  return graph.tasks[a].kind == graph.tasks[b].kind && dtype(a) == dtype(b) && kind_of(graph, a) == kind_of(graph, b) &&
         label_of(graph, a) == label_of(graph, b);
}

void compare_members(const TaskGraph& graph, const Lane& first, const Lane& other, Findings& findings) {
  const std::string& name = graph.communicators[first.communicator].name;
  const std::size_t common = std::min(first.tasks.size(), other.tasks.size());
  for (std::size_t i = 0; i < common; ++i) {
    const TaskId a = first.tasks[i], b = other.tasks[i];
    if (same_event(graph, a, b)) continue;
    findings.add({a, b}, "communicator " + name + ": as task " + std::to_string(i) + " rank " +
                             std::to_string(first.rank) + " runs " + label_of(graph, a) + " (" + kind_of(graph, a) +
                             "), rank " + std::to_string(other.rank) + " runs " + label_of(graph, b) + " (" +
                             kind_of(graph, b) + ")");
    return;
  }
  if (first.tasks.size() != other.tasks.size()) {
    const Lane& longer = first.tasks.size() > other.tasks.size() ? first : other;
    const Lane& shorter = &longer == &first ? other : first;
    findings.add({longer.tasks[common]}, "communicator " + name + ": rank " + std::to_string(shorter.rank) +
                                             " never runs " + label_of(graph, longer.tasks[common]) + ", which rank " +
                                             std::to_string(longer.rank) + " waits in");
  }
}

// Members of each communicator that have tasks.
std::vector<std::uint32_t> lowered_members(const TaskGraph& graph) {
  std::vector<std::uint32_t> counts;
  for (const Communicator& group : graph.communicators)
    counts.push_back(static_cast<std::uint32_t>(std::count_if(
        group.ranks.begin(), group.ranks.end(), [&](std::int32_t rank) { return is_lowered(graph, rank); })));
  return counts;
}

std::uint32_t places_of(const TaskGraph& graph, const std::vector<std::uint32_t>& members, TaskId task) {
  const std::int32_t communicator = graph.tasks[task].communicator;
  return communicator == none ? 1 : members[communicator];
}

// Sufficient for I8, without a replay: every lane runs in the global order, every task comes after its predecessors,
// and stands in as many lanes as it has members. Then the first task not yet run heads all its lanes and has all its
// inputs.
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

// Blocking rendezvous: a task runs when it heads the lanes of all its members and its predecessors are done.
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
  // Lists the lanes that hold each task, compressed.
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
    findings.add({}, "the global order is no permutation of the " + std::to_string(graph.tasks.size()) + " tasks");
    return findings.take();
  }
  const std::vector<std::uint32_t> members = lowered_members(graph);
  std::size_t expected = 0, present = 0;
  for (TaskId id = 0; id < graph.tasks.size() && !findings.full(); ++id) {
    expected += places_of(graph, members, id);
    for (const TaskId before : graph.predecessors[id]) {
      if (position[before] < position[id]) continue;
      findings.add({before, id}, "the global order runs " + spoken(graph, id) + " before " + spoken(graph, before) +
                                     ", which it needs");
    }
  }
  for (const Lane& lane : lanes) {
    if (findings.full()) break;
    present += lane.tasks.size();
    check_lane(graph, lane, position, findings);
  }
  if (!findings.full() && present != expected) {
    findings.add({}, "the lanes hold " + std::to_string(present) + " tasks, their members " + std::to_string(expected));
  }
  return findings.take();
}

std::vector<Violation> check_collectives(const TaskGraph& graph, const std::vector<Lane>& lanes) {
  Findings findings(3);
  std::vector<std::vector<const Lane*>> members(graph.communicators.size());
  for (const Lane& lane : lanes) {
    if (lane.communicator != none) members[lane.communicator].push_back(&lane);
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
      findings.add({},
                   "communicator " + graph.communicators[c].name + " lists rank " + std::to_string(*twin) + " twice");
    }
    for (const std::int32_t rank : ranks) {
      if (!is_lowered(graph, rank)) continue;
      Lane missing = nobody;
      missing.rank = rank, missing.communicator = static_cast<std::int32_t>(c);
      const auto found = lane_of.find(rank);
      compare_members(graph, *members[c].front(), found == lane_of.end() ? missing : *found->second, findings);
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

// I4 (a transfer has one sender, one receiver, equal bytes) and I5 (buffers are written before they are read, by one
// task, on a rank that takes part).

namespace {

std::string bytes_text(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f bytes", bytes);
  return text;
}

std::string end_defect(const TaskGraph& graph, std::span<const BufferId> buffers, std::int32_t rank, double bytes,
                       const char* verb) {
  if (buffers.size() != 1) {
    return std::string(verb) + " " + std::to_string(buffers.size()) + " buffers instead of one";
  }
  const Buffer& buffer = graph.buffers[buffers.front()];
  if (buffer.rank != rank) {
    return std::string(verb) + " a buffer of rank " + std::to_string(buffer.rank) + " instead of rank " +
           std::to_string(rank);
  }
  if (buffer.bytes != bytes) {
    return std::string(verb) + " " + bytes_text(buffer.bytes) + ", its message has " + bytes_text(bytes);
  }
  return {};
}

// True if `first` is certainly over when `second` starts. A direct edge or a common compute lane nearly always decides.
// Otherwise it walks backwards as far as the global order allows.
class Precedence {
 public:
  Precedence(const TaskGraph& graph, const std::vector<std::uint32_t>& position)
      : graph_(graph), position_(position), seen_(graph.tasks.size(), none), next_(seen_) {}

  // Queries about one `second` must come together.
  bool operator()(TaskId first, TaskId second) {
    if (std::exchange(second_, second) != second) {
      for (const TaskId before : graph_.predecessors[second]) next_[before] = second;
    }
    if (next_[first] == second) return true;
    if (position_[first] >= position_[second]) return false;
    const Task &a = graph_.tasks[first], &b = graph_.tasks[second];
    if (a.communicator == b.communicator && (a.communicator != none || a.rank == b.rank)) return true;
    return walk(first, second);
  }

 private:
  bool walk(TaskId first, TaskId second) {
    std::vector<TaskId> todo{second};
    const auto stamp = static_cast<std::int64_t>(stamps_++);
    while (!todo.empty()) {
      const TaskId at = todo.back();
      todo.pop_back();
      for (const TaskId before : graph_.predecessors[at]) {
        if (before == first) return true;
        if (position_[before] <= position_[first] || seen_[before] == stamp) continue;
        seen_[before] = stamp;
        todo.push_back(before);
      }
    }
    return false;
  }

  const TaskGraph& graph_;
  const std::vector<std::uint32_t>& position_;
  std::vector<std::int64_t> seen_;
  std::vector<std::int64_t> next_;  // the last `second` that a task precedes directly
  std::int64_t second_ = none;
  std::uint64_t stamps_ = 0;
};

const char* name_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::value:
      return "value";
    case BufferKind::gradient:
      return "gradient";
    case BufferKind::saved:
      return "saved";
    case BufferKind::bucket:
      return "bucket";
    case BufferKind::parameter:
      return "parameter";
    case BufferKind::scalar:
      return "scalar";
    case BufferKind::kept:
      return "kept";
  }
  return "";
}

std::string spoken_buffer(const TaskGraph& graph, BufferId id) {
  const Buffer& buffer = graph.buffers[id];
  return std::string("the ") + name_of(buffer.kind) + " buffer " + std::to_string(id) + " of rank " +
         std::to_string(buffer.rank);
}

void check_writers(const TaskGraph& graph, const Membership& membership, Findings& findings) {
  std::vector<std::int64_t> writer(graph.buffers.size(), none);
  for (TaskId id = 0; id < graph.tasks.size() && !findings.full(); ++id) {
    for (const BufferId buffer : graph.outputs[id]) {
      const Buffer& written = graph.buffers[buffer];
      if (!membership.has(id, written.rank)) {
        findings.add({id}, spoken(graph, id) + " writes " + spoken_buffer(graph, buffer) + ", where it does not run");
      }
      if (writer[buffer] != none) {
        const auto earlier = static_cast<TaskId>(writer[buffer]);
        findings.add({earlier, id}, spoken(graph, id) + " writes " + spoken_buffer(graph, buffer) + " again, after " +
                                        spoken(graph, earlier));
      } else if (written.writer != static_cast<std::int64_t>(id)) {
        findings.add({id}, spoken(graph, id) + " writes " + spoken_buffer(graph, buffer) + " that is another's");
      }
      writer[buffer] = id;
    }
  }
  for (BufferId buffer = 0; buffer < graph.buffers.size() && !findings.full(); ++buffer) {
    const std::int32_t claimed = graph.buffers[buffer].writer;
    if (claimed == none || writer[buffer] != none) continue;
    findings.add({static_cast<TaskId>(claimed)}, spoken(graph, static_cast<TaskId>(claimed)) + " should write " +
                                                     spoken_buffer(graph, buffer) + " and does not");
  }
}

}  // namespace

std::vector<Violation> check_transfers(const TaskGraph& graph) {
  Findings findings(4);
  for (TaskId id = 0; id < graph.tasks.size() && !findings.full(); ++id) {
    if (graph.tasks[id].kind != TaskKind::transfer) continue;
    const auto members = members_of(graph, id);
    if (members.size() != 2 || members[0] == members[1]) {
      findings.add({id}, spoken(graph, id) + " is a transfer: it needs one sender and one other rank that receives");
      continue;
    }
    const double bytes = graph.work(id).bytes;
    for (const std::string& defect : {end_defect(graph, graph.inputs[id], members[0], bytes, "sends"),
                                      end_defect(graph, graph.outputs[id], members[1], bytes, "receives")}) {
      if (!defect.empty()) findings.add({id}, spoken(graph, id) + " " + defect);
    }
  }
  return findings.take();
}

std::vector<Violation> check_buffers(const TaskGraph& graph) {
  Findings findings(5);
  const Membership membership(graph);
  check_writers(graph, membership, findings);
  const std::vector<std::uint32_t> position = positions_of(graph);
  if (position.size() != graph.tasks.size()) {
    findings.add({}, "there is no global order, so nobody knows when buffers are written");
    return findings.take();
  }
  Precedence precedes(graph, position);
  for (TaskId id = 0; id < graph.tasks.size() && !findings.full(); ++id) {
    for (const BufferId buffer : graph.inputs[id]) {
      const Buffer& read = graph.buffers[buffer];
      if (!membership.has(id, read.rank)) {
        findings.add({id}, spoken(graph, id) + " reads " + spoken_buffer(graph, buffer) + ", where it does not run");
      } else if (const auto writer = graph.writer(read); writer && !precedes(*writer, id)) {
        findings.add({*writer, id}, spoken(graph, id) + " reads " + spoken_buffer(graph, buffer) +
                                        " without waiting for " + spoken(graph, *writer) + ", which writes it");
      }
    }
  }
  return findings.take();
}

}  // namespace slipway::schedules
