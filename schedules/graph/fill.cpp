#include "schedules/graph/fill.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include "schedules/graph/fill_place.h"
#include "schedules/graph/graph_builder.h"
#include "schedules/graph/window.h"

namespace slipway {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

void refuse_strangers(const TaskGraph& step, const Fillers& fillers) {
  const int ranks = rank_count(step.layout);
  for (const FillerItem& item : fillers.items) {
    const bool compute = item.task.communicator == none;
    if (compute && (item.task.rank < 0 || item.task.rank >= ranks))
      throw std::invalid_argument("a filler names rank " + std::to_string(item.task.rank));
    if (!compute && at(item.task.communicator) >= fillers.communicators.size())
      throw std::invalid_argument("a filler names communicator " + std::to_string(item.task.communicator));
    if (item.group < 0 || item.group >= fillers.groups)
      throw std::invalid_argument("a filler names group " + std::to_string(item.group));
  }
}

// The window graph with the items in it.
class Builder {
 public:
  Builder(const TaskGraph& step, const Fillers& fillers, const Assignment& assignment)
      : step_(step),
        fillers_(fillers),
        assignment_(assignment),
        graph_(window_of(step, assignment.steps)),
        first_filler_(graph_.tasks.size()) {}

  TaskGraph run() {
    for (std::size_t rank = 0; rank < fillers_.static_bytes.size(); ++rank)
      graph_.static_bytes[rank].weights += fillers_.static_bytes[rank];
    append_tasks();
    insert_in_lanes();
    depend();
    keep();
    graph_.predecessors = with_added(graph_.predecessors, edges_);
    sort_rows(graph_.predecessors);
    graph_.inputs = with_added(graph_.inputs, read_);
    graph_.outputs = with_added(graph_.outputs, written_);
    graph_.successors = transposed(graph_.predecessors);
    return std::move(graph_);
  }

 private:
  TaskId id_of(int item) const { return static_cast<TaskId>(first_filler_ + at(item)); }
  const FillPlace& place(int item) const { return assignment_.places[at(item)]; }

  void append_tasks() {
    const auto works = static_cast<std::int32_t>(graph_.works.size());
    const auto communicators = static_cast<std::int32_t>(graph_.communicators.size());
    graph_.works.insert(graph_.works.end(), fillers_.works.begin(), fillers_.works.end());
    graph_.communicators.insert(graph_.communicators.end(), fillers_.communicators.begin(),
                                fillers_.communicators.end());
    for (std::size_t i = 0; i < fillers_.items.size(); ++i) {
      Task task = fillers_.items[i].task;
      task.work += works;
      if (task.communicator != none) task.communicator += communicators;
      graph_.tasks.push_back(task);
      for (Rows* rows : {&graph_.inputs, &graph_.outputs, &graph_.predecessors})
        rows->begin.push_back(static_cast<std::uint32_t>(rows->values.size()));
    }
  }

  // Each rank's lane: the window's own tasks, and behind each of them the fillers placed there.
  void insert_in_lanes() {
    std::vector<std::vector<int>> of_rank(step_.compute_order.size());
    for (std::size_t i = 0; i < fillers_.items.size(); ++i)
      if (fillers_.items[i].task.communicator == none)
        of_rank[at(fillers_.items[i].task.rank)].push_back(static_cast<int>(i));
    Rows lanes;
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
      auto& items = of_rank[rank];
      std::sort(items.begin(), items.end(), [&](int a, int b) {
        const FillPlace &x = place(a), &y = place(b);
        return std::tuple(x.step, x.after, x.start_s, a) < std::tuple(y.step, y.after, y.start_s, b);
      });
      const auto own = graph_.compute_order[rank];
      const std::size_t per_step = step_.compute_order[rank].size();
      auto next = items.cbegin();
      for (std::size_t i = 0; i <= own.size(); ++i) {
        for (; next != items.cend() && at(place(*next).step) * per_step + place(*next).after <= i; ++next)
          lanes.values.push_back(id_of(*next));
        if (i < own.size()) lanes.values.push_back(own[i]);
      }
      lanes.begin.push_back(static_cast<std::uint32_t>(lanes.values.size()));
    }
    graph_.compute_order = std::move(lanes);
    position_.assign(graph_.tasks.size(), 0);
    for (std::size_t i = 0; i < graph_.compute_order.values.size(); ++i)
      position_[graph_.compute_order.values[i]] = i;
  }

  // Of a group whose items share a lane only the last one is waited for: the others end before it.
  std::vector<std::vector<TaskId>> last_of_groups() const {
    std::vector<std::vector<TaskId>> members(at(fillers_.groups));
    std::vector<std::vector<std::pair<std::int32_t, TaskId>>> last(members.size());
    for (std::size_t i = 0; i < fillers_.items.size(); ++i) {
      const FillerItem& item = fillers_.items[i];
      const TaskId id = id_of(static_cast<int>(i));
      auto& lanes = last[at(item.group)];
      const auto known = item.task.communicator != none
                             ? lanes.end()
                             : std::find_if(lanes.begin(), lanes.end(),
                                            [&](const auto& lane) { return lane.first == item.task.rank; });
      if (known == lanes.end())
        lanes.emplace_back(item.task.communicator == none ? item.task.rank : none, id);
      else if (position_[id] > position_[known->second])
        known->second = id;
    }
    for (std::size_t g = 0; g < last.size(); ++g)
      for (const auto& [rank, id] : last[g]) members[g].push_back(id);
    return members;
  }

  void depend() {
    const std::vector<std::vector<TaskId>> groups = last_of_groups();
    for (std::size_t i = 0; i < fillers_.items.size(); ++i) {
      const TaskId id = id_of(static_cast<int>(i));
      for (const TaskId before : fillers_.items[i].after) edges_.emplace_back(id, before);
      for (const FillerGroup group : fillers_.items[i].after_groups)
        for (const TaskId before : groups[at(group)]) edges_.emplace_back(id, before);
    }
  }

  TaskId first_of(FillerGroup group, std::int32_t rank) const {
    TaskId first = none_found;
    for (std::size_t i = 0; i < fillers_.items.size(); ++i) {
      const FillerItem& item = fillers_.items[i];
      const TaskId id = id_of(static_cast<int>(i));
      if (item.group != group || item.task.rank != rank) continue;
      if (first == none_found || position_[id] < position_[first]) first = id;
    }
    if (first == none_found) throw std::invalid_argument("a group without an item on the rank makes nothing there");
    return first;
  }

  // A buffer for every tensor that an item makes, or reads after the task that would free it.
  void keep() {
    std::vector<std::vector<TaskId>> readers(fillers_.kept.size());
    for (std::size_t i = 0; i < fillers_.items.size(); ++i)
      for (const int tensor : fillers_.items[i].reads)
        readers[at(tensor)].push_back(id_of(static_cast<int>(i)));
    for (std::size_t k = 0; k < readers.size(); ++k) {
      const KeptTensor& tensor = fillers_.kept[k];
      const bool made = tensor.from_item != none || tensor.from_group != none;
      const TaskId from = tensor.from_group != none ? first_of(tensor.from_group, tensor.rank)
                          : made                    ? id_of(tensor.from_item)
                                                    : tensor.from;
      if (!made)
        std::erase_if(readers[k], [&](TaskId reader) { return position_[reader] < position_[from]; });
      if (!made && readers[k].empty()) continue;
      const auto buffer = static_cast<BufferId>(graph_.buffers.size());
      graph_.buffers.push_back({BufferKind::kept, 0, made ? tensor.rank : graph_.tasks[from].rank,
                                tensor.bytes, static_cast<std::int32_t>(from)});
      written_.emplace_back(from, buffer);
      for (const TaskId reader : readers[k]) {
        read_.emplace_back(reader, buffer);
        edges_.emplace_back(reader, from);
      }
    }
  }

  static void sort_rows(Rows& rows) {
    Rows result;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      std::vector<std::uint32_t> values(rows[row].begin(), rows[row].end());
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
      result.values.insert(result.values.end(), values.begin(), values.end());
      result.begin.push_back(static_cast<std::uint32_t>(result.values.size()));
    }
    rows = std::move(result);
  }

  static constexpr TaskId none_found = static_cast<TaskId>(-1);
  using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  const TaskGraph& step_;
  const Fillers& fillers_;
  const Assignment& assignment_;
  TaskGraph graph_;
  std::size_t first_filler_;
  std::vector<std::size_t> position_;  // per compute task: in compute_order
  Pairs edges_, read_, written_;       // (task, before), (task, buffer), (task, buffer)
};

bool ends_step(const TaskGraph& graph, TaskId task) {
  const WorkKind kind = graph.works[at(graph.tasks[task].work)].kind;
  return kind != WorkKind::segment && kind != WorkKind::filler;
}

std::vector<RankFilling> ranks_of(const TaskGraph& step, const Durations& durations, const Fillers& fillers,
                                  const Assignment& assignment) {
  std::vector<RankFilling> ranks(step.compute_order.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const TaskId task : step.compute_order[rank])
      (ends_step(step, task) ? ranks[rank].end_s : ranks[rank].pass_s) += durations[task];
  for (std::size_t i = 0; i < fillers.items.size(); ++i) {
    const FillerItem& item = fillers.items[i];
    if (item.task.communicator != none) continue;
    RankFilling& rank = ranks[at(item.task.rank)];
    const FillPlace& place = assignment.places[i];
    rank.filler_s += item.seconds;
    if (place.behind) rank.behind_s += item.seconds;
    rank.steps = std::max(rank.steps, place.step + 1);
  }
  return ranks;
}

}  // namespace

Filling fill(const TaskGraph& step, const Durations& durations, const Fillers& fillers,
             const FillOptions& options) {
  refuse_strangers(step, fillers);
  const SteadyStep steady = steady_step(step, durations);
  const Assignment assignment = assign(steady, fillers, options);
  Filling filling;
  filling.graph = Builder(step, fillers, assignment).run();
  for (int s = 0; s < assignment.steps; ++s)
    filling.durations.insert(filling.durations.end(), durations.begin(), durations.end());
  for (const FillerItem& item : fillers.items) filling.durations.push_back(item.seconds);
  set_global_order(filling.graph, filling.durations);
  filling.period_s = steady.period_s;
  filling.window_period_s = steady_step(filling.graph, filling.durations).period_s;
  filling.ranks = ranks_of(step, durations, fillers, assignment);
  return filling;
}

Utilization utilization_of(const Filling& filling) {
  constexpr double most_ceiling_steps = 1e6;  // a bubble that is a rounding error holds nothing
  Utilization result;
  double end = 0;
  for (const RankFilling& rank : filling.ranks) {
    const double bubble = filling.period_s - rank.pass_s - rank.end_s;
    if (rank.filler_s <= 0) continue;
    if (bubble * most_ceiling_steps <= rank.filler_s) {
      result.ceiling_steps = 0;
      break;
    }
    // A rounding error more than whole steps is none.
    result.ceiling_steps = std::max(result.ceiling_steps, static_cast<int>(std::ceil(rank.filler_s / bubble - 1e-9)));
  }
  for (const RankFilling& rank : filling.ranks) end = std::max(end, rank.end_s);
  const double steps = filling.graph.window, ranks = static_cast<double>(filling.ranks.size());
  const double pipeline = filling.period_s - end, filled = filling.window_period_s / steps - end;
  for (const RankFilling& rank : filling.ranks) {
    result.before += rank.pass_s / pipeline / ranks;
    const double placed = result.ceiling_steps > 0 ? rank.filler_s / result.ceiling_steps : 0;
    result.ceiling += (rank.pass_s + placed) / pipeline / ranks;
    result.own_cycles +=
        (rank.pass_s + rank.filler_s / rank.steps) / (pipeline + rank.behind_s / rank.steps) / ranks;
    result.after += (rank.pass_s + rank.filler_s / steps) / filled / ranks;
  }
  return result;
}

}  // namespace slipway
