#include "models/memory/memory_odds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/trace/statistics.h"

namespace slipway::models {
namespace {

// z with normal_share(z) = share, by bisection.
double normal_point(double share) {
  double low = -9, high = 9;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (normal_share(middle) < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

constexpr double point_of_95 = 1.6448536269514722;

// ∂ln(peak)/∂z of each constant.
std::vector<double> slopes_of(const StageTerms& terms, const MemoryConstants& constants, double peak) {
  constexpr double step = 1e-4;
  std::vector<double> slopes;
  MemoryConstants moved = constants;
  for (std::size_t i = 0; i < constants.spreads.size(); ++i) {
    double& value = moved.*memory_parameters()[i].value;
    const double before = value;
    value *= std::exp(constants.spreads[i] * step);
    slopes.push_back(std::log(peak_bytes(terms, moved) / peak) / step);
    value = before;
  }
  return slopes;
}

double variance_of(const std::vector<double>& slopes, const MemoryConstants& constants) {
  double variance = 0;
  const std::size_t n = slopes.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) variance += slopes[i] * constants.covariance[i * n + j] * slopes[j];
  return std::max(variance, 0.0);
}

double first_stage_peak(const MemoryRun& run, Gathered gathered, const MemoryConstants& constants) {
  StageTerms first = run.stages.front();
  first.gathered = gathered;
  return reserved_bytes(first, constants);
}

}  // namespace

double MemoryOdds::fits(double capacity) const {
  if (!(capacity > 0)) return 0;
  if (!(bytes > 0)) return 1;
  const double room = std::log(capacity / bytes);
  if (!(spread > 0)) return room >= 0 ? 1 - other_share / 2 : other_share / 2;  // as counted
  return (1 - other_share) * normal_share(room / spread) + other_share / 2;
}

double MemoryOdds::least() const { return bytes * std::exp(-point_of_95 * spread); }
double MemoryOdds::most() const { return bytes * std::exp(point_of_95 * spread); }

double MemoryOdds::recommended() const {
  const double share = (recommended_probability - other_share / 2) / (1 - other_share);
  if (!(share < 1)) return std::numeric_limits<double>::infinity();
  return bytes * std::exp(spread * normal_point(share));
}

MemoryOdds odds_of(const StageTerms& terms, const MemoryConstants& constants) {
  MemoryOdds odds;
  odds.bytes = peak_bytes(terms, constants);
  odds.other_share = constants.other_share;
  const double variance = odds.bytes > 0 ? variance_of(slopes_of(terms, constants, odds.bytes), constants) : 0;
  odds.spread = std::sqrt(variance + constants.table_spread * constants.table_spread +
                          constants.row_spread * constants.row_spread);
  return odds;
}

double first_stage_peak(const MemoryRun& run, const MemoryConstants& constants) {
  return first_stage_peak(run, run.gathered, constants);
}

MemoryPrice price_memory(const MemoryRun& run, const MemoryConstants& constants) {
  const MemoryParts first = estimated(run.stages.front(), constants);
  MemoryPrice price;
  price.static_bytes = first[MemoryPart::weights] + first[MemoryPart::gradients] + first[MemoryPart::optimizer] +
                       first[MemoryPart::tables];
  price.first_bytes = first_stage_peak(run, run.usual, constants);
  price.capacity_bytes = run.capacity_bytes;
  price.probability = 2;
  for (const StageTerms& stage : run.stages) {
    const MemoryOdds odds = odds_of(stage, constants);
    const double probability = odds.fits(run.capacity_bytes);
    // The fullest of those that are equally likely, which in a roomy GPU are all.
    if (probability > price.probability || (probability == price.probability && odds.bytes <= price.odds.bytes))
      continue;
    price.probability = probability;
    price.odds = odds;
  }
  price.fits = is_likely(price.probability);
  price.fits_cautious = price.probability >= recommended_probability;
  return price;
}

}  // namespace slipway::models
