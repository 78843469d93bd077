// Task graphs and clusters written by hand, for tests whose truth is a closed form.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "models/machine/priced_cluster.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"

namespace slipway::test {

// Tasks in the order in which they are added, which is also the global order.
struct HandGraph {
  TaskGraph graph;
  Durations durations;

  explicit HandGraph(int ranks) { graph.step.layout.data = ranks; }

  TaskId compute(int rank, double seconds, std::vector<TaskId> after = {}) {
    Task task;
    task.rank = rank;
    Work work;
    work.kind = WorkKind::grad_norm;  // a compute task without operators
    return add(task, work, seconds, after);
  }

  TaskId transfer(int from, int to, double bytes, std::vector<TaskId> after = {}) {
    Task task;
    task.kind = TaskKind::transfer;
    task.communicator = communicator("pp", Axis::pipeline, {from, to});
    Work work;
    work.kind = WorkKind::transfer;
    work.bytes = bytes;
    return add(task, work, 0, after);
  }

  // `seconds`: its closed form.
  TaskId collective(Collective kind, std::vector<std::int32_t> ranks, double bytes, double seconds = 0,
                    std::vector<TaskId> after = {}) {
    Task task;
    task.kind = TaskKind::collective;
    task.communicator = communicator("dp", Axis::data, std::move(ranks));
    Work work;
    work.kind = WorkKind::grad_reduce;
    work.collective = kind;
    work.bytes = bytes;
    return add(task, work, seconds, after);
  }

  // Fills in successors and the order; call before the graph is used.
  HandGraph& finish() {
    const std::size_t count = graph.tasks.size();
    graph.order.clear();
    graph.predecessors = graph.successors = graph.inputs = graph.outputs = Rows{};
    for (TaskId id = 0; id < count; ++id) {
      graph.order.push_back(id);
      append(graph.predecessors, after_[id]);
      std::vector<std::uint32_t> next;
      for (TaskId other = 0; other < count; ++other)
        for (const TaskId before : after_[other])
          if (before == id) next.push_back(other);
      append(graph.successors, next);
      append(graph.inputs, {});
      append(graph.outputs, {});
    }
    return *this;
  }

  // Makes a task wait for one that was added later.
  void also_after(TaskId task, TaskId before) { after_[task].push_back(before); }

 private:
  std::vector<std::vector<TaskId>> after_;

  static void append(Rows& rows, const std::vector<std::uint32_t>& values) {
    rows.values.insert(rows.values.end(), values.begin(), values.end());
    rows.begin.push_back(static_cast<std::uint32_t>(rows.values.size()));
  }

  std::int32_t communicator(const std::string& kind, Axis axis, std::vector<std::int32_t> ranks) {
    for (std::size_t c = 0; c < graph.communicators.size(); ++c)
      if (graph.communicators[c].ranks == ranks && graph.communicators[c].axis == axis)
        return static_cast<std::int32_t>(c);
    graph.communicators.push_back({kind + std::to_string(graph.communicators.size()), axis, std::move(ranks)});
    return static_cast<std::int32_t>(graph.communicators.size()) - 1;
  }

  TaskId add(Task task, Work work, double seconds, std::vector<TaskId>& after) {
    work.suffix = ".t" + std::to_string(graph.tasks.size());
    task.work = static_cast<std::int32_t>(graph.works.size());
    graph.works.push_back(work);
    graph.tasks.push_back(task);
    durations.push_back(seconds);
    after_.push_back(std::move(after));
    return static_cast<TaskId>(graph.tasks.size() - 1);
  }
};

// `nodes` nodes of `gpus` GPUs on one common fabric.
inline PricedCluster hand_cluster(int nodes, int gpus, double bandwidth, double latency, int gpus_per_port = 1) {
  PricedCluster cluster;
  cluster.name = "by hand";
  NodeGroup group;
  group.nodes = nodes;
  group.gpus_per_node = gpus;
  cluster.groups.push_back(group);
  Fabric fabric;
  fabric.name = "net";
  fabric.groups = {0};
  fabric.bandwidth = bandwidth;
  fabric.latency = latency;
  fabric.gpus_per_port = gpus_per_port;
  cluster.fabrics.push_back(fabric);
  return cluster;
}

}  // namespace slipway::test
