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

struct Numbers {  // the message of a worker
  bool simulated;
  double step_time_s, mfu, compute_share, bubble_share, exposed_comm_share;
  double memory_bytes, memory_share, fit_probability, timeline_bytes, timeline_share;
  double replayed_s;
};

Numbers numbers_of(const PricedLayout& row) {
  return {row.simulated,          row.step_time_s,  row.mfu,          row.compute_share,   row.bubble_share,
          row.exposed_comm_share, row.memory_bytes, row.memory_share, row.fit_probability, row.timeline_bytes,
          row.timeline_share,     row.replayed_s};
}

std::vector<double> values_of(const Numbers& n) {
  return {n.simulated ? 1.0 : 0, n.step_time_s,  n.mfu,          n.compute_share,   n.bubble_share,
          n.exposed_comm_share,  n.memory_bytes, n.memory_share, n.fit_probability, n.timeline_bytes,
          n.timeline_share,      n.replayed_s};
}

Numbers numbers_in(const std::vector<double>& v) {
  static_assert(values_of_layout == 12);
  return {v.at(0) != 0, v.at(1), v.at(2), v.at(3), v.at(4),  v.at(5),
          v.at(6),      v.at(7), v.at(8), v.at(9), v.at(10), v.at(11)};
}

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
      workers_(workers_of(options), [this](int job, double limit, std::byte* result) {
        price(static_cast<std::size_t>(job), limit, result);
      }) {}

// A result of another machine is used where this one would compute the same: a layout that was simulated and replayed,
// is too large, or is slower than the limit.
void Ranking::price(std::size_t candidate, double limit, std::byte* result) const {
  constexpr double apart = 1 + 1e-6;  // as simulated_step keeps off the limit
  if (options_.known != nullptr) {
    if (const auto known = options_.known->find(candidate); known != options_.known->end()) {
      const Numbers numbers = numbers_in(known->second);
      const bool is_replayed = numbers.replayed_s > 0 || !std::isfinite(limit);
      const bool is_too_large = !numbers.simulated && numbers.memory_share > options_.memory_share;
      const bool is_too_slow = !numbers.simulated && numbers.replayed_s > limit * apart;
      if ((numbers.simulated && is_replayed) || is_too_large || is_too_slow) {
        Workers::put(numbers, result);
        return;
      }
    }
  }
  Workers::put(numbers_of(price_if_it_fits(scenario_, candidates_[candidate].choice, options_.memory_share, limit)),
               result);
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
  if (outcome->failed) {
    if (interrupted()) return;
    throw std::runtime_error("simulating the layout " + layout_text(candidates_[candidate].choice) + ": " +
                             outcome->text);
  }
  note_row(candidate, *outcome);
  ++round.done;
  if (fits(candidate) && is_simulated(candidate)) round.add(row(candidate).step_time_s);
}

void Ranking::note_row(std::size_t candidate, const Workers::Outcome& outcome) {
  const auto numbers = outcome.as<Numbers>();
  found_[candidate] = values_of(numbers);
  PricedLayout& row = rows_[candidate];
  row.choice = candidates_[candidate].choice;
  if (row.choice.layout.split == SplitKind::balanced)
    row.choice.layout = with_layout(scenario_, row.choice).step.layout;
  row.bound_s = row.step_time_s = candidates_[candidate].bound_s;
  row.judged = true;
  row.memory_bytes = numbers.memory_bytes, row.memory_share = numbers.memory_share;
  row.fit_probability = numbers.fit_probability;
  const double bound_s = std::max(row.bound_s, sharp_bounds_[candidate]);
  sharp_bounds_[candidate] = std::max(bound_s, numbers.replayed_s);
  if (!numbers.simulated) return;
  row.simulated = true;
  // No bound is required of the replay: contention may delay an earlier step more than the last one.
  refuse_below_bound(row.choice, bound_s, numbers.step_time_s);
  row.step_time_s = numbers.step_time_s, row.mfu = numbers.mfu;
  row.compute_share = numbers.compute_share, row.bubble_share = numbers.bubble_share;
  row.exposed_comm_share = numbers.exposed_comm_share;
  row.timeline_bytes = numbers.timeline_bytes, row.timeline_share = numbers.timeline_share;
}

}  // namespace slipway::scenarios
