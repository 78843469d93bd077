#include "scenarios/search/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <stdexcept>

#include "scenarios/search/layout_text.h"

namespace slipway::scenarios {

namespace {

constexpr double rounding = 1 + 1e-9;  // the simulator adds up in another order than the bounds

}  // namespace

void refuse_below_bound(const Step& choice, double bound_s, double step_time_s) {
  constexpr double simulated = 1 + 1e-6;  // SimGrid ends flows to nine digits each; that is no violation
  if (step_time_s * simulated >= bound_s) return;
  throw std::runtime_error(
      fmt::format("the layout {} was simulated to take {:.9g} s, less than its lower bound of {:.9g} s; "
                  "this is a defect of slipway, please report it",
                  layout_text(choice), step_time_s, bound_s));
}

struct Ranking::Round {
  int count = 0, done = 0;
  struct Queue : std::priority_queue<Item, std::vector<Item>, std::greater<>> {
    int up_to(double bound) const {
      return static_cast<int>(std::count_if(c.begin(), c.end(), [&](const Item& item) { return item.bound <= bound; }));
    }
    void fill(std::vector<Item> items) {
      c = std::move(items);
      std::make_heap(c.begin(), c.end(), comp);
    }
  } queue;
  std::vector<Item> given;
  std::vector<double> fastest;  // ascending, at most `count`

  // A candidate with a bound above this cannot be one of them.
  double limit() const {
    return static_cast<int>(fastest.size()) < count ? std::numeric_limits<double>::infinity()
                                                    : fastest.back() * rounding;
  }
  bool has_work() const { return !queue.empty() && queue.top().bound <= limit(); }
  void add(double step_time_s) {
    fastest.insert(std::upper_bound(fastest.begin(), fastest.end(), step_time_s), step_time_s);
    if (static_cast<int>(fastest.size()) > count) fastest.pop_back();
  }
};

Ranking::Ranking(const Scenario& scenario, const SearchOptions& options, StepEstimator& estimator,
                 const std::vector<Candidate>& candidates)
    : scenario_(scenario),
      options_(options),
      estimator_(estimator),
      candidates_(candidates),
      is_sharp_(candidates.size(), false),
      sharp_bounds_(candidates.size(), 0),
      workers_(workers_of(options),
               [this](int job, double limit) { return nlohmann::json(price(static_cast<std::size_t>(job), limit)); }) {}

// A result of another machine is used where this one would compute the same: a layout that was simulated and replayed,
// is too large, or is slower than the limit.
std::vector<double> Ranking::price(std::size_t candidate, double limit) const {
  constexpr double apart = 1 + 1e-6;  // as simulated_step keeps off the limit
  if (options_.known != nullptr) {
    if (const auto known = options_.known->find(candidate); known != options_.known->end()) {
      PricedLayout row;
      set_values(known->second, row);
      const bool is_replayed = row.replayed_s > 0 || !std::isfinite(limit);
      const bool is_too_large = !row.simulated && row.memory_share > options_.memory_share;
      const bool is_too_slow = !row.simulated && row.replayed_s > limit * apart;
      if ((row.simulated && is_replayed) || is_too_large || is_too_slow) return known->second;
    }
  }
  return values_of(price_if_it_fits(scenario_, candidates_[candidate].choice, options_.memory_share, limit));
}

bool Ranking::fits(std::size_t candidate) const {
  const auto found = rows_.find(candidate);
  return found != rows_.end() && slipway::scenarios::fits(found->second, options_.memory_share);
}

bool Ranking::is_simulated(std::size_t candidate) const {
  const auto found = rows_.find(candidate);
  return found != rows_.end() && found->second.simulated;
}

std::vector<std::size_t> Ranking::fastest(int count, const ProgressOf& progress) {
  Round round;
  round.count = count;
  std::vector<Item> items;
  for (std::size_t i = 0; i < candidates_.size(); ++i) items.push_back({candidates_[i].bound_s, i});
  round.queue.fill(std::move(items));
  while (!interrupted()) {
    while (workers_.idle() && round.has_work()) {
      const Item item = round.queue.top();
      round.queue.pop();
      ask(round, item);
    }
    if (workers_.busy() == 0) break;
    take(round);
    progress(round.done, workers_.busy() + round.queue.up_to(round.limit()));
  }
  for (const Item& item : round.given) {
    if (!rows_.contains(item.candidate)) continue;  // interrupted
    // A row as fast as the slowest of them counts too.
    const bool is_as_fast =
        fits(item.candidate) && is_simulated(item.candidate) && row(item.candidate).step_time_s <= round.limit();
    const double bound = std::max(item.bound, sharp_bounds_[item.candidate]);
    if (bound <= round.limit() || is_as_fast) judged_.insert(item.candidate);
  }
  std::vector<std::size_t> found;
  for (const std::size_t i : judged_)
    if (fits(i)) found.push_back(i);
  std::sort(found.begin(), found.end(), [this](std::size_t a, std::size_t b) {
    if (is_better(row(a), row(b))) return true;
    return !is_better(row(b), row(a)) && a < b;
  });
  if (std::ssize(found) > count) found.resize(count);
  return found;
}

void Ranking::simulate(const std::vector<std::size_t>& which, const ProgressOf& progress) {
  Round round;
  std::size_t next = 0;
  const auto give = [&] {
    for (; next < which.size() && workers_.idle(); ++next)
      if (const std::size_t each = which[next];
          judged_.insert(each).second && (fits(each) ? !is_simulated(each) : !rows_.contains(each)))
        workers_.give(static_cast<int>(which[next]));
    return workers_.busy() > 0;
  };
  while (!interrupted() && give()) {
    take(round);
    progress(round.done, workers_.busy() + static_cast<int>(which.size() - next));
  }
  std::erase_if(judged_, [this](std::size_t i) { return !rows_.contains(i); });
}

void Ranking::ask(Round& round, const Item& item) {
  if (is_sharp_[item.candidate]) {
    round.given.push_back(item);
    // Finite, so that all are replayed: whether a candidate counts must not depend on when it was taken.
    workers_.give(static_cast<int>(item.candidate), std::min(round.limit(), std::numeric_limits<double>::max()));
    return;
  }
  is_sharp_[item.candidate] = true;
  double& bound = sharp_bounds_[item.candidate];
  bound = estimator_.passes_bound(candidates_[item.candidate].choice);
  round.queue.push({std::max(item.bound, bound), item.candidate});
}

void Ranking::take(Round& round) {
  const auto outcome = workers_.take(100);
  if (!outcome) return;
  const auto candidate = static_cast<std::size_t>(outcome->job);
  if (outcome->failure) {
    if (interrupted()) return;
    throw std::runtime_error("simulating the layout " + layout_text(candidates_[candidate].choice) + ": " +
                             *outcome->failure);
  }
  note_row(candidate, *outcome);
  ++round.done;
  if (fits(candidate) && is_simulated(candidate)) round.add(row(candidate).step_time_s);
}

void Ranking::note_row(std::size_t candidate, const Workers::Outcome& outcome) {
  found_[candidate] = outcome.answer.get<std::vector<double>>();
  PricedLayout& row = rows_[candidate];
  row.choice = candidates_[candidate].choice;
  if (row.choice.layout.split == SplitKind::balanced)
    row.choice.layout = with_layout(scenario_, row.choice).step.layout;
  row.bound_s = candidates_[candidate].bound_s;
  set_values(found_[candidate], row);
  const double bound_s = std::max(row.bound_s, sharp_bounds_[candidate]);
  sharp_bounds_[candidate] = std::max(bound_s, row.replayed_s);
  // No bound is required of the replay: contention may delay an earlier step more than the last one.
  if (row.simulated)
    refuse_below_bound(row.choice, bound_s, row.step_time_s);
  else
    row.step_time_s = row.bound_s;
}

}  // namespace slipway::scenarios
