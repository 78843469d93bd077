#include "scenarios/search/refine.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>

#include "scenarios/language/check_scenario.h"
#include "scenarios/predict/balanced_stages.h"
#include "scenarios/search/layout_text.h"
#include "scenarios/search/workers.h"
#include "schedules/bound/balanced_split.h"
#include "schedules/bound/estimate.h"

namespace slipway::scenarios {

namespace {

using Lists = std::vector<std::vector<int>>;

bool are_alike(const Cluster& cluster, int a, int b) {
  const auto weak = [&](int node) {
    return std::any_of(cluster.weak_pairs.begin(), cluster.weak_pairs.end(),
                       [&](const WeakPair& pair) { return pair.node_a == node || pair.node_b == node; });
  };
  return group_of_node(cluster, a) == group_of_node(cluster, b) && !weak(a) && !weak(b);
}

// Returns more than `most` lists if there are more than `most`.
Lists every_split(std::size_t stages, int layers, std::size_t most) {
  Lists list;
  std::vector<int> split(stages, 0);
  const auto fill = [&](const auto& again, std::size_t stage, int left) -> void {
    if (list.size() > most) return;
    if (stage + 1 == stages) {
      split[stage] = left;
      list.push_back(split);
      return;
    }
    for (int n = fewest_layers(static_cast<int>(stage), static_cast<int>(stages)); n <= left; ++n)
      split[stage] = n, again(again, stage + 1, left - n);
  };
  fill(fill, 0, layers);
  return list;
}

// Leaves out orders that differ only by alike nodes, except the one in which these ascend.
Lists every_order(const Cluster& cluster, std::vector<int> order) {
  std::sort(order.begin(), order.end());
  Lists list;
  do {
    bool ascends = true;
    for (std::size_t i = 0; i < order.size(); ++i)
      for (std::size_t j = i + 1; j < order.size(); ++j)
        ascends = ascends && !(order[i] > order[j] && are_alike(cluster, order[i], order[j]));
    if (ascends) list.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return list;
}

constexpr std::size_t most_considered = 200;  // with more variants, the search climbs instead
constexpr std::size_t most_moves = 48;        // per round
constexpr int most_simulated = 200;
constexpr double rounding = 1 + 1e-9;  // the simulator adds up in another order than the bounds
constexpr double infinite = std::numeric_limits<double>::infinity();

class Refiner {
 public:
  Refiner(const Scenario& scenario, const PricedLayout& row, Freedom free, const SearchOptions& options)
      : scenario_(scenario), row_(row), free_(free), options_(options), own_(variant_of(scenario, row.choice.layout)) {
    seconds_[own_] = least_s_ = row.step_time_s;
  }

  Refinement run() {
    Refinement result{row_, 0, false};
    if (const auto all = every_variant(scenario_.cluster, own_, free_, most_considered)) {
      price(*all);
      result.exhaustive = true;
    } else {
      climb();
    }
    result.simulated = simulated_;
    const auto best = std::min_element(seconds_.begin(), seconds_.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best->second >= row_.step_time_s) return result;
    result.row = price_layout(scenario_, choice_of(best->first));
    result.row.bound_s = std::min(bound_of(best->first), result.row.step_time_s);
    return result;
  }

 private:
  Step choice_of(const Variant& variant) const {
    Step choice = row_.choice;
    if (free_.splits) choice.layout.split = SplitKind::list, choice.layout.split_list = variant.layers;
    if (free_.orders) choice.layout.placement = variant.nodes;
    return choice;
  }

  double bound_of(const Variant& variant) const {
    const Scenario one = with_layout(scenario_, choice_of(variant));
    return StepEstimator(one.step, priced_cluster(one)).passes_bound(one.step);
  }

  std::vector<Variant> starts() const {
    std::vector<Variant> list{own_};
    if (free_.orders)
      for (Variant& other : in_other_group_orders(scenario_.cluster, own_)) list.push_back(std::move(other));
    const std::size_t count = free_.splits ? list.size() : 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Scenario one = with_layout(scenario_, choice_of(list[i]));
      list.push_back({balanced_by_time(one, options_.memory_share), list[i].nodes});
    }
    return list;
  }

  void climb() {
    std::vector<Variant> next = starts();
    Variant at = own_;
    for (std::uint64_t round = 0; !interrupted(); ++round) {
      price(next);
      const Variant& best = *std::min_element(
          next.begin(), next.end(), [&](const Variant& a, const Variant& b) { return seconds_[a] < seconds_[b]; });
      if (round > 0 && seconds_[best] >= seconds_[at]) return;
      at = best;
      if (simulated_ >= most_simulated) return;
      next = moves_of(scenario_.cluster, at, free_, most_moves, scenario_.run.seed, round);
      if (next.empty()) return;
    }
  }

  struct Job {
    double bound;
    Variant variant;
    bool simulated = false;  // it fits, and a worker has simulated it
  };
  // Jobs for the variants that are not known yet, the least bound first.
  std::vector<Job> jobs_of(const std::vector<Variant>& variants) {
    std::vector<Job> jobs;
    for (const Variant& variant : variants) {
      if (!seconds_.emplace(variant, infinite).second) continue;
      try {
        jobs.push_back({bound_of(variant), variant});
      } catch (const std::invalid_argument&) {  // no fabric joins these ranks; stays infinite
      }
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.bound < b.bound; });
    return jobs;
  }

  // Prices variants. Infinite: does not fit, or cannot be faster than a known one.
  void price(const std::vector<Variant>& variants) {
    std::vector<Job> jobs = jobs_of(variants);
    std::vector<int> order(jobs.size());
    std::iota(order.begin(), order.end(), 0);
    Workers workers(std::min(workers_of(options_), static_cast<int>(jobs.size())), [&](int job, double) {
      return nlohmann::json(
          values_of(price_if_it_fits(scenario_, choice_of(jobs[job].variant), options_.memory_share)));
    });
    Dealing how;
    how.wanted = [&](int job) { return is_promising(jobs[job]); };
    how.go_on = [&](int) { return !interrupted(); };
    deal(
        workers, order, [&](const Workers::Outcome& outcome) { note(outcome, jobs); }, how);
    // Not counted: jobs taken by an idle worker before the bound fell below theirs, so that workers change no count.
    simulated_ += static_cast<int>(
        std::count_if(jobs.begin(), jobs.end(), [&](const Job& job) { return job.simulated && is_promising(job); }));
  }

  bool is_promising(const Job& job) const { return job.bound <= least_s_ * rounding; }

  void note(const Workers::Outcome& outcome, std::vector<Job>& jobs) {
    Job& job = jobs[outcome.job];
    if (outcome.failure) {
      if (interrupted()) return;
      throw std::runtime_error("simulating the layout " + layout_text(choice_of(job.variant)) + ": " +
                               *outcome.failure);
    }
    PricedLayout row;
    set_values(outcome.answer.get<std::vector<double>>(), row);
    job.simulated = row.simulated;
    const double seconds = fits(row, options_.memory_share) ? row.step_time_s : infinite;
    seconds_[job.variant] = seconds;
    least_s_ = std::min(least_s_, seconds);
  }

  bool interrupted() const { return options_.interrupted && options_.interrupted(); }

  const Scenario& scenario_;
  const PricedLayout& row_;
  Freedom free_;
  const SearchOptions& options_;
  Variant own_;
  std::map<Variant, double> seconds_;  // known, or not needed
  double least_s_ = infinite;
  int simulated_ = 0;
};

}  // namespace

Variant variant_of(const Scenario& scenario, const Layout& layout) {
  Variant variant;
  for (const BlockRange& range : split_blocks(scenario.step.model, layout))
    variant.layers.push_back(range.last - range.first);
  variant.layers.front() -= 1, variant.layers.back() -= 1;  // embedding and head
  variant.nodes = layout.placement;
  if (variant.nodes.empty()) {
    variant.nodes.resize(node_count(scenario.cluster));
    std::iota(variant.nodes.begin(), variant.nodes.end(), 0);
  }
  return variant;
}

std::optional<std::vector<Variant>> every_variant(const Cluster& cluster, const Variant& own, Freedom free,
                                                  std::size_t most) {
  constexpr std::size_t most_nodes = 6;  // 720 orders
  if (free.orders && own.nodes.size() > most_nodes) return std::nullopt;
  const int layers = std::accumulate(own.layers.begin(), own.layers.end(), 0);
  const Lists splits = free.splits ? every_split(own.layers.size(), layers, most) : Lists{own.layers};
  const Lists orders = free.orders ? every_order(cluster, own.nodes) : Lists{own.nodes};
  if (splits.size() * orders.size() > most) return std::nullopt;
  std::vector<Variant> all;
  for (const std::vector<int>& split : splits)
    for (const std::vector<int>& order : orders) all.push_back({split, order});
  return all;
}

std::vector<Variant> in_other_group_orders(const Cluster& cluster, const Variant& own) {
  constexpr std::size_t most_groups = 4;
  std::vector<Variant> list;
  std::vector<int> groups(cluster.groups.size());
  std::iota(groups.begin(), groups.end(), 0);
  if (groups.size() > most_groups) return list;
  while (std::next_permutation(groups.begin(), groups.end())) {
    const auto place = [&](int node) { return std::find(groups.begin(), groups.end(), group_of_node(cluster, node)); };
    list.push_back(own);
    std::stable_sort(list.back().nodes.begin(), list.back().nodes.end(),
                     [&](int a, int b) { return place(a) < place(b); });
  }
  return list;
}

std::vector<Variant> moves_of(const Cluster& cluster, const Variant& from, Freedom free, std::size_t most,
                              std::uint64_t seed, std::uint64_t draw) {
  std::vector<Variant> list;
  for (std::size_t i = 0; free.splits && i < from.layers.size(); ++i)
    for (std::size_t j = 0; j < from.layers.size(); ++j) {
      if (i == j || from.layers[i] <= fewest_layers(static_cast<int>(i), static_cast<int>(from.layers.size())))
        continue;
      list.push_back(from);
      --list.back().layers[i], ++list.back().layers[j];
    }
  for (std::size_t i = 0; free.orders && i < from.nodes.size(); ++i)
    for (std::size_t j = i + 1; j < from.nodes.size(); ++j) {
      if (are_alike(cluster, from.nodes[i], from.nodes[j])) continue;
      list.push_back(from);
      std::swap(list.back().nodes[i], list.back().nodes[j]);
    }
  if (list.size() <= most) return list;
  for (std::size_t i = 0; i < most; ++i)
    std::swap(list[i], list[i + random_bits(seed, draw * most + i) % (list.size() - i)]);
  list.resize(most);
  return list;
}

bool is_uneven(const Cluster& cluster) { return !cluster.weak_pairs.empty() || has_several_machines(cluster); }

Refinement refined(const Scenario& scenario, const PricedLayout& row, bool splits, bool orders,
                   const SearchOptions& options) {
  const bool may_move = splits && row.choice.layout.pipeline > 1 && has_several_machines(scenario.cluster);
  const bool may_swap = orders && node_count(scenario.cluster) > 1;
  return Refiner(scenario, row, {may_move, may_swap}, options).run();
}

}  // namespace slipway::scenarios
