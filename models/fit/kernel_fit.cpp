#include "models/fit/kernel_fit.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "models/fit/folds.h"
#include "models/fit/prior_fit.h"
#include "models/trace/statistics.h"

namespace slipway::models {
namespace {

constexpr int folds = 5;
constexpr double scale = 0.03;  // of the logarithm: how closely the forms hold where they hold

// A GEMM that casts nothing has no constant for it, the last one.
bool has_last(const KernelTable& table) { return table.kind != KernelKind::gemm || table.casts; }

KernelValues values_of(const KernelTable& table, std::span<const double> fitted) {
  KernelValues values{};
  std::copy_n(fitted.begin(), values.size(), values.begin());
  if (!has_last(table)) values.back() = 0;
  return values;
}

std::vector<PriorParameter> priors_of(const KernelTable& table) {
  std::vector<PriorParameter> priors;
  const auto constants = constants_of(table.kind);
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const double around = table.around ? (*table.around)[i] : 0;  // 0: that GPU has none
    priors.push_back({around > 0 ? around : constants[i].prior, constants[i].spread, constants[i].most});
  }
  if (!has_last(table)) priors.back().spread = 0;
  return priors;
}

PriorFit fit_without(const KernelTable& table, const std::vector<int>& part, int left_out) {
  std::vector<const MeasuredKernel*> rows;
  std::vector<double> measured;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (part[i] == left_out) continue;
    rows.push_back(&table.rows[i]);
    measured.push_back(table.rows[i].seconds);
  }
  const auto predict = [&](std::span<const double> values) {
    const KernelValues all = values_of(table, values);
    std::vector<double> seconds;
    for (const MeasuredKernel* row : rows) seconds.push_back(seconds_of(table, all, *row));
    return seconds;
  };
  PriorFitOptions options;
  options.scale = scale;
  return fit_with_priors(priors_of(table), measured, predict, options);
}

KernelError error_of(const KernelTable& table, const std::vector<double>& predicted) {
  std::vector<double> errors, ratios;
  double sum = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    ratios.push_back(predicted[i] / table.rows[i].seconds);
    errors.push_back(std::abs(ratios.back() - 1));
    sum += errors.back();
  }
  return {sum / static_cast<double>(errors.size()), median(errors), median(ratios)};
}

}  // namespace

double seconds_of(const KernelTable& table, const KernelValues& values, const MeasuredKernel& row) {
  switch (table.kind) {
    case KernelKind::gemm:
      return seconds_of(named<GemmConstants>(values), table.rates, std::get<GemmShape>(row.shape));
    case KernelKind::grouped_gemm:
      return seconds_of(named<GroupedGemmConstants>(values), table.rates, std::get<GroupedGemmShape>(row.shape));
    case KernelKind::collective:
      return seconds_of(named<CollectiveConstants>(values), table.bandwidth, std::get<CollectiveShape>(row.shape));
    default:
      return seconds_of(named<AttentionConstants>(values), table.rates, std::get<AttentionShape>(row.shape));
  }
}

KernelError error_of(const KernelTable& table, const KernelValues& values) {
  std::vector<double> predicted;
  for (const MeasuredKernel& row : table.rows) predicted.push_back(seconds_of(table, values, row));
  return error_of(table, predicted);
}

KernelFit fit_kernel(const KernelTable& table) {
  if (table.rows.size() < (table.around ? 1 : least_shapes))
    throw std::invalid_argument(std::to_string(table.rows.size()) +
                                " rows are too few for the constants of a kernel; " + std::to_string(least_shapes) +
                                " are enough");
  std::vector<std::string> names;
  for (const MeasuredKernel& row : table.rows) names.push_back(row.name);
  const std::vector<int> part = folds_of(names, folds);
  constexpr int none = -1;
  const PriorFit all = fit_without(table, part, none);
  KernelFit fit;
  fit.values = values_of(table, all.values);
  const auto constants = constants_of(table.kind);
  for (std::size_t i = 0; i < constants.size(); ++i) fit.spread[i] = all.remaining_spread[i] * constants[i].spread;
  fit.in_sample = error_of(table, fit.values);
  fit.predicted_s.resize(table.rows.size());
  for (int fold = 0; fold < folds; ++fold) {
    const KernelValues values = values_of(table, fit_without(table, part, fold).values);
    for (std::size_t i = 0; i < table.rows.size(); ++i)
      if (part[i] == fold) fit.predicted_s[i] = seconds_of(table, values, table.rows[i]);
  }
  fit.left_out = error_of(table, fit.predicted_s);
  return fit;
}

}  // namespace slipway::models
