#include <algorithm>

#include "exec/lanes_state.h"

namespace slipway::laning {

namespace {

void sort_unique(std::vector<std::uint32_t>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

LocalProgram::LocalProgram(const TaskGraph& the_graph, int rank, bool on_device) : graph(the_graph) {
  take_lanes(rank, on_device);
  take_dependencies();
  take_buffer_reuse(rank);
}

void LocalProgram::take_lanes(int rank, bool on_device) {
  for (const Lane& lane : lanes_of(graph)) {
    if (lane.rank != rank) continue;
    auto mine = std::make_unique<LocalLane>();
    mine->name = lane_name(graph, lane);
    mine->compute = lane.communicator == none;
    for (const TaskId task : lane.tasks) {
      const auto index = static_cast<std::uint32_t>(tasks.size());
      local[task] = index;
      mine->tasks.push_back(index);
      tasks.push_back({task, {}, {}});
      lane_of.push_back(static_cast<int>(lanes.size()));
      place_in_lane.push_back(mine->tasks.size() - 1);
    }
    if (on_device) mine->marks.resize(2 * mine->tasks.size());
    lanes.push_back(std::move(mine));
  }
  done = std::vector<std::atomic<int>>(tasks.size());
}

void LocalProgram::take_dependencies() {
  for (std::uint32_t index = 0; index < tasks.size(); ++index) {
    for (const TaskId before : graph.predecessors[tasks[index].task]) {
      const auto found = local.find(before);
      // Tasks of one lane follow each other anyway.
      if (found == local.end() || lane_of[found->second] == lane_of[index]) continue;
      tasks[index].same_step.push_back(found->second);
    }
  }
  for (const auto& [before, task] : graph.carried) {
    const auto first = local.find(before), then = local.find(task);
    if (first == local.end() || then == local.end()) continue;
    tasks[then->second].step_before.push_back(first->second);
  }
}

void LocalProgram::take_buffer_reuse(int rank) {
  std::unordered_map<BufferId, std::vector<std::uint32_t>> readers;
  for (std::uint32_t index = 0; index < tasks.size(); ++index) {
    for (const BufferId buffer : graph.inputs[tasks[index].task]) {
      if (graph.buffers[buffer].rank == rank) readers[buffer].push_back(index);
    }
  }
  for (std::uint32_t index = 0; index < tasks.size(); ++index) {
    std::vector<std::uint32_t>& before = tasks[index].step_before;
    for (const BufferId buffer : graph.outputs[tasks[index].task]) {
      if (graph.buffers[buffer].rank != rank) continue;
      const auto& list = readers[buffer];
      before.insert(before.end(), list.begin(), list.end());
    }
    std::erase_if(before, [&](std::uint32_t other) { return lane_of[other] == lane_of[index]; });
    sort_unique(before);
    sort_unique(tasks[index].same_step);
  }
}

}  // namespace slipway::laning
