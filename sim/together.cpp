#include "sim/together.h"

#include <fmt/format.h>

#include <stdexcept>

#include "schedules/lower/graph_builder.h"
#include "schedules/time/host_issue.h"
#include "sim/fidelity.h"

namespace slipway::sim {
namespace {

struct Merged {
  TaskGraph graph;
  TaskForms forms;
  HostIssue host;
  std::vector<std::vector<TaskId>> lists;  // per GPU: its compute tasks in order
};

std::int32_t gpu_of(const Job& job, std::int32_t rank) { return job.cluster.gpu_of_rank.at(rank); }

void add_rows(Rows& rows, const Rows& more, TaskId offset) {
  for (std::size_t row = 0; row < more.size(); ++row) {
    for (const std::uint32_t value : more[row]) rows.values.push_back(value + offset);
    rows.begin.push_back(static_cast<std::uint32_t>(rows.values.size()));
  }
}

void add_tasks(Merged& merged, const Job& job, const TaskGraph& window) {
  TaskGraph& graph = merged.graph;
  const auto communicators = static_cast<std::int32_t>(graph.communicators.size());
  const auto works = static_cast<std::int32_t>(graph.works.size());
  graph.works.insert(graph.works.end(), window.works.begin(), window.works.end());
  for (Communicator communicator : window.communicators) {
    for (std::int32_t& rank : communicator.ranks) rank = gpu_of(job, rank);
    graph.communicators.push_back(std::move(communicator));
  }
  for (Task task : window.tasks) {
    if (task.rank != none) task.rank = gpu_of(job, task.rank);
    if (task.communicator != none) task.communicator += communicators;
    task.work += works;
    graph.tasks.push_back(task);
  }
}

void add_forms(Merged& merged, const Job& job, const TaskForms& forms) {
  const auto first = static_cast<std::uint32_t>(merged.forms.edges.size());
  for (Edge edge : forms.edges) {
    edge.from = gpu_of(job, edge.from);
    edge.to = gpu_of(job, edge.to);
    merged.forms.edges.push_back(edge);
  }
  for (int step = 0; step < job.steps; ++step)
    for (TaskForm task : forms.tasks) {
      task.first_edge += first;
      task.last_edge += first;
      merged.forms.tasks.push_back(task);
    }
}

void add_job(Merged& merged, const Job& job, const TaskForms& forms) {
  const TaskGraph window = window_of(job.graph, job.steps);
  const auto offset = static_cast<TaskId>(merged.graph.tasks.size());
  add_tasks(merged, job, window);
  add_rows(merged.graph.predecessors, window.predecessors, offset);
  const auto count = static_cast<TaskId>(job.graph.tasks.size());
  for (int step = 0; step < job.steps; ++step)
    for (const TaskId task : job.graph.order)
      merged.graph.order.push_back(offset + static_cast<TaskId>(step) * count + task);
  for (std::size_t rank = 0; rank < window.compute_order.size(); ++rank) {
    const auto list = window.compute_order[rank];
    if (list.empty()) continue;
    auto& tasks = merged.lists[gpu_of(job, static_cast<std::int32_t>(rank))];
    if (!tasks.empty())
      throw std::invalid_argument(fmt::format("GPU {} is given to two ranks", gpu_of(job, static_cast<int>(rank))));
    for (const TaskId task : list) tasks.push_back(task + offset);
  }
  add_forms(merged, job, forms);
}

// Adds the issue of a job's hosts in all its steps, one after the other.
void add_host_issue(HostIssue& host, const Job& job) {
  const HostIssue& of_job = job.durations.host;
  for (int step = 0; step < job.steps; ++step)
    for (TaskId task = 0; task < job.graph.tasks.size(); ++task) {
      if (!of_job.empty())
        for (HostIssue::Share share : of_job.of(task)) {
          const HostIssue::Host& of_rank = of_job.hosts[share.rank];
          const double rest = share.since > 0 ? 0 : of_rank.tail * (of_rank.waits ? std::min(step, 1) : step);
          share.before += rest;
          if (!share.waits) share.after += rest;
          share.since = static_cast<std::uint16_t>(share.since + step);
          share.rank = gpu_of(job, share.rank);
          host.shares.push_back(share);
        }
      host.begin.push_back(static_cast<std::uint32_t>(host.shares.size()));
    }
  for (std::size_t rank = 0; rank < of_job.hosts.size(); ++rank)
    host.hosts[static_cast<std::size_t>(gpu_of(job, static_cast<std::int32_t>(rank)))].waits = of_job.hosts[rank].waits;
  host.synchronisations = std::max(host.synchronisations, job.steps);
}

Merged merged_of(const PricedCluster& hardware, std::span<const Job> jobs, CollectiveFidelity fidelity) {
  std::vector<TimedStep> steps;
  for (const Job& job : jobs) steps.push_back({job.graph, job.cluster, job.durations});
  const std::vector<TaskForms> all_forms = task_forms(steps, fidelity);
  Merged merged;
  merged.graph.step.layout.data = gpu_count(hardware);
  merged.lists.resize(gpu_count(hardware));
  merged.host.hosts.resize(gpu_count(hardware));
  merged.host.begin = {0};
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    add_job(merged, jobs[j], all_forms[j]);
    add_host_issue(merged.host, jobs[j]);
  }
  for (const auto& list : merged.lists) {
    merged.graph.compute_order.values.insert(merged.graph.compute_order.values.end(), list.begin(), list.end());
    merged.graph.compute_order.begin.push_back(static_cast<std::uint32_t>(merged.graph.compute_order.values.size()));
  }
  merged.graph.successors = transposed(merged.graph.predecessors);
  const Rows nothing{std::vector<std::uint32_t>(merged.graph.tasks.size() + 1, 0), {}};
  merged.graph.inputs = merged.graph.outputs = nothing;
  return merged;
}

}  // namespace

std::vector<Timeline> simulate_together(const PricedCluster& hardware, std::span<const Job> jobs,
                                        const SimulationOptions& options) {
  if (!hardware.gpu_of_rank.empty()) throw std::invalid_argument("the jobs' common hardware has places of its own");
  Merged merged = merged_of(hardware, jobs, options.collectives);
  merged.forms.host = &merged.host;
  SimulationOptions once = options;
  once.steps = 1;
  const Timeline whole = simulate(merged.graph, hardware, std::move(merged.forms), once).timeline;
  std::vector<Timeline> timelines;
  auto first = std::ptrdiff_t{0};
  for (const Job& job : jobs) {
    const auto count = static_cast<std::ptrdiff_t>(job.graph.tasks.size()) * job.steps;
    Timeline timeline;
    timeline.steps = job.steps;
    timeline.start.assign(whole.start.begin() + first, whole.start.begin() + first + count);
    timeline.end.assign(whole.end.begin() + first, whole.end.begin() + first + count);
    for (const double end : timeline.end) timeline.makespan_s = std::max(timeline.makespan_s, end);
    timelines.push_back(std::move(timeline));
    first += count;
  }
  return timelines;
}

}  // namespace slipway::sim
