#include "scenarios/search/search.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <new>

#include "scenarios/files/usage_error.h"
#include "scenarios/predict/basis.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/predict/verdict.h"
#include "scenarios/search/ranking.h"
#include "scenarios/search/refine.h"
#include "scenarios/search/shard.h"
#include "scenarios/search/variation.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/time/durations.h"
#include "schedules/time/metrics.h"

namespace slipway::scenarios {

namespace {

constexpr double front_slowest = 2;        // times the fastest: what is slower is no alternative
constexpr double front_step = 0.02;        // of a GPU's memory: what saves less is none either
constexpr double share_of_ranking = 0.85;  // of the time that simulations take, roughly
constexpr double share_of_refining = 0.5;  // of all of it, where there is something to refine

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A part of the whole's progress.
ProgressOf part_of(const SearchOptions& options, double from, double to, const char* doing) {
  return [&options, from, to, doing](int done, int left) {
    const double share = done + left > 0 ? done / static_cast<double>(done + left) : 1;
    if (options.progress) options.progress({from + (to - from) * share, doing, done, left});
  };
}

// The fastest candidate, then by its bound the fastest of those that need less memory than it, and so on.
std::vector<std::size_t> front_of_bounds(const std::vector<Candidate>& candidates, std::size_t fastest,
                                         double slowest) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].bound_s <= slowest) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Candidate &x = candidates[a], &y = candidates[b];
    return x.bound_s != y.bound_s ? x.bound_s < y.bound_s : x.memory_share < y.memory_share;
  });
  std::vector<std::size_t> front{fastest};
  for (const std::size_t i : order)
    if (candidates[i].memory_share <= candidates[front.back()].memory_share - front_step) front.push_back(i);
  return front;
}

// Those that need less memory than every faster one.
std::vector<PricedLayout> front_of(std::vector<PricedLayout> rows) {
  std::stable_sort(rows.begin(), rows.end(), is_better);
  std::vector<PricedLayout> front;
  for (const PricedLayout& row : rows)
    if (front.empty() || row.memory_share <= front.back().memory_share - front_step) front.push_back(row);
  return front;
}

// Sets result.pareto: of all simulated rows, those with less memory than every faster one.
void find_front(const Ranking& ranking, const SearchOptions& options, double slowest, SearchResult& result) {
  std::vector<PricedLayout> rows;
  for (const std::size_t i : ranking.judged())
    if (fits(ranking.row(i), options.memory_share) && ranking.row(i).step_time_s <= slowest)
      rows.push_back(ranking.row(i));
  result.pareto = front_of(std::move(rows));
}

void note_judged(const PricedLayout& row, double memory_share, SearchResult& result) {
  result.simulated += row.simulated ? 1 : 0;
  if (fits(row, memory_share)) return;
  ++result.too_large;
  std::optional<PricedLayout>& best = result.best_too_large;
  if (!best || row.bound_s < best->bound_s) best = row;
}

// The row that needs the least memory by its verdict, among those that need the least by their bounds. The timeline only
// adds to a bound, so rows with small bounds are simulated first and the others not at all.
std::optional<PricedLayout> closest_of(const Scenario& scenario, const Screening& screened) {
  std::vector<PricedLayout> rows;
  for (const Candidate& candidate : screened.smallest) rows.push_back(price_if_it_fits(scenario, candidate.choice, 0));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const PricedLayout& a, const PricedLayout& b) { return a.memory_share < b.memory_share; });
  std::optional<PricedLayout> closest;
  for (const PricedLayout& row : rows) {
    if (closest && row.memory_share >= closest->memory_share) break;
    PricedLayout simulated = row;
    try {
      simulated = price_layout(scenario, row.choice);
    } catch (const std::bad_alloc&) {  // too large to be simulated here: as by the estimate
    }
    if (!closest || simulated.memory_share < closest->memory_share) closest = simulated;
  }
  return closest;
}

void simulate(const Scenario& scenario, const std::vector<Candidate>& candidates, const SearchOptions& options,
              SearchResult& result) {
  StepEstimator estimator(scenario.step, priced_cluster(scenario), scenario.memory);
  Ranking ranking(scenario, options, estimator, candidates);
  const double share = is_uneven(scenario.cluster) ? 1 - share_of_refining : 1;
  const auto best =
      ranking.fastest(options.best, part_of(options, 0, share * share_of_ranking, "simulating the fastest"));
  for (const std::size_t i : best) result.best.push_back(ranking.row(i));
  if (!best.empty()) {
    const double slowest = front_slowest * result.best.front().step_time_s;
    ranking.simulate(front_of_bounds(candidates, best.front(), slowest),
                     part_of(options, share * share_of_ranking, share, "simulating those with less memory"));
    find_front(ranking, options, slowest, result);
  }
  for (const std::size_t i : ranking.judged()) note_judged(ranking.row(i), options.memory_share, result);
}

// Ranks a shard's candidates, and reports what was found of them.
void simulate_shard(const Scenario& scenario, const std::vector<Candidate>& candidates, const SearchOptions& options,
                    SearchResult& result) {
  StepEstimator estimator(scenario.step, priced_cluster(scenario), scenario.memory);
  const std::vector<std::size_t> numbers = points_in({options.shard, options.shards}, candidates.size());
  std::vector<Candidate> own;
  for (const std::size_t number : numbers) own.push_back(candidates[number]);
  Ranking ranking(scenario, options, estimator, own);
  ranking.fastest(options.best, part_of(options, 0, 1, "simulating the fastest"));
  for (const auto& [candidate, values] : ranking.found()) (*options.found)[numbers[candidate]] = values;
  result.simulated = std::ssize(ranking.found());
}

// The first few of the best, in their best order of nodes and split of layers.
void refine(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options, SearchResult& result) {
  constexpr std::size_t most = 3;
  if (result.best.empty() || !is_uneven(scenario.cluster) || (!space.splits && !space.orders)) return;
  result.unrefined_s = result.best.front().step_time_s;
  for (std::size_t i = 0; i < std::min(most, result.best.size()); ++i) {
    const Refinement better = refined(scenario, result.best[i], space.splits, space.orders, options);
    result.best[i] = better.row;
    result.refinements += better.simulated;
    ++result.refined;
    const int count = static_cast<int>(std::min(most, result.best.size()));
    part_of(options, 1 - share_of_refining, 1, "refining nodes and splits of the best")(result.refined,
                                                                                        count - result.refined);
  }
  std::stable_sort(result.best.begin(), result.best.end(), is_better);
  std::vector<PricedLayout> rows = result.pareto;
  rows.insert(rows.end(), result.best.begin(), result.best.end());
  result.pareto = front_of(std::move(rows));
}

void add_intervals(const Scenario& scenario, SearchResult& result) {
  for (std::vector<PricedLayout>* rows : {&result.best, &result.pareto})
    for (PricedLayout& row : *rows) {
      if (!row.simulated) continue;
      row.interval = interval_of(replayable_step(with_layout(scenario, row.choice)), row.step_time_s);
      const PricedLayout& first = result.best.front();
      if (&row != &first && row.interval && first.interval)
        row.first_is_faster =
            probability_faster(scenario, first.step_time_s, *first.interval, row.step_time_s, *row.interval);
    }
}

constexpr std::array numbers{&PricedLayout::step_time_s,        &PricedLayout::mfu,
                             &PricedLayout::compute_share,      &PricedLayout::bubble_share,
                             &PricedLayout::exposed_comm_share, &PricedLayout::memory_bytes,
                             &PricedLayout::memory_share,       &PricedLayout::fit_probability,
                             &PricedLayout::timeline_bytes,     &PricedLayout::timeline_share,
                             &PricedLayout::replayed_s};
static_assert(values_of_layout == 1 + numbers.size());

}  // namespace

void check_memory_share(double share, const std::string& given) {
  if (!(share > 0 && share <= 1)) throw UsageError(given + " is no share; allowed: a number above 0 and up to 1");
}

bool is_better(const PricedLayout& a, const PricedLayout& b) {
  return a.step_time_s != b.step_time_s ? a.step_time_s < b.step_time_s : a.memory_bytes < b.memory_bytes;
}

int workers_of(const SearchOptions& options) { return options.workers > 0 ? options.workers : core_count(); }

SearchResult search_layouts(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const auto stopped = [&] { return options.interrupted && options.interrupted(); };
  Screening screened = screen(scenario, space, options.memory_share, workers_of(options), stopped);
  SearchResult result;
  result.legal = screened.legal;
  result.too_large = screened.too_large;
  result.best_too_large = screened.best_too_large;
  result.screening_s = seconds_since(begin);
  if (options.found != nullptr) {
    if (!stopped()) simulate_shard(scenario, screened.candidates, options, result);
    result.complete = !stopped();
    return result;
  }
  if (!stopped()) simulate(scenario, screened.candidates, options, result);
  if (!stopped()) refine(scenario, space, options, result);
  if (!stopped() && !result.best.empty()) add_intervals(scenario, result);
  result.simulation_s = seconds_since(begin) - result.screening_s;
  result.complete = !stopped();
  if (result.best.empty() && result.complete) {
    part_of(options, 0, 0, "looking for the closest layout")(0, 0);
    result.closest = closest_of(scenario, screened);
  }
  return result;
}

PricedLayout price_layout(const Scenario& scenario, const Step& choice) {
  return price_if_it_fits(scenario, choice, std::numeric_limits<double>::infinity());
}

PricedLayout price_if_it_fits(const Scenario& scenario, const Step& choice, double memory_share, double limit_s) {
  const Scenario one = with_layout(scenario, choice);
  PricedLayout row;
  row.choice = choice;
  row.choice.layout = one.step.layout;  // as it is balanced
  const Evaluation found = evaluate(one, TimelineBy::simulation, [&](const MemoryNeed& need) {
    return need.recommended_share() <= memory_share ? std::optional(limit_s) : std::nullopt;
  });
  row.judged = true;
  row.memory_bytes = found.memory.recommended_bytes, row.memory_share = found.memory.recommended_share();
  row.fit_probability = found.memory.fit_probability;
  row.simulated = found.has_timeline, row.replayed_s = found.replayed_s;
  row.step_time_s = found.step.step_time_s, row.mfu = found.step.mfu;
  row.compute_share = found.step.compute_share, row.bubble_share = found.step.bubble_share;
  row.exposed_comm_share = found.step.exposed_comm_share;
  row.timeline_bytes = found.timeline_bytes, row.timeline_share = found.timeline_share;
  return row;
}

std::vector<double> values_of(const PricedLayout& row) {
  std::vector<double> values{row.simulated ? 1.0 : 0};
  for (const auto number : numbers) values.push_back(row.*number);
  return values;
}

void set_values(const std::vector<double>& values, PricedLayout& row) {
  row.judged = true;
  row.simulated = values.at(0) != 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) row.*numbers[i] = values.at(1 + i);
}

bool fits(const PricedLayout& row, double memory_share) { return row.judged && row.memory_share <= memory_share; }

}  // namespace slipway::scenarios
