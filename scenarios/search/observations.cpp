#include "scenarios/search/observations.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "models/trace/statistics.h"
#include "scenarios/predict/step_times.h"
#include "schedules/lower/representatives.h"
#include "schedules/time/metrics.h"

namespace slipway::scenarios {
namespace {

using TasksByLabel = std::unordered_map<std::string, TaskId>;

// Per rank that has tasks.
std::map<int, TasksByLabel> tasks_of_ranks(const TaskGraph& graph) {
  std::map<int, TasksByLabel> tasks;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const std::string label = label_of(graph, id);
    for (const std::int32_t rank : members_of(graph, id))
      if (is_lowered(graph, rank)) tasks[rank].emplace(label, id);
  }
  return tasks;
}

}  // namespace

std::vector<double> seconds_of_tasks(const TaskGraph& graph, const Timeline& timeline) {
  const std::size_t count = graph.tasks.size(), base = measured_step(timeline) * count;
  std::vector<double> seconds(count);
  for (std::size_t id = 0; id < count; ++id) seconds[id] = timeline.end[base + id] - timeline.start[base + id];
  return seconds;
}

Observations observations_of(const SimulatedStep& predicted, const Trace& measured) {
  const TaskGraph& graph = predicted.prepared.graph;
  const Layout& layout = graph.step.layout;
  if (measured.ranks != rank_count(layout))
    throw std::invalid_argument("the trace has " + std::to_string(measured.ranks) + " ranks and the scenario " +
                                std::to_string(rank_count(layout)) + "; give the scenario that was run");
  const std::vector<double> seconds = seconds_of_tasks(graph, predicted.simulation.timeline);
  const std::map<int, TasksByLabel> tasks = tasks_of_ranks(graph);
  const StepTimes times = step_times(measured);
  Observations observations;
  struct Samples {
    int rank = 0;
    std::vector<double> seconds;
  };
  // (group, or none; rank of compute; task)
  std::map<std::tuple<int, int, TaskId>, Samples> samples;
  const std::vector<double> work = work_times(measured);
  for (std::size_t i = 0; i < work.size(); ++i) {
    const TraceRecord& record = measured.records[i];
    if (record.step < times.first || record.step > times.last) continue;
    ++observations.records;
    const auto of_rank = tasks.find(representative_of(layout, graph.representatives, record.rank));
    if (of_rank == tasks.end()) {
      ++observations.missing;
      continue;
    }
    const auto task = of_rank->second.find(record.label);
    if (task == of_rank->second.end()) {
      ++observations.missing;
      continue;
    }
    const bool is_message = record.group >= 0;
    if (is_message && record.step == times.first) observations.members[record.group].push_back(record.rank);
    const auto [found, is_new] = samples.try_emplace(
        {is_message ? record.group : none, is_message ? 0 : record.rank, task->second}, Samples{record.rank, {}});
    found->second.seconds.push_back(work[i]);
  }
  if (samples.empty())
    throw std::invalid_argument("the trace has no task of the scenario; give the scenario that was run");
  for (auto& [group, ranks] : observations.members) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  }
  for (auto& [key, of_task] : samples) {
    const auto [group, rank, task] = key;
    if (seconds[task] > 0)
      observations.all.push_back({task, of_task.rank, group, seconds[task], median(std::move(of_task.seconds))});
  }
  return observations;
}

}  // namespace slipway::scenarios
