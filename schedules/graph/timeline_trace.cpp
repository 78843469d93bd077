#include "schedules/graph/timeline_trace.h"

#include <algorithm>
#include <utility>

namespace slipway {
namespace {

// What is the same for all records of a task, made once.
struct TaskText {
  std::string label, kind;
  double flops = 0, bytes = 0;
};

std::vector<TaskText> texts_of(const TaskGraph& graph) {
  std::vector<TaskText> texts(graph.tasks.size());
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Work& work = graph.works[static_cast<std::size_t>(graph.tasks[id].work)];
    texts[id] = {label_of(graph, id), kind_of(graph, id), flops_of(graph, id), work.bytes};
  }
  return texts;
}

bool has_member(const TaskGraph& graph, TaskId task, std::int32_t rank) {
  const auto members = members_of(graph, task);
  return std::find(members.begin(), members.end(), rank) != members.end();
}

// Tasks of the previous step that each task waits for.
Rows carried_into(const TaskGraph& graph) {
  auto pairs = graph.carried;
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  Rows rows;
  rows.begin.assign(graph.tasks.size() + 1, 0);
  for (const auto& [from, to] : pairs) {
    ++rows.begin[to + 1];
    rows.values.push_back(from);
  }
  for (std::size_t i = 1; i < rows.begin.size(); ++i) rows.begin[i] += rows.begin[i - 1];
  return rows;
}

// When the inputs of `task` that come from `rank` itself are there.
double inputs_ready(const TaskGraph& graph, const Timeline& timeline, const Rows& carried, std::size_t step,
                    TaskId task, std::int32_t rank) {
  const std::size_t base = step * graph.tasks.size();
  double ready = 0;
  for (const TaskId before : graph.predecessors[task])
    if (has_member(graph, before, rank)) ready = std::max(ready, timeline.end[base + before]);
  if (step == 0) return ready;
  for (const TaskId before : carried[task])
    if (has_member(graph, before, rank))
      ready = std::max(ready, timeline.end[base - graph.tasks.size() + before]);
  return ready;
}

}  // namespace

Trace trace_of(const TaskGraph& graph, const Timeline& timeline, std::string engine) {
  Trace trace;
  trace.engine = std::move(engine);
  trace.ranks = rank_count(graph.layout);
  trace.steps = timeline.steps;
  const std::vector<TaskText> texts = texts_of(graph);
  const Rows carried = carried_into(graph);
  std::vector<Lane> lanes = lanes_of(graph);
  std::stable_sort(lanes.begin(), lanes.end(),
                   [](const Lane& a, const Lane& b) { return a.rank < b.rank; });
  std::size_t per_step = 0;
  for (const Lane& lane : lanes) per_step += lane.tasks.size();
  trace.records.reserve(per_step * static_cast<std::size_t>(timeline.steps));

  std::vector<double> lane_free(lanes.size(), 0);
  for (int step = 0; step < timeline.steps; ++step) {
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      const Lane& lane = lanes[l];
      const std::string name = lane_name(graph, lane);
      for (const TaskId task : lane.tasks) {
        const auto at = static_cast<std::size_t>(step);
        const std::size_t instance = at * graph.tasks.size() + task;
        const double start = timeline.start[instance], end = timeline.end[instance];
        double own = start;  // a compute task has one member: it starts when it is ready
        if (lane.communicator != none)
          own = std::min(
              start, std::max(lane_free[l], inputs_ready(graph, timeline, carried, at, task, lane.rank)));
        lane_free[l] = end;
        const TaskText& text = texts[task];
        trace.records.push_back({step, lane.rank, name, text.label, text.kind, own, end, start - own,
                                 text.flops, text.bytes, lane.communicator});
      }
    }
  }
  return trace;
}

}  // namespace slipway
