// A graph as its ranks run it, without training: tasks take their seconds, buffers are tokens.
//
//   rank 0  compute     │ 0F0 │ 0F1 │ ...        a lane takes its tasks one at a time, in the global order
//           pp.forward  ······ │ 0F0.send │      a task waits for its predecessors on this rank, of any lane,
//                                   ║            and for the readers in the step before of what it writes
//   rank 1  pp.forward  ··········· │ 0F0.send │ a message begins when all its members are there
//
// This is the rule of exec/lanes/lanes.h. A rank knows of other ranks by messages alone, so an order in which they wait
// for each other stops, and an input that no message brings is found missing. Lanes are taken in a random order.
// Guarded by tests/scenarios/drawn_scenarios_test.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "schedules/graph/task_graph.h"

namespace slipway::test {

struct TokenRun {
  std::string defect;         // why it cannot run; empty: every rank came to its end
  std::vector<double> start;  // per task instance, step · tasks + id: when the last member was there
};

class TokenRunner {
 public:
  // `seconds`: per task. `reuses_buffers`: what a step writes waits for the readers of the step before.
  TokenRunner(const TaskGraph& graph, const std::vector<double>& seconds, int steps, bool reuses_buffers)
      : graph_(graph), seconds_(seconds), steps_(steps), reuses_buffers_(reuses_buffers), lanes_(lanes_of(graph)) {
    const std::size_t tasks = graph.tasks.size();
    result_.start.assign(tasks * static_cast<std::size_t>(steps), 0);
    end_.assign(result_.start.size(), 0);
    done_.assign(tasks, 0);
    head_.assign(lanes_.size(), 0);
    free_.assign(lanes_.size(), 0);
    written_.assign(graph.buffers.size(), 0);
    position_.resize(tasks);
    for (std::uint32_t at = 0; at < graph.order.size(); ++at) position_[graph.order[at]] = at;
    carried_.resize(tasks);
    for (const auto& [before, after] : graph.carried) carried_[after].push_back(before);
    readers_ = transposed_inputs();
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      lane_of_[{lanes_[lane].rank, lanes_[lane].communicator}] = lane;
      of_rank_[lanes_[lane].rank].push_back(lane);
    }
  }

  TokenRun run() {
    std::mt19937_64 random(1);
    std::vector<std::size_t> waiting(lanes_.size());
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) waiting[lane] = lane;
    while (!waiting.empty() && result_.defect.empty()) {
      std::swap(waiting[random() % waiting.size()], waiting.back());
      const std::size_t lane = waiting.back();
      waiting.pop_back();
      if (is_over(lane) || !may_start(task_of(lane))) continue;
      const TaskId task = task_of(lane);
      perform(task);
      for (const std::int32_t rank : members_of(graph_, task))
        waiting.insert(waiting.end(), of_rank_[rank].begin(), of_rank_[rank].end());
    }
    if (result_.defect.empty()) result_.defect = stuck_lanes();
    return std::move(result_);
  }

 private:
  std::size_t lane_of(std::int32_t rank, TaskId task) const {
    return lane_of_.at({rank, graph_.tasks[task].communicator});
  }
  int step_of(std::size_t lane) const { return static_cast<int>(head_[lane] / lanes_[lane].tasks.size()); }
  bool is_over(std::size_t lane) const { return lanes_[lane].tasks.empty() || step_of(lane) == steps_; }
  TaskId task_of(std::size_t lane) const { return lanes_[lane].tasks[head_[lane] % lanes_[lane].tasks.size()]; }
  bool is_member(std::int32_t rank, TaskId task) const {
    const auto members = members_of(graph_, task);
    return std::find(members.begin(), members.end(), rank) != members.end();
  }
  double end_of(int step, TaskId task) const {
    return step < 0 ? 0 : end_[static_cast<std::size_t>(step) * graph_.tasks.size() + task];
  }

  // What the rank waits for itself: calls visit(task, its step).
  template <typename Visit>
  void each_before(std::int32_t rank, TaskId task, int step, const Visit& visit) const {
    for (const TaskId before : graph_.predecessors[task])
      if (is_member(rank, before)) visit(before, step);
    for (const TaskId before : carried_[task])
      if (is_member(rank, before)) visit(before, step - 1);
    if (!reuses_buffers_) return;
    for (const BufferId buffer : graph_.outputs[task])
      if (graph_.buffers[buffer].rank == rank)
        for (const TaskId reader : readers_[buffer])
          if (is_member(rank, reader)) visit(reader, step - 1);
  }

  bool may_start(TaskId task) const {
    const int step = done_[task];
    for (const std::int32_t rank : members_of(graph_, task)) {
      const std::size_t lane = lane_of(rank, task);
      bool ready = !is_over(lane) && task_of(lane) == task && step_of(lane) == step;
      each_before(rank, task, step, [&](TaskId before, int of_step) { ready = ready && done_[before] > of_step; });
      if (!ready) return false;
    }
    return true;
  }

  void perform(TaskId task) {
    const int step = done_[task];
    double start = 0;
    for (const std::int32_t rank : members_of(graph_, task)) {
      start = std::max(start, free_[lane_of(rank, task)]);
      each_before(rank, task, step,
                  [&](TaskId before, int of_step) { start = std::max(start, end_of(of_step, before)); });
    }
    if (reuses_buffers_) take_inputs(task, step);
    const std::size_t instance = static_cast<std::size_t>(step) * graph_.tasks.size() + task;
    result_.start[instance] = start;
    end_[instance] = start + seconds_[task];
    done_[task] = step + 1;
    for (const std::int32_t rank : members_of(graph_, task)) {
      const std::size_t lane = lane_of(rank, task);
      free_[lane] = end_[instance];
      ++head_[lane];
    }
    for (const BufferId buffer : graph_.outputs[task]) written_[buffer] = step + 1;
  }

  // Each input is there: of this step, or of the one before where its writer comes later in the order.
  void take_inputs(TaskId task, int step) {
    for (const BufferId buffer : graph_.inputs[task]) {
      const std::optional<TaskId> writer = graph_.writer(buffer);
      if (!writer || written_[buffer] == step + (position_[*writer] < position_[task] ? 1 : 0)) continue;
      result_.defect = label_of(graph_, task) + " of step " + std::to_string(step + 1) + " reads what " +
                       label_of(graph_, *writer) + " wrote in step " + std::to_string(written_[buffer]);
    }
  }

  std::string stuck_lanes() const {
    std::string text;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
      if (!is_over(lane))
        text += (text.empty() ? "" : ", ") + ("rank " + std::to_string(lanes_[lane].rank)) + " waits with " +
                label_of(graph_, task_of(lane)) + " of step " + std::to_string(step_of(lane) + 1);
    return text;
  }

  std::vector<std::vector<TaskId>> transposed_inputs() const {
    std::vector<std::vector<TaskId>> readers(graph_.buffers.size());
    for (TaskId task = 0; task < graph_.tasks.size(); ++task)
      for (const BufferId buffer : graph_.inputs[task]) readers[buffer].push_back(task);
    return readers;
  }

  const TaskGraph& graph_;
  const std::vector<double>& seconds_;
  int steps_;
  bool reuses_buffers_;
  std::vector<Lane> lanes_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> lane_of_;
  std::map<std::int32_t, std::vector<std::size_t>> of_rank_;
  std::vector<std::size_t> head_;        // per lane: tasks done, of all steps
  std::vector<double> free_;             // per lane
  std::vector<double> end_;              // per task instance
  std::vector<int> done_;                // per task: steps
  std::vector<int> written_;             // per buffer: the last step that wrote it, counted from 1
  std::vector<std::uint32_t> position_;  // per task, in the global order
  std::vector<std::vector<TaskId>> carried_, readers_;
  TokenRun result_;
};

}  // namespace slipway::test
