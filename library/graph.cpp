#include "scenarios/predict/prepared_step.h"

#include "library/loading.h"
#include "slipway/graph.h"

namespace slipway {
namespace {

Task task_of(const scenarios::PreparedStep& prepared, schedules::TaskId id) {
  const schedules::TaskGraph& graph = prepared.graph;
  const schedules::Task& task = graph.tasks[id];
  const schedules::Work& work = graph.work(task);
  return {.label = schedules::label_of(graph, id),
          .kind = schedules::kind_of(graph, id),
          .rank = task.rank,
          .communicator = task.communicator,
          .stage = work.stage,
          .micro_batch = task.micro_batch,
          .flops = schedules::flops_of(graph, id),
          .bytes = work.bytes,
          .seconds = prepared.durations.seconds.at(id)};
}

}  // namespace

TaskGraph task_graph(const Scenario& scenario, bool all_ranks) {
  return translated([&] {
    const scenarios::PreparedStep prepared =
        scenarios::prepared_step(loaded(scenario), {.representatives_only = !all_ranks});
    const schedules::TaskGraph& inside = prepared.graph;
    TaskGraph graph;
    for (schedules::TaskId id = 0; id < inside.tasks.size(); ++id) {
      graph.tasks.push_back(task_of(prepared, id));
      const auto before = inside.predecessors[id];
      graph.predecessors.emplace_back(before.begin(), before.end());
    }
    for (std::size_t i = 0; i < inside.communicators.size(); ++i)
      graph.communicators.push_back({inside.communicators[i].name, inside.communicators[i].ranks});
    for (const schedules::Lane& lane : schedules::lanes_of(inside))
      graph.lanes.push_back({lane.rank, lane.communicator, lane.tasks});
    graph.order = inside.order;
    return graph;
  });
}

}  // namespace slipway
