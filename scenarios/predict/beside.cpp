#include "scenarios/predict/beside.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "models/machine/priced_cluster.h"
#include "models/machine/topology.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/predict/basis.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/step_interval.h"
#include "schedules/time/replay.h"
#include "sim/together.h"

namespace slipway::scenarios {

namespace {

constexpr double periods_wanted = 5;  // counted for the slower scenario, in the first attempt
constexpr int attempts = 4;           // each with twice the steps of the previous one

[[noreturn]] void refuse(const Scenario& scenario, const std::string& message) {
  throw UsageError(scenario.path + ": " + message);
}

void refuse_unlike(const Scenario& first, const Scenario& second) {
  for (const Scenario* scenario : {&first, &second}) {
    if (scenario->cluster.groups.size() != 1)
      refuse(*scenario, "two jobs share a cluster of one kind of nodes; give cluster.machine instead of groups");
    if (is_degraded(scenario->cluster) || !scenario->cluster.weak_pairs.empty() ||
        !scenario->step.layout.placement.empty())
      refuse(*scenario,
             "places of two jobs are mixed; remove cluster.stragglers, slow_links and link_factors and "
             "layout.placement, or simulate it alone");
    if (scenario->step.fill != Fill::none)
      refuse(*scenario, "bubble work is not simulated beside another job; set schedule.fill to none");
    if (scenario->cluster.ranks_per_gpu > 1)
      refuse(*scenario, "two jobs can share links but not GPUs; set cluster.ranks_per_gpu to 1, or simulate it alone");
  }
  const NodeGroup &a = first.cluster.groups[0], &b = second.cluster.groups[0];
  if (a.machine.name != b.machine.name || a.gpus_per_node != b.gpus_per_node)
    refuse(second, "its nodes have " + std::to_string(b.gpus_per_node) + " x " + b.machine.name + ", but those of " +
                       first.path + " have " + std::to_string(a.gpus_per_node) + " x " + a.machine.name +
                       "; make them the same");
}

// The first scenario's cluster with the nodes of both.
Cluster common_cluster(const Scenario& first, const Scenario& second) {
  Cluster cluster = first.cluster;
  cluster.groups[0].nodes += second.cluster.groups[0].nodes;
  const bool joined = std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                                  [](const Fabric& fabric) { return fabric.scope == Fabric::Scope::cluster; });
  if (!joined)  // single nodes: their machines' own network
    for (Fabric& fabric : default_fabrics(cluster.groups))
      if (fabric.scope == Fabric::Scope::cluster && fabric.bandwidth > 0) cluster.fabrics.push_back(std::move(fabric));
  for (const Fabric& fabric : cluster.fabrics) {
    if (fabric.topology == nullptr) continue;
    const Topology::Misfit misfit = fabric.topology->refuse(fabric, ports_of(cluster, fabric));
    if (!misfit.message.empty())
      refuse(first, "with the nodes of both jobs its topology does not fit: " + misfit.message);
  }
  return cluster;
}

// The GPUs of both scenarios, dealt out `unit` at a time.
std::array<std::vector<int>, 2> gpus_of(Interleaving interleaving, int gpus_per_node, std::array<int, 2> ranks) {
  const int unit = interleaving == Interleaving::packed            ? std::max(ranks[0], ranks[1])
                   : interleaving == Interleaving::alternate_nodes ? gpus_per_node
                                                                   : 1;
  std::array<std::vector<int>, 2> gpus;
  for (int gpu = 0; gpu < ranks[0] + ranks[1];)
    for (std::size_t job = 0; job < 2; ++job)
      for (int i = 0; i < unit && static_cast<int>(gpus[job].size()) < ranks[job]; ++i) gpus[job].push_back(gpu++);
  return gpus;
}

PreparedStep prepared_on(const Scenario& scenario, const Cluster& common, std::vector<int> gpus) {
  Scenario moved = scenario;
  moved.cluster.groups = common.groups;
  moved.cluster.fabrics = common.fabrics;
  moved.cluster.gpu_of_rank = std::move(gpus);
  return prepared_step(std::move(moved));
}

double first_start(const TaskGraph& graph, const Timeline& timeline, std::size_t rank, std::size_t step) {
  return timeline.start[step * graph.tasks.size() + graph.compute_order[rank].front()];
}

struct Period {
  double seconds = 0;
  int count = std::numeric_limits<int>::max();  // on the rank with the fewest
};

// The mean distance between starts of steps on the slowest rank, from step 1 to `horizon`.
Period period_of(const TaskGraph& graph, const Timeline& timeline, double horizon) {
  Period period;
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank) {
    if (graph.compute_order[rank].empty()) continue;
    int last = 1;
    while (last + 1 < timeline.steps &&
           first_start(graph, timeline, rank, static_cast<std::size_t>(last) + 1) <= horizon)
      ++last;
    period.count = std::min(period.count, last - 1);
    const double span =
        first_start(graph, timeline, rank, static_cast<std::size_t>(last)) - first_start(graph, timeline, rank, 1);
    if (last > 1) period.seconds = std::max(period.seconds, span / (last - 1));
  }
  return period;
}

Job job_of(const PreparedStep& prepared, int steps) {
  return {prepared.graph, prepared.cluster, prepared.durations, steps};
}

void simulate_both(Neighbours& neighbours, const std::array<PreparedStep, 2>& both, const PricedCluster& common,
                   SimulationOptions options) {
  const double slower = std::max(neighbours[0].alone_s, neighbours[1].alone_s);
  for (double wanted = periods_wanted; wanted < periods_wanted * (1 << attempts); wanted *= 2) {
    const auto steps = [&](std::size_t j) {
      return 2 + static_cast<int>(std::ceil(wanted * slower / neighbours[j].alone_s));
    };
    const Job jobs[] = {job_of(both[0], steps(0)), job_of(both[1], steps(1))};
    const std::vector<Timeline> timelines = simulate_together(common, jobs, options);
    const double horizon = std::min(timelines[0].makespan_s, timelines[1].makespan_s);
    bool enough = true;
    for (std::size_t j = 0; j < 2; ++j) {
      const Period period = period_of(both[j].graph, timelines[j], horizon);
      neighbours[j].beside_s = period.seconds;
      neighbours[j].periods = period.count;
      enough = enough && period.count >= 2;
    }
    if (enough) return;
  }
  throw std::runtime_error(
      "the two jobs slow each other so much that neither ran two steps beside the other; give each job its own "
      "nodes (--place packed), or give the longer one fewer micro-batches");
}

std::optional<double> half_width_of(const PreparedStep& prepared, double step_s) {
  const auto interval = interval_of(prepared, step_s);
  return interval ? std::optional(interval->half_width()) : std::nullopt;
}

// An end of the interval of `step_s`: `sign` -1 is the low one.
std::optional<double> end_of(const Neighbour& job, double step_s, int sign) {
  return job.width ? std::optional(step_s * std::exp(sign * *job.width)) : std::nullopt;
}

std::string interval_cell(const Neighbour& job, double step_s) {
  if (!job.width) return "-";
  return readable_seconds(*end_of(job, step_s, -1)) + " to " + readable_seconds(*end_of(job, step_s, 1));
}

Description<Neighbour> neighbour_keys() {
  const auto end = [](double Neighbour::*step_s, int sign) {
    return [=](const Neighbour& job) { return end_of(job, job.*step_s, sign); };
  };
  return Description<Neighbour>()
      .key("scenarios", "text", "list: names of the scenario and of the one beside it; all lists in this order",
           &Neighbour::name)
      .column("job")
      .key("gpus", "count", "list: of each job", &Neighbour::gpus)
      .column("GPUs", readable_count)
      .key("alone_s", "s", "list: step time without the other job, on the same GPUs", &Neighbour::alone_s)
      .column("step alone", readable_seconds)
      .only_column("90 % interval", [](const Neighbour& job) { return interval_cell(job, job.alone_s); })
      .if_any()
      .key("alone_low_s", "s",
           "list: 90 of 100 measured runs are expected between it and alone_high_s; null as in simulate",
           end(&Neighbour::alone_s, -1))
      .else_null()
      .key("alone_high_s", "s", "list: the other end", end(&Neighbour::alone_s, 1))
      .else_null()
      .key("beside_s", "s", "list: mean step time while both run", &Neighbour::beside_s)
      .column("beside the other", readable_seconds)
      .only_column("90 % interval", [](const Neighbour& job) { return interval_cell(job, job.beside_s); })
      .if_any()
      .key("beside_low_s", "s", "list: the same of beside_s", end(&Neighbour::beside_s, -1))
      .else_null()
      .key("beside_high_s", "s", "list: the other end", end(&Neighbour::beside_s, 1))
      .else_null()
      .only_column("longer by", [](const Neighbour& job) { return readable_share(job.beside_s / job.alone_s - 1); })
      .key("periods", "count", "list: number of steps in that mean", &Neighbour::periods)
      .wide_column("mean of", [](const Neighbour& job) { return counted(job.periods, "step"); });
}

}  // namespace

Neighbours beside(const Scenario& first, const Scenario& second, Interleaving interleaving,
                  const std::function<void(const std::string&, double)>& progress) {
  refuse_unlike(first, second);
  const Cluster common = common_cluster(first, second);
  const Scenario* scenarios[] = {&first, &second};
  const auto gpus = gpus_of(interleaving, common.groups[0].gpus_per_node,
                            {rank_count(first.step.layout), rank_count(second.step.layout)});
  std::array<PreparedStep, 2> both{prepared_on(first, common, gpus[0]), prepared_on(second, common, gpus[1])};
  PricedCluster hardware = both[0].cluster;  // without one job's places
  hardware.gpu_of_rank.clear();
  Neighbours neighbours;
  const auto options = [&](const std::string& what) {
    SimulationOptions how;
    if (progress) how.progress = [&progress, what](double share) { progress(what, share); };
    return how;
  };
  for (std::size_t j = 0; j < 2; ++j) {
    const Job alone[] = {job_of(both[j], 3)};
    const Timeline timeline =
        simulate_together(hardware, alone, options("simulating " + scenarios[j]->name + " alone"))[0];
    neighbours[j] = {scenarios[j]->name,
                     rank_count(scenarios[j]->step.layout),
                     period_of(both[j].graph, timeline, timeline.makespan_s).seconds,
                     0,
                     0,
                     {}};
    neighbours[j].width = half_width_of(both[j], neighbours[j].alone_s);
  }
  simulate_both(neighbours, both, hardware, options("simulating both"));
  return neighbours;
}

std::string beside_text(const Neighbours& neighbours) {
  return "Two jobs in one cluster:\n" + aligned_table(neighbour_keys().table(neighbours), "  ");
}

const Description<Neighbours>& neighbours_description() {
  static const Description<Neighbours> description = Description<Neighbours>().lists(
      [](const Neighbours& jobs) -> const Neighbours& { return jobs; }, neighbour_keys());
  return description;
}

}  // namespace slipway::scenarios
