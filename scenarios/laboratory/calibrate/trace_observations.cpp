#include "scenarios/laboratory/calibrate/trace_observations.h"

#include "models/fit/measurement.h"
#include "models/machine/cost.h"
#include "models/machine/gloo.h"
#include "models/trace/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <tuple>
#include <unordered_map>

#include "schedules/graph/bubble_work.h"
#include "schedules/time/durations.h"
#include "schedules/time/message_price.h"
#include "schedules/time/work_price.h"

namespace slipway::scenarios {
namespace {

struct Interval {
  double start = 0, end = 0;
};

// The times in which messages really moved, per (step, rank), sorted and merged.
using BusyTimes = std::map<std::pair<int, int>, std::vector<Interval>>;

BusyTimes busy_times(const Trace& trace) {
  BusyTimes busy;
  for (const TraceRecord& record : trace.records) {
    if (!is_communication(record.kind)) continue;
    const Interval moved{record.start_s + record.wait_s, record.end_s};
    // A task of a window's first step may run in a later step.
    if (moved.end > moved.start) busy[{record.step / trace.window, record.rank}].push_back(moved);
  }
  for (auto& [at, intervals] : busy) {
    std::sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    std::vector<Interval> merged;
    for (const Interval& next : intervals) {
      if (!merged.empty() && next.start <= merged.back().end)
        merged.back().end = std::max(merged.back().end, next.end);
      else
        merged.push_back(next);
    }
    intervals = std::move(merged);
  }
  return busy;
}

double overlap_share(const BusyTimes& busy, const TraceRecord& record, int window) {
  const auto found = busy.find({record.step / window, record.rank});
  const double length = record.end_s - record.start_s;
  if (found == busy.end() || !(length > 0)) return 0;
  const auto& intervals = found->second;
  auto at = std::upper_bound(intervals.begin(), intervals.end(), record.start_s,
                             [](double start, const Interval& interval) { return start < interval.end; });
  double shared = 0;
  for (; at != intervals.end() && at->start < record.end_s; ++at) {
    shared += std::min(at->end, record.end_s) - std::max(at->start, record.start_s);
  }
  return std::clamp(shared / length, 0.0, 1.0);
}

// Label → tasks of that label, one per rank or communicator.
std::unordered_map<std::string, std::vector<TaskId>> tasks_by_label(const TaskGraph& graph) {
  std::unordered_map<std::string, std::vector<TaskId>> tasks;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) tasks[label_of(graph, id)].push_back(id);
  return tasks;
}

// K-FAC's curvature and inversions, with their reductions. Nothing is fitted to them, and a step's graph has none.
bool is_of_a_refresh(const TraceRecord& record) {
  return record.kind == name_of(KfacStage::curvature) || record.kind == name_of(KfacStage::inversion) ||
         record.label.ends_with(input_reduction_suffix) || record.label.ends_with(gradient_reduction_suffix);
}

class TraceReader {
 public:
  TraceReader(const Trace& trace, std::shared_ptr<const TaskGraph> graph, const Cluster& cluster, std::string name)
      : trace_(trace),
        graph_(std::move(graph)),
        cluster_(cluster),
        name_(std::move(name)),
        tasks_(tasks_by_label(*graph_)),
        busy_(busy_times(trace)) {
    if (trace.engine != "libtorch") {
      throw std::runtime_error(
          name_ + " was made by '" + trace.engine +
          "', a prediction; calibrate needs the trace of an executed run (slipway execute --trace)");
    }
  }

  std::vector<Observation> read() {
    if (are_processors(cluster_.groups) && trace_.window == 1 && !uses_kfac(graph_->step)) note_ends();
    const int first_step = trace_.steps > 1 ? 1 : 0;
    for (const TraceRecord& record : trace_.records) {
      if (uses_kfac(graph_->step) && is_of_a_refresh(record)) continue;
      const TaskId task = task_of(record);
      refuse_other_work(record, task);
      if (record.step < first_step) continue;
      const double seconds = work_seconds(record) + handover_of(record, task);
      if (graph_->tasks[task].communicator == none)
        note_compute(record, task, seconds);
      else
        note_message(record, task, seconds);
    }
    std::vector<Observation> observations;
    for (const auto& [key, sample] : compute_) observations.push_back(compute_observation(key, sample));
    for (const auto& observation : message_observations()) observations.push_back(observation);
    // Times below the clock's grain are no measurements.
    std::erase_if(observations, [](const Observation& observation) { return !(observation.seconds > 1e-7); });
    return observations;
  }

 private:
  struct Sample {
    std::vector<double> seconds, shares;
    std::string kind, name;
  };

  // Ends of what ran in a step on a rank, by task and by lane.
  struct Ends {
    std::map<TaskId, double> of_task;
    std::map<int, std::vector<double>> of_lane;  // by communicator, ascending
  };

  void note_ends() {
    for (const TraceRecord& record : trace_.records) {
      Ends& ends = ends_[{record.step, record.rank}];
      ends.of_task[task_of(record)] = record.end_s;
      ends.of_lane[record.group].push_back(record.end_s);
    }
    for (auto& [at, ends] : ends_)
      for (auto& [lane, times] : ends.of_lane) std::sort(times.begin(), times.end());
    for (const auto& [before, after] : graph_->carried) carried_to_[after].push_back(before);
  }

  // Seconds from when a task could have begun to when its lane's thread had it: after the last of its predecessors, and
  // of its lane. On processors a sleeping thread is woken, which a step pays as it pays the task.
  double handover_of(const TraceRecord& record, TaskId task) const {
    const auto found = ends_.find({record.step, record.rank}), earlier = ends_.find({record.step - 1, record.rank});
    if (found == ends_.end()) return 0;
    double ready = -1;
    const auto wait_for = [&](TaskId before, const auto& ends) {
      if (ends == ends_.end()) return;
      if (const auto end = ends->second.of_task.find(before); end != ends->second.of_task.end())
        ready = std::max(ready, end->second);
    };
    for (const TaskId before : graph_->predecessors[task]) wait_for(before, found);
    if (const auto carried = carried_to_.find(task); carried != carried_to_.end())
      for (const TaskId before : carried->second) wait_for(before, earlier);
    if (ready < 0) return 0;  // it waited for nothing
    const std::vector<double>& lane = found->second.of_lane.at(record.group);
    if (const auto next = std::upper_bound(lane.begin(), lane.end(), record.start_s); next != lane.begin())
      ready = std::max(ready, *std::prev(next));
    return std::max(0.0, record.start_s - ready);
  }

  TaskId task_of(const TraceRecord& record) const {
    const auto found = tasks_.find(record.label);
    if (found != tasks_.end()) {
      for (const TaskId id : found->second) {
        const auto members = members_of(*graph_, id);
        if (std::find(members.begin(), members.end(), record.rank) != members.end()) return id;
      }
    }
    throw of_another_scenario(record, "which the scenario does not have");
  }

  // The same label names another task in a graph of other shapes. The fit would take it for this one.
  void refuse_other_work(const TraceRecord& record, TaskId task) const {
    constexpr double most_apart = 0.01;  // versions may count a norm's FLOPs differently; other shapes differ by more
    const double flops = flops_of(*graph_, task);
    if (std::abs(record.flops - flops) > most_apart * std::max(record.flops, flops))
      throw of_another_scenario(
          record, fmt::format("with {:.3g} FLOPs, which has {:.3g} in the scenario", record.flops, flops));
  }

  std::runtime_error of_another_scenario(const TraceRecord& record, const std::string& why) const {
    return std::runtime_error(fmt::format(
        "{}: rank {} ran {}, {}; the trace is of another scenario ({}); give the scenario, with "
        "the same --set, that was executed",
        name_, record.rank, record.label, why, trace_.scenario.empty() ? "without a name" : trace_.scenario));
  }

  // The fit takes only ranks of the first node group, whose machine it writes.
  bool is_of_first_group(int rank) const { return place_of(cluster_, rank).group == 0; }

  void note_compute(const TraceRecord& record, TaskId task, double seconds) {
    if (!is_of_first_group(record.rank)) return;
    const double share = overlap_share(busy_, record, trace_.window);
    Sample& sample = compute_[{graph_->tasks[task].work, share > undisturbed_share}];
    sample.seconds.push_back(seconds);
    sample.shares.push_back(share);
    sample.kind = record.kind;
    sample.name = record.label + " of rank " + std::to_string(record.rank);
  }

  void note_message(const TraceRecord& record, TaskId task, double seconds) {
    double& slowest = message_[{task, record.step}];
    slowest = std::max(slowest, seconds);
    message_kind_[task] = record.kind;
  }

  // Steps are sums of tasks, so the mean counts; without its tenth at either end, which is of other programs.
  static double typical_of_a_sum(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::ptrdiff_t off = static_cast<std::ptrdiff_t>(values.size()) / 10;
    const auto from = values.begin() + off, to = values.end() - off;
    return std::accumulate(from, to, 0.0) / static_cast<double>(to - from);
  }

  static double total(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

  Observation compute_observation(std::pair<std::int32_t, bool> key, const Sample& sample) const {
    Observation observation;
    observation.kind = sample.kind;
    observation.name = sample.name;
    observation.seconds = typical_of_a_sum(sample.seconds);
    observation.weight = total(sample.seconds);
    observation.overlap_share = key.second ? median(sample.shares) : 0;
    observation.of_pass = graph_->works[static_cast<std::size_t>(key.first)].kind == WorkKind::segment;
    observation.predict = [graph = graph_, work = static_cast<std::size_t>(key.first)](const Machine& machine) {
      return compute_seconds(*graph, graph->works[work], machine);
    };
    return observation;
  }

  bool is_inside_a_node(TaskId task) const {
    std::set<int> nodes;
    for (const std::int32_t rank : members_of(*graph_, task)) nodes.insert(place_of(cluster_, rank).node);
    return nodes.size() == 1;
  }

  // Members on each node, where they send through its one port to all others at once; else 1.
  int sharing_a_port(TaskId task) const {
    const Collective collective = graph_->work(task).collective;
    const bool direct = collective == Collective::all_gather || collective == Collective::reduce_scatter ||
                        collective == Collective::all_to_all;
    if (!direct || !are_processors(cluster_.groups)) return 1;
    const auto members = members_of(*graph_, task);
    return ranks_per_node(cluster_, {members.begin(), members.end()}).value_or(1);
  }

  // One sample per work, number of members, kind of link and members that share a port.
  std::vector<Observation> message_observations() const {
    std::map<std::tuple<std::int32_t, std::size_t, bool, int>, Sample> samples;
    for (const auto& [at, seconds] : message_) {
      const TaskId task = at.first;
      const auto members = members_of(*graph_, task).size();
      const bool inside = is_inside_a_node(task);
      Sample& sample = samples[{graph_->tasks[task].work, members, inside, inside ? 1 : sharing_a_port(task)}];
      sample.seconds.push_back(seconds);
      sample.kind = message_kind_.at(task);
      sample.name = label_of(*graph_, task);
    }
    std::vector<Observation> observations;
    for (const auto& [key, sample] : samples) {
      const auto& [work, members, inside, sharing] = key;
      Observation observation;
      observation.group = inside ? ObservationGroup::node_link : ObservationGroup::network_link;
      observation.kind = sample.kind;
      observation.name = sample.name;
      observation.seconds = typical_of_a_sum(sample.seconds);
      observation.weight = total(sample.seconds);
      observation.predict = [graph = graph_, at = static_cast<std::size_t>(work), count = static_cast<int>(members),
                             is_node = inside, share = sharing](const Machine& machine) {
        const Link& link = is_node ? machine.node_link : machine.network_link;
        const bool rounds = !is_node && graph->works[at].collective != Collective::send;
        const Links links =
            share > 1 ? links_of_pairs(machine, count / share, share)
                      : Links{rounds ? round_latency(machine) : link.latency, link.bandwidth * link.efficiency};
        const Work& work_of_it = graph->works[at];
        const bool adds = work_of_it.collective == Collective::shift && work_of_it.elements > 0;
        return message_seconds(work_of_it, count, links.latency, links.bandwidth, machine.reduce_bandwidth) +
               (adds ? adding_seconds(machine, work_of_it.bytes) : 0);
      };
      observations.push_back(std::move(observation));
    }
    return observations;
  }

  const Trace& trace_;
  std::shared_ptr<const TaskGraph> graph_;
  const Cluster& cluster_;
  std::string name_;
  std::unordered_map<std::string, std::vector<TaskId>> tasks_;
  BusyTimes busy_;
  // Filled for processors only, and not with K-FAC, whose refreshes differ from step to step.
  std::map<std::pair<int, int>, Ends> ends_;                 // (step, rank)
  std::map<TaskId, std::vector<TaskId>> carried_to_;         // what a task needs of the step before
  std::map<std::pair<std::int32_t, bool>, Sample> compute_;  // (work, overlapped)
  std::map<std::pair<TaskId, int>, double> message_;         // (task, step)
  std::map<TaskId, std::string> message_kind_;
};

}  // namespace

std::vector<Observation> observations_of(const Trace& trace, std::shared_ptr<const TaskGraph> graph,
                                         const Cluster& cluster, const std::string& trace_name) {
  return TraceReader(trace, std::move(graph), cluster, trace_name).read();
}

double best_task_rate(const Trace& trace) {
  double best = 0;
  for (const TraceRecord& record : trace.records) {
    const double seconds = work_seconds(record);
    if (seconds > 0) best = std::max(best, record.flops / seconds);
  }
  return best;
}

}  // namespace slipway::scenarios
