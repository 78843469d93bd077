#include "scenarios/search/trace_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "models/machine/priced_cluster.h"
#include "models/trace/statistics.h"
#include "scenarios/predict/step_times.h"
#include "scenarios/search/moved_step.h"
#include "scenarios/search/observations.h"
#include "schedules/time/durations.h"
#include "schedules/time/metrics.h"
#include "schedules/time/replay.h"

namespace slipway::scenarios {
namespace {

// A hypothesis with its best number.
struct Fitted {
  TraceCause cause;
  double cost = 0;
  std::size_t much = 0, helped = 0;  // of its tasks (Changed)
};

// The tasks that a hypothesis changes: their cost without and with it, and of those that it changes most, by at least
// half of the largest factor, how many come nearer to the measurement.
struct Changed {
  double before = 0, after = 0;
  std::size_t much = 0, helped = 0;
};

double cost_of(const Observation& seen, double predicted_s) { return std::abs(seen.measured_s - predicted_s); }

// Collects what a hypothesis makes of tasks.
class Tally {
 public:
  void add(const Observation& seen, double now_s) {
    constexpr double little = 1e-3;  // of a task: it is not changed
    const double by = std::abs(std::log(now_s / seen.predicted_s));
    if (!(by > little)) return;
    const double before = cost_of(seen, seen.predicted_s), after = cost_of(seen, now_s);
    sums_.before += before, sums_.after += after;
    tasks_.emplace_back(by, after < before);
    most_ = std::max(most_, by);
  }
  double less() const { return sums_.before - sums_.after; }
  Changed changed() const {
    Changed all = sums_;
    for (const auto& [by, is_nearer] : tasks_) {
      if (by < most_ / 2) continue;
      ++all.much;
      all.helped += is_nearer ? 1 : 0;
    }
    return all;
  }

 private:
  Changed sums_;
  std::vector<std::pair<double, bool>> tasks_;
  double most_ = 0;
};

class Search {
 public:
  Search(const SimulatedStep& predicted, Observations observations)
      : scenario_(predicted.prepared.scenario),
        cluster_(predicted.prepared.cluster),
        graph_(predicted.prepared.graph),
        observations_(std::move(observations)),
        base_(lasting(Moved(cluster_))) {
    for (const Observation& seen : observations_.all) cost_ += cost_of(seen, seen.predicted_s);
  }

  double cost() const { return cost_; }

  std::vector<Fitted> all() {
    std::vector<Fitted> found;
    for (const Rate& rate : rates_of(scenario_, cluster_)) found.push_back(fitted(rate));
    add_places(found);
    add_ports(found);
    return found;
  }

 private:
  // Seconds of each task in a replay.
  std::vector<double> lasting(const Moved& moved) const {
    const Durations durations = durations_of(graph_, moved);
    constexpr int steps = 2;
    return seconds_of_tasks(graph_, replay(graph_, durations, durations.host.empty() ? 1 : steps));
  }

  double predicted(const Observation& seen, const std::vector<double>& moved) const {
    return base_[seen.task] > 0 ? seen.predicted_s * moved[seen.task] / base_[seen.task] : seen.predicted_s;
  }

  Tally tally_under(const std::vector<double>& moved) const {
    Tally tally;
    for (const Observation& seen : observations_.all) tally.add(seen, predicted(seen, moved));
    return tally;
  }
  double cost_under(const std::vector<double>& moved) const { return cost_ - tally_under(moved).less(); }

  std::vector<double> at_speed(const Rate& rate, double logarithm) const {
    Moved moved(cluster_);
    rate.move(moved, std::exp(logarithm));
    return lasting(moved);
  }

  // The best of a grid, then golden sections between its neighbours.
  Fitted fitted(const Rate& rate) const {
    constexpr std::array grid{-3.0, -2.2, -1.6, -1.1, -0.7, -0.4, -0.2, -0.07, 0.0, 0.15, 0.4, 0.8, 1.5};
    std::array<double, grid.size()> costs{};
    for (std::size_t i = 0; i < grid.size(); ++i) costs[i] = grid[i] == 0 ? cost_ : cost_under(at_speed(rate, grid[i]));
    const auto best = static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    double speed = grid[best], cost = costs[best];
    constexpr double hopeless = 0.9;  // of the cost: neighbours of the grid do not halve it
    if (cost < hopeless * cost_) {
      double low = grid[best > 0 ? best - 1 : 0], high = grid[std::min(best + 1, grid.size() - 1)];
      constexpr double golden = 0.6180339887498949, close = 2e-3;
      double a = high - golden * (high - low), b = low + golden * (high - low);
      double at_a = cost_under(at_speed(rate, a)), at_b = cost_under(at_speed(rate, b));
      while (high - low > close) {
        if (at_a < at_b) {
          high = b, b = a, at_b = at_a;
          a = high - golden * (high - low), at_a = cost_under(at_speed(rate, a));
        } else {
          low = a, a = b, at_a = at_b;
          b = low + golden * (high - low), at_b = cost_under(at_speed(rate, b));
        }
      }
      if (std::min(at_a, at_b) < cost) speed = at_a < at_b ? a : b, cost = std::min(at_a, at_b);
    }
    return made(rate.name, rate.id, speed, rate.spread, tally_under(at_speed(rate, speed)));
  }

  Fitted made(std::string name, std::string id, double logarithm, double spread, const Tally& tally) const {
    const Changed changed = tally.changed();
    return {{std::move(name), std::move(id), std::exp(logarithm), cost_ > 0 ? tally.less() / cost_ : 0,
             changed.before > 0 ? tally.less() / changed.before : 0, std::abs(logarithm) / spread},
            cost_ - tally.less(),
            changed.much,
            changed.helped};
  }

  // GPUs, nodes and pipeline ranks on which all compute takes as many times as long.
  void add_places(std::vector<Fitted>& found) const {
    const Layout& layout = graph_.step.layout;
    using Key = std::pair<int, int>;  // kind of place, number
    std::map<Key, std::vector<const Observation*>> at;
    for (const Observation& seen : observations_.all) {
      if (seen.group != none) continue;
      at[{2, seen.rank}].push_back(&seen);
      at[{1, place_of(scenario_.cluster, seen.rank).node}].push_back(&seen);
      at[{0, coordinates_of(layout, seen.rank).pipeline}].push_back(&seen);
    }
    for (const auto& [key, all] : at) {
      const auto [kind, number] = key;
      if ((kind == 0 && layout.pipeline == 1) || (kind == 1 && node_count(scenario_.cluster) == 1)) continue;
      std::vector<std::pair<double, double>> ratios;
      for (const Observation* seen : all) ratios.emplace_back(seen->measured_s / seen->predicted_s, seen->predicted_s);
      const double times = weighted_median(ratios);
      if (!(times > 0)) continue;
      Tally tally;
      for (const Observation* seen : all) tally.add(*seen, times * seen->predicted_s);
      const char* names[] = {"GPUs of pipeline rank {}", "GPUs of node {}", "GPU of rank {}"};
      const char* ids[] = {"pipeline_rank:{}", "node:{}", "gpu:{}"};
      found.push_back(made(fmt::format(fmt::runtime(names[kind]), number), fmt::format(fmt::runtime(ids[kind]), number),
                           -std::log(times), spread_of_gpus(), tally));
    }
  }

  // The way of a message: its nodes, and the ports of its members.
  struct Port {
    bool inside = false;
    int node = 0, gpu = -1, other = -1;  // gpu -1: all of the node; other: a pair of nodes
    auto operator<=>(const Port&) const = default;
  };
  static constexpr int most_nodes = 16;  // of a group: beyond, every pair of nodes is in it

  std::vector<Port> ports_of(const std::vector<int>& members) const {
    std::set<Port> ports;
    std::set<int> nodes;
    for (const int rank : members) nodes.insert(place_of(scenario_.cluster, rank).node);
    const bool inside = nodes.size() == 1;
    for (const int rank : members) {
      const Place place = place_of(scenario_.cluster, rank);
      ports.insert({inside, place.node, -1, -1});
      ports.insert({inside, place.node, place.gpu, -1});
    }
    if (!inside && static_cast<int>(nodes.size()) <= most_nodes)
      for (const int a : nodes)
        for (const int b : nodes)
          if (a < b) ports.insert({false, a, -1, b});
    return {ports.begin(), ports.end()};
  }

  // One port's bandwidth: messages over it take as long as if all links of its kind were as slow.
  void add_ports(std::vector<Fitted>& found) const {
    std::map<int, std::vector<Port>> of_group;
    for (const auto& [group, members] : observations_.members)
      if (members.size() > 1) of_group[group] = ports_of(members);
    const std::vector<Rate> rates = rates_of(scenario_, cluster_);
    for (const bool inside : {true, false}) {
      const char* id = inside ? "node_bandwidth" : "network_bandwidth";
      const auto rate = std::find_if(rates.begin(), rates.end(), [&](const Rate& each) { return each.id == id; });
      if (rate != rates.end()) add_ports(*rate, inside, of_group, found);
    }
  }

  void add_ports(const Rate& rate, bool inside, const std::map<int, std::vector<Port>>& of_group,
                 std::vector<Fitted>& found) const {
    constexpr std::size_t points = 80;
    const auto logarithm_at = [](std::size_t i) {
      constexpr double slowest = -4, fastest = 0.4;
      return slowest + (fastest - slowest) * static_cast<double>(i) / (points - 1);
    };
    // The cost of each port at each speed, then all that is to know of the best speed.
    std::map<Port, std::array<double, points>> less;
    std::vector<Durations> durations;
    const auto now = [&](const Observation& seen, std::size_t i) {
      return seen.predicted_s * durations[i][seen.task] / base_[seen.task];
    };
    const auto each_message = [&](const auto& visit) {
      for (const Observation& seen : observations_.all) {
        const auto ports = of_group.find(seen.group);
        if (ports != of_group.end() && ports->second.front().inside == inside) visit(seen, ports->second);
      }
    };
    for (std::size_t i = 0; i < points; ++i) {
      Moved moved(cluster_);
      rate.move(moved, std::exp(logarithm_at(i)));
      durations.push_back(durations_of(graph_, moved));
      each_message([&](const Observation& seen, const std::vector<Port>& ports) {
        const double of_this = cost_of(seen, seen.predicted_s) - cost_of(seen, now(seen, i));
        for (const Port& port : ports) less.try_emplace(port).first->second[i] += of_this;
      });
    }
    std::map<Port, std::pair<std::size_t, Tally>> best;
    for (const auto& [port, at] : less)
      best[port].first = static_cast<std::size_t>(std::max_element(at.begin(), at.end()) - at.begin());
    each_message([&](const Observation& seen, const std::vector<Port>& ports) {
      for (const Port& port : ports) best[port].second.add(seen, now(seen, best[port].first));
    });
    for (const auto& [port, fit] : best)
      found.push_back(made(name_of(port, rate), id_of(port), logarithm_at(fit.first), spread_of_ports(), fit.second));
  }

  static std::string name_of(const Port& port, const Rate& rate) {
    if (port.other >= 0) return fmt::format("{} between nodes {} and {}", rate.name, port.node, port.other);
    if (port.gpu < 0) return fmt::format("{} of node {}", rate.name, port.node);
    return fmt::format("{} of node {}, GPU {}", rate.name, port.node, port.gpu);
  }
  static std::string id_of(const Port& port) {
    if (port.other >= 0) return fmt::format("nodes:{}-{}", port.node, port.other);
    return fmt::format("port:{}:{}", port.inside ? "node" : "network", port.node) +
           (port.gpu < 0 ? "" : ":" + std::to_string(port.gpu));
  }

  const Scenario& scenario_;
  const PricedCluster& cluster_;
  const TaskGraph& graph_;
  const Observations observations_;
  const std::vector<double> base_;  // as lasting(), of the cluster itself
  double cost_ = 0;
};

// Noise alone is explained a little, by whatever number fits it best: that of the longest task. A cause brings most of the
// tasks nearer that it changes.
bool is_credible(const Fitted& fitted) {
  constexpr double good = 0.2, most = 0.65;
  if (fitted.much == 0 || fitted.cause.of_its_own < good) return false;
  const double tasks = static_cast<double>(fitted.much), chance = 0.5 + 1 / std::sqrt(tasks);  // two deviations
  return static_cast<double>(fitted.helped) / tasks >= std::max(most, std::min(1.0, chance));
}

// The speed of launches at which the replayed step is as much longer as the measured one.
std::optional<TraceCause> late_launches(const Scenario& scenario, const TraceFindings& findings) {
  const double longer = findings.measured_step_s / findings.predicted_step_s;
  constexpr double little = 0.01;
  if (std::abs(longer - 1) < little) return std::nullopt;
  MovedStep step(scenario);
  for (const Rate& rate : rates_of(step.scenario(), step.cluster())) {
    if (rate.id != "launches") continue;
    const std::optional<double> speed = step.speed_for(rate, longer * step.seconds());
    if (speed) return TraceCause{rate.name, rate.id, *speed, 0, 0, std::abs(std::log(*speed)) / rate.spread};
  }
  return std::nullopt;
}

}  // namespace

bool TraceFindings::agrees() const {
  constexpr double little = 1e-3, of_step = 0.01;
  return difference_s <= little * predicted_s && std::abs(measured_step_s / predicted_step_s - 1) <= of_step;
}

TraceFindings trace_findings(const SimulatedStep& predicted, const Trace& measured) {
  Observations observations = observations_of(predicted, measured);
  TraceFindings findings;
  findings.compared = static_cast<std::int64_t>(observations.all.size());
  findings.missing = observations.missing;
  findings.predicted_step_s =
      step_time_of(predicted.prepared.graph, predicted.simulation.timeline, periodic_of(predicted));
  findings.measured_step_s = step_times(measured).median_period_s;
  for (const Observation& seen : observations.all) findings.predicted_s += seen.predicted_s;
  Search search(predicted, std::move(observations));
  findings.difference_s = search.cost();
  if (findings.agrees()) return findings;
  std::vector<Fitted> found = search.all();
  std::erase_if(found, [](const Fitted& each) { return !is_credible(each); });
  // Hypotheses are made from the widest to the narrowest, so among equally good ones the widest comes first.
  constexpr double as_good = 0.002;  // of the difference
  const auto step_of = [&](const Fitted& each) { return std::floor(each.cost / (as_good * findings.difference_s)); };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Fitted& a, const Fitted& b) { return step_of(a) < step_of(b); });
  constexpr std::size_t most = 5;
  for (std::size_t i = 0; i < std::min(most, found.size()); ++i) findings.causes.push_back(found[i].cause);
  if (found.empty())
    if (const auto late = late_launches(predicted.prepared.scenario, findings)) findings.causes.push_back(*late);
  return findings;
}

}  // namespace slipway::scenarios
