#include "scenarios/laboratory/validate/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "models/trace/statistics.h"

namespace slipway::scenarios {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

// Ranks from 1 for the smallest value. Equal values share the mean of their ranks.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  std::vector<double> result(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i)
      result[order[i]] = static_cast<double>(begin + end + 1) / 2;  // mean of begin+1 ... end
    begin = end;
  }
  return result;
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

TimeScore time_score(std::span<const TimePair> pairs) {
  TimeScore score;
  std::vector<double> sizes, errors;
  for (const TimePair& pair : pairs) {
    if (pair.predicted > 0) {
      errors.push_back(100 * (pair.predicted / pair.measured - 1));
      sizes.push_back(std::abs(errors.back()));
    } else {
      ++score.unpriced;
      sizes.push_back(100);
    }
  }
  score.priced = static_cast<int>(errors.size());
  score.mape = sizes.empty() ? undefined : mean(sizes);
  score.median_ape = sizes.empty() ? undefined : median(sizes);
  score.bias = errors.empty() ? undefined : mean(errors);
  return score;
}

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size() || a.size() < 2) return undefined;
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double centre = mean(x);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - centre) * (y[i] - centre);
    xx += (x[i] - centre) * (x[i] - centre);
    yy += (y[i] - centre) * (y[i] - centre);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : undefined;
}

Regret regret_of(std::span<const TableLayout> table) {
  double best = 0;
  std::vector<const TableLayout*> order;
  for (const TableLayout& candidate : table) {
    best = std::max(best, candidate.measured_mfu);
    if (candidate.predicted_to_fit && candidate.predicted_mfu > 0) order.push_back(&candidate);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const TableLayout* a, const TableLayout* b) { return a->predicted_mfu > b->predicted_mfu; });
  Regret regret{1, 1, false};
  if (order.empty() || !(best > 0)) return regret;
  regret.first = 1 - order.front()->measured_mfu / best;
  regret.first_ran_out = order.front()->measured_mfu == 0;
  constexpr std::size_t tried = 3;
  for (std::size_t i = 0; i < std::min(order.size(), tried); ++i)
    regret.best_of_three = std::min(regret.best_of_three, 1 - order[i]->measured_mfu / best);
  return regret;
}

double Confusion::share_right() const {
  return rows() == 0 ? undefined : static_cast<double>(true_fit + true_oom) / rows();
}

double Confusion::share_of_safe_oom() const {
  return true_fit + false_fit == 0 ? 0.0 : static_cast<double>(false_fit) / (true_fit + false_fit);
}

Confusion confusion(std::span<const MemoryPair> pairs) {
  Confusion result;
  for (const MemoryPair& pair : pairs) {
    if (pair.predicted_to_fit)
      ++(pair.fitted ? result.true_fit : result.false_fit);
    else
      ++(pair.fitted ? result.false_oom : result.true_oom);
  }
  return result;
}

}  // namespace slipway::scenarios
