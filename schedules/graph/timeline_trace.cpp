#include "schedules/graph/timeline_trace.h"

#include <algorithm>
#include <utility>

#include "schedules/graph/membership.h"

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

// When those inputs of a communication that come from a member itself are there, for all communications and
// members. A row of `first` per task; compute tasks have none.
class InputsReady {
 public:
  explicit InputsReady(const TaskGraph& graph)
      : graph_(graph), membership_(graph), carried_(carried_into(graph)) {
    std::size_t places = 0;
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      first_.push_back(places);
      if (graph.tasks[id].communicator != none) places += members_of(graph, id).size();
    }
    ready_.resize(places);
  }

  void enter_step(const Timeline& timeline, std::size_t step) {
    const std::size_t count = graph_.tasks.size(), base = step * count;
    std::fill(ready_.begin(), ready_.end(), 0);
    for (TaskId id = 0; id < count; ++id) {
      if (graph_.tasks[id].communicator == none) continue;
      for (const TaskId before : graph_.predecessors[id]) wait(id, before, timeline.end[base + before]);
      if (step == 0) continue;
      for (const TaskId before : carried_[id]) wait(id, before, timeline.end[base - count + before]);
    }
  }

  double at(TaskId communication, std::size_t member) const {
    return ready_[first_[communication] + member];
  }
  std::size_t member_of(const Lane& lane) const {
    return lane.tasks.empty()
               ? 0
               : static_cast<std::size_t>(membership_.place_of(lane.tasks.front(), lane.rank));
  }

 private:
  void wait(TaskId id, TaskId before, double end) {
    membership_.for_common(id, before, [&](std::size_t member) {
      double& ready = ready_[first_[id] + member];
      ready = std::max(ready, end);
    });
  }

  const TaskGraph& graph_;
  const Membership membership_;
  const Rows carried_;
  std::vector<std::size_t> first_;
  std::vector<double> ready_;
};

}  // namespace

Trace trace_of(const TaskGraph& graph, const Timeline& timeline, std::string engine) {
  Trace trace;
  trace.engine = std::move(engine);
  trace.ranks = rank_count(graph.layout);
  trace.steps = timeline.steps * graph.window;
  const std::vector<TaskText> texts = texts_of(graph);
  InputsReady inputs(graph);
  std::vector<Lane> lanes = lanes_of(graph);
  std::stable_sort(lanes.begin(), lanes.end(),
                   [](const Lane& a, const Lane& b) { return a.rank < b.rank; });
  std::size_t per_step = 0;
  for (const Lane& lane : lanes) per_step += lane.tasks.size();
  trace.records.reserve(per_step * static_cast<std::size_t>(timeline.steps));

  std::vector<double> lane_free(lanes.size(), 0);
  for (int step = 0; step < timeline.steps; ++step) {
    const auto at = static_cast<std::size_t>(step);
    inputs.enter_step(timeline, at);
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      const Lane& lane = lanes[l];
      const std::string name = lane_name(graph, lane);
      const std::size_t member = inputs.member_of(lane);
      for (const TaskId task : lane.tasks) {
        const std::size_t instance = at * graph.tasks.size() + task;
        const double start = timeline.start[instance], end = timeline.end[instance];
        double own = start;  // a compute task has one member: it starts when it is ready
        if (lane.communicator != none)
          own = std::min(start, std::max(lane_free[l], inputs.at(task, member)));
        lane_free[l] = end;
        const TaskText& text = texts[task];
        trace.records.push_back({step * graph.window + graph.tasks[task].step, lane.rank, name, text.label, text.kind, own, end, start - own,
                                 text.flops, text.bytes, lane.communicator});
      }
    }
  }
  return trace;
}

}  // namespace slipway
