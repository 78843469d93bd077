#include "scenarios/search/refine.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>

#include "scenarios/language/check_scenario.h"
#include "scenarios/search/variants.h"
#include "scenarios/search/workers.h"
#include "schedules/graph/balanced_split.h"

namespace slipway {
namespace {

constexpr std::size_t most_considered = 200;  // of all; more are climbed
constexpr std::size_t most_moves = 48;        // at a time
constexpr int most_simulated = 200;
constexpr double rounding = 1 + 1e-9;  // the simulator adds up in another order than the bounds
constexpr double infinite = std::numeric_limits<double>::infinity();

class Refiner {
 public:
  Refiner(const Scenario& scenario, const PricedLayout& row, Freedom free, const SearchOptions& options)
      : scenario_(scenario),
        row_(row),
        free_(free),
        options_(options),
        own_(variant_of(scenario, row.choice.layout)) {
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
  LayoutChoice choice_of(const Variant& variant) const {
    LayoutChoice choice = row_.choice;
    if (free_.splits) choice.layout.split = SplitKind::list, choice.layout.split_list = variant.layers;
    if (free_.orders) choice.layout.placement = variant.nodes;
    return choice;
  }

  double bound_of(const Variant& variant) const {
    const LayoutChoice choice = choice_of(variant);
    const Scenario one = with_layout(scenario_, choice);  // at its pace already
    return StepEstimator(lowering_input(one), one.cluster)
        .passes_bound({one.layout, choice.schedule, choice.micro_batch, choice.recompute});
  }

  std::vector<Variant> starts() const {
    std::vector<Variant> list{own_};
    if (free_.orders)
      for (Variant& other : in_other_group_orders(scenario_.cluster, own_))
        list.push_back(std::move(other));
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
      const Variant& best =
          *std::min_element(next.begin(), next.end(),
                            [&](const Variant& a, const Variant& b) { return seconds_[a] < seconds_[b]; });
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
    bool simulated = false;  // it fits, and a worker has done it
  };
  struct Answer {  // of a worker
    double seconds;
    bool simulated;
  };
  // Those that are not known yet, the least bound first.
  std::vector<Job> jobs_of(const std::vector<Variant>& variants) {
    std::vector<Job> jobs;
    for (const Variant& variant : variants) {
      if (!seconds_.emplace(variant, infinite).second) continue;
      try {
        jobs.push_back({bound_of(variant), variant});
      } catch (const std::invalid_argument&) {  // no fabric joins these ranks: it stays infinite
      }
    }
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const Job& a, const Job& b) { return a.bound < b.bound; });
    return jobs;
  }

  // Infinite is what does not fit, or cannot be faster than another one.
  void price(const std::vector<Variant>& variants) {
    std::vector<Job> jobs = jobs_of(variants);
    const int count = static_cast<int>(jobs.size());
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    Workers workers(std::min(options_.workers > 0 ? options_.workers : cores, count),
                    [&](int job, std::byte* result) {
                      const LayoutChoice choice = choice_of(jobs[static_cast<std::size_t>(job)].variant);
                      const PricedLayout row = price_if_it_fits(scenario_, choice, options_.memory_share);
                      const double seconds = fits(row, options_.memory_share) ? row.step_time_s : infinite;
                      const Answer answer{seconds, row.simulated};
                      std::memcpy(result, &answer, sizeof answer);
                    });
    for (int given = 0; !interrupted();) {
      while (given < count && workers.idle() && is_promising(jobs[static_cast<std::size_t>(given)]))
        workers.give(given++);
      if (workers.busy() == 0) break;
      if (const auto outcome = workers.take(100)) note(*outcome, jobs);
    }
    // Not those that an idle worker had taken before the bound fell below theirs: the same for any number of workers.
    simulated_ += static_cast<int>(std::count_if(
        jobs.begin(), jobs.end(), [&](const Job& job) { return job.simulated && is_promising(job); }));
  }

  bool is_promising(const Job& job) const { return job.bound <= least_s_ * rounding; }

  void note(const Workers::Outcome& outcome, std::vector<Job>& jobs) {
    Job& job = jobs[static_cast<std::size_t>(outcome.job)];
    if (outcome.failed) {
      if (interrupted()) return;
      throw std::runtime_error("simulating the layout " + layout_text(choice_of(job.variant)) + ": " +
                               outcome.text);
    }
    Answer answer{};
    std::memcpy(&answer, outcome.result, sizeof answer);
    job.simulated = answer.simulated;
    seconds_[job.variant] = answer.seconds;
    least_s_ = std::min(least_s_, answer.seconds);
  }

  bool interrupted() const { return options_.interrupted && options_.interrupted(); }

  const Scenario& scenario_;
  const PricedLayout& row_;
  Freedom free_;
  const SearchOptions& options_;
  Variant own_;
  std::map<Variant, double> seconds_;  // known, or not worth knowing
  double least_s_ = infinite;
  int simulated_ = 0;
};

}  // namespace

bool is_uneven(const Cluster& cluster) {
  return !cluster.weak_pairs.empty() || has_several_machines(cluster);
}

Refinement refined(const Scenario& scenario, const PricedLayout& row, bool splits, bool orders,
                   const SearchOptions& options) {
  const bool may_move = splits && row.choice.layout.pipeline > 1 && has_several_machines(scenario.cluster);
  const bool may_swap = orders && node_count(scenario.cluster) > 1;
  return Refiner(scenario, row, {may_move, may_swap}, options).run();
}

}  // namespace slipway
