#include "scenarios/search.h"

#include <algorithm>
#include <chrono>

#include "scenarios/search_ranking.h"

namespace slipway {
namespace {

constexpr double front_slowest = 2;       // times the fastest: what is slower is no alternative
constexpr double front_step = 0.02;       // of a GPU's memory: what saves less is none either
constexpr double share_of_ranking = 0.6;  // of the time that simulations take, roughly

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A part of the whole's progress.
std::function<void(double)> part_of(const SearchOptions& options, double from, double to) {
  return [&options, from, to](double share) {
    if (options.progress) options.progress(from + (to - from) * share);
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
    if (candidates[i].memory_share <= candidates[front.back()].memory_share - front_step)
      front.push_back(i);
  return front;
}

// Of all that were simulated, those that need less memory than every faster one.
void find_front(const Ranking& ranking, const SearchOptions& options, double slowest,
                SearchResult& result) {
  std::vector<PricedLayout> rows;
  for (const std::size_t i : ranking.judged())
    if (fits(ranking.row(i), options.memory_share) && ranking.row(i).step_time_s <= slowest)
      rows.push_back(ranking.row(i));
  std::stable_sort(rows.begin(), rows.end(), is_better);
  for (const PricedLayout& row : rows)
    if (result.pareto.empty() || row.memory_share <= result.pareto.back().memory_share - front_step)
      result.pareto.push_back(row);
}

void note_judged(const PricedLayout& row, double memory_share, SearchResult& result) {
  result.simulated += row.simulated ? 1 : 0;
  if (fits(row, memory_share)) return;
  ++result.too_large;
  std::optional<PricedLayout>& best = result.best_too_large;
  if (!best || row.bound_s < best->bound_s) best = row;
}

// Of those that need the least by their bounds, the one that needs the least by its verdict.
std::optional<PricedLayout> closest_of(const Scenario& scenario, const Screening& screened) {
  std::optional<PricedLayout> closest;
  for (const Candidate& candidate : screened.smallest) {
    const PricedLayout row = price_if_it_fits(scenario, candidate.choice, 0);
    if (!closest || row.memory_share < closest->memory_share) closest = row;
  }
  return closest;
}

void simulate(const Scenario& scenario, const std::vector<Candidate>& candidates, StepEstimator& estimator,
              const SearchOptions& options, SearchResult& result) {
  Ranking ranking(scenario, options, estimator, candidates);
  const auto best = ranking.fastest(options.best, part_of(options, 0, share_of_ranking));
  for (const std::size_t i : best) result.best.push_back(ranking.row(i));
  if (!best.empty()) {
    const double slowest = front_slowest * result.best.front().step_time_s;
    ranking.simulate(front_of_bounds(candidates, best.front(), slowest),
                     part_of(options, share_of_ranking, 1));
    find_front(ranking, options, slowest, result);
  }
  for (const std::size_t i : ranking.judged()) note_judged(ranking.row(i), options.memory_share, result);
}

}  // namespace

bool is_better(const PricedLayout& a, const PricedLayout& b) {
  return a.step_time_s != b.step_time_s ? a.step_time_s < b.step_time_s : a.memory_bytes < b.memory_bytes;
}

SearchResult search_layouts(const Scenario& scenario, const SearchSpace& space,
                            const SearchOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const auto stopped = [&] { return options.interrupted && options.interrupted(); };
  StepEstimator estimator(lowering_input(scenario), scenario.cluster, scenario.trainer,
                          has_pace(scenario) ? &*scenario.stack : nullptr);
  Screening screened = screen(scenario, space, options.memory_share, estimator, stopped);
  SearchResult result;
  result.legal = screened.legal;
  result.too_large = screened.too_large;
  result.best_too_large = screened.best_too_large;
  result.screening_s = seconds_since(begin);
  if (!stopped()) simulate(scenario, screened.candidates, estimator, options, result);
  result.simulation_s = seconds_since(begin) - result.screening_s;
  result.complete = !stopped();
  if (result.best.empty()) result.closest = closest_of(scenario, screened);
  return result;
}

}  // namespace slipway
