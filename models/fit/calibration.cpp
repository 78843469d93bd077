#include "models/fit/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "models/fit/fit_parameter.h"
#include "models/fit/group_fit.h"
#include "models/trace/statistics.h"

namespace slipway::models {

namespace {

constexpr double clear_overlap = 0.5;      // share above which a task counts for overlap
constexpr std::size_t least_overlaps = 3;  // tasks
// Shares of the largest row's seconds in isolation. A small row's time is mostly what a task costs besides its work.
constexpr double large_share = 0.25, small_share = 0.05;
constexpr std::size_t least_small = 3;
constexpr const char* task_overhead_kind = "task_overhead";

double overlap_factor(const Machine& machine, const Observation& observation) {
  return 1 + (machine.overlap_slowdown - 1) * observation.overlap_share;
}

// The seconds that the fit takes as measured.
double measured(const RunCosts& costs, const Observation& observation) {
  if (!observation.isolated) return observation.seconds;
  const RunCost& cost = costs[static_cast<std::size_t>(observation.group)];
  return observation.seconds * cost.factor + (observation.kind == task_overhead_kind ? cost.task_s : 0);
}

double relative_error(const Machine& machine, const RunCosts& costs, const Observation& observation) {
  const double predicted = observation.predict(machine) * overlap_factor(machine, observation);
  return std::abs(predicted / measured(costs, observation) - 1);
}

void check(const Machine& start, const std::vector<Observation>& observations) {
  if (observations.empty()) throw std::invalid_argument("there is nothing to fit: no measurement and no trace record");
  Machine probe = start;  // with rates where the machine has none, so that only real gaps are found
  for (const auto group : all_groups) {
    for (const FitParameter& parameter : parameters_of(group, start, true)) {
      if (parameter.cost(probe) <= 0 && parameter.guess > 0) parameter.set_cost(probe, parameter.guess);
    }
  }
  for (const Observation& observation : observations) {
    const double seconds = observation.predict(probe);
    if (!(observation.seconds > 0) || !std::isfinite(observation.seconds) || !std::isfinite(seconds)) {
      throw std::invalid_argument(observation.kind + " " + observation.name + ": cannot be fitted, measured " +
                                  std::to_string(observation.seconds) + " s, predicted " + std::to_string(seconds) +
                                  " s");
    }
  }
}

// Fits all groups at once, for one choice of observations (weight 0 = left out).
class WholeFit {
 public:
  WholeFit(const Machine& start, const std::vector<Observation>& observations, std::vector<double> weights)
      : start_(start), observations_(observations), weights_(std::move(weights)) {}

  const RunCosts& costs() const { return costs_; }

  GroupFit run() {
    find_run_costs();
    GroupFit result{start_, {}};
    result.machine.overlap_slowdown = 1;
    const bool overlaps = count_overlaps() >= least_overlaps;
    // First undisturbed tasks; then the time that overlap adds; then all tasks without that time.
    if (overlaps) {
      fit_compute(result, true);
      FittedParameter slowdown;
      for (int round = 0; round < 3; ++round) {
        slowdown = fit_overlap(result.machine);
        fit_compute(result, false);
      }
      result.parameters.push_back(slowdown);
    } else {
      fit_compute(result, false);
      result.machine.overlap_slowdown = start_.overlap_slowdown;
    }
    bool reduced = false;
    for (const auto group : link_groups) {
      const std::vector<FitRow> rows = rows_of(result.machine, group, false);
      if (rows.empty()) continue;
      append(result, fit_group(result.machine, parameters_of(group, start_, !reduced), rows, false));
      reduced = reduced || is_between_ranks(group);
    }
    return result;
  }

 private:
  std::size_t count_overlaps() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < observations_.size(); ++i) {
      count += weights_[i] > 0 && observations_[i].overlap_share > clear_overlap ? 1U : 0U;
    }
    return count;
  }

  // Fits only what was measured in isolation. What the run's work costs beyond that prediction then follows.
  void find_run_costs() {
    for (const auto group : all_groups) {
      std::vector<FitRow> isolated, in_run;
      for (const FitRow& row : rows_of(start_, group, true)) {
        (row.observation->isolated ? isolated : in_run).push_back(row);
      }
      if (isolated.empty() || in_run.empty()) continue;
      const bool is_compute = group == ObservationGroup::compute;
      const Machine machine = fit_group(start_, parameters_of(group, start_, true), isolated, is_compute).machine;
      costs_[static_cast<std::size_t>(group)] = cost_in_run(machine, in_run, is_compute);
    }
  }

  // f of the large rows, h of what is left of the small ones. Rows of one size would give any f and h whose sum fits.
  static RunCost cost_in_run(const Machine& isolated, const std::vector<FitRow>& in_run, bool of_tasks) {
    std::vector<double> alone;
    for (const FitRow& row : in_run) alone.push_back(row.observation->predict(isolated));
    const double largest = *std::max_element(alone.begin(), alone.end());
    double most = std::numeric_limits<double>::infinity();  // a task's own cost is no more than half of a large row
    for (std::size_t i = 0; i < in_run.size(); ++i)
      if (alone[i] >= large_share * largest) most = std::min(most, in_run[i].seconds / 2);
    RunCost cost;
    for (int round = 0; round < 4; ++round) {
      std::vector<std::pair<double, double>> ratios;
      std::vector<double> left;
      for (std::size_t i = 0; i < in_run.size(); ++i) {
        if (!of_tasks || alone[i] >= large_share * largest)
          ratios.emplace_back((in_run[i].seconds - cost.task_s) / alone[i], in_run[i].weight);
        if (of_tasks && in_run[i].observation->of_pass && alone[i] <= small_share * largest)
          left.push_back(in_run[i].seconds - alone[i] * cost.factor);
      }
      cost.factor = weighted_median(std::move(ratios));
      if (round > 0 && left.size() >= least_small) cost.task_s = std::clamp(median(std::move(left)), 0.0, most);
    }
    return cost;
  }

  std::vector<FitRow> rows_of(const Machine& machine, ObservationGroup group, bool only_undisturbed) const {
    std::vector<FitRow> rows;
    for (std::size_t i = 0; i < observations_.size(); ++i) {
      const Observation& observation = observations_[i];
      if (observation.group != group || !(weights_[i] > 0)) continue;
      if (only_undisturbed && observation.overlap_share > undisturbed_share) continue;
      rows.push_back({&observation, measured(costs_, observation) / overlap_factor(machine, observation), weights_[i]});
    }
    return rows;
  }

  void fit_compute(GroupFit& result, bool only_undisturbed) const {
    std::vector<FitRow> rows = rows_of(result.machine, ObservationGroup::compute, only_undisturbed);
    if (rows.empty()) rows = rows_of(result.machine, ObservationGroup::compute, false);
    if (rows.empty()) return;
    const double slowdown = result.machine.overlap_slowdown;
    result = fit_group(start_, parameters_of(ObservationGroup::compute, start_, false), rows, true);
    result.machine.overlap_slowdown = slowdown;
  }

  FittedParameter fit_overlap(Machine& machine) const {
    std::vector<double> slowdowns, deviations;
    for (std::size_t i = 0; i < observations_.size(); ++i) {
      const Observation& observation = observations_[i];
      if (!(weights_[i] > 0) || observation.overlap_share <= clear_overlap) continue;
      slowdowns.push_back((observation.seconds / observation.predict(machine) - 1) / observation.overlap_share + 1);
    }
    const double middle = median(slowdowns);
    for (const double value : slowdowns) deviations.push_back(std::abs(value - middle));
    machine.overlap_slowdown = std::max(1.0, middle);
    // Standard error of a median: 1.25 σ/√n, σ from the median deviation.
    const double interval =
        1.96 * 1.2533 * 1.4826 * median(deviations) / std::sqrt(static_cast<double>(slowdowns.size()));
    return {"overlap_slowdown", "", machine.overlap_slowdown, interval,
            middle < 1 ? "at its bound: overlapped tasks were not slower" : "fitted"};
  }

  static void append(GroupFit& result, GroupFit fit) {
    result.machine = fit.machine;
    result.parameters.insert(result.parameters.end(), fit.parameters.begin(), fit.parameters.end());
  }

  const Machine& start_;
  const std::vector<Observation>& observations_;
  std::vector<double> weights_;
  RunCosts costs_;
};

// An efficiency above 1 shows that the peak, itself measured, was too low.
void raise_peak(Calibration& calibration) {
  Machine& machine = calibration.machine;
  const double factor = std::max({1.0, machine.gemm_efficiency, machine.attention_efficiency});
  if (!peak_is_free(machine) || factor <= 1) return;
  for (double& peak : machine.peak_flops) peak *= factor;
  machine.gemm_efficiency /= factor;
  machine.attention_efficiency /= factor;
  for (FittedParameter& parameter : calibration.parameters) {
    if (parameter.name != "gemm_efficiency" && parameter.name != "attention_efficiency") continue;
    parameter.value /= factor;
    parameter.interval /= factor;
  }
}

std::vector<KindResidual> residuals_by_kind(const Machine& machine, const RunCosts& costs,
                                            const std::vector<Observation>& observations) {
  std::map<std::string, std::vector<double>> errors;
  std::map<std::string, KindResidual> kinds;
  for (const Observation& observation : observations) {
    const double error = relative_error(machine, costs, observation);
    errors[observation.kind].push_back(error);
    KindResidual& kind = kinds[observation.kind];
    if (kind.count++ == 0 || error > kind.worst_error) kind.worst_error = error, kind.worst_name = observation.name;
  }
  std::vector<KindResidual> result;
  for (auto& [name, kind] : kinds) {
    kind.kind = name;
    kind.median_error = median(errors[name]);
    result.push_back(kind);
  }
  return result;
}

// Each part of the observations left out in turn.
struct LeftOut {
  double error = 0;               // median, of what the fit of the others predicts of them
  std::vector<Machine> machines;  // those fits
};

// A fit of the others predicts every k-th observation.
LeftOut leave_out(const Machine& start, const std::vector<Observation>& observations,
                  const std::vector<double>& weights, int folds) {
  std::vector<double> errors;
  LeftOut result;
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<double> kept = weights;
    for (std::size_t i = static_cast<std::size_t>(fold); i < kept.size(); i += static_cast<std::size_t>(folds))
      kept[i] = 0;
    WholeFit whole(start, observations, kept);
    const Machine machine = whole.run().machine;
    for (std::size_t i = static_cast<std::size_t>(fold); i < kept.size(); i += static_cast<std::size_t>(folds)) {
      errors.push_back(relative_error(machine, whole.costs(), observations[i]));
    }
    result.machines.push_back(machine);
  }
  result.error = median(errors);
  return result;
}

// Jackknife over the parts left out (Tukey 1958; Miller 1974, The jackknife, a review): the variance of a fitted number is
// (k − 1)/k · Σ (its value without part i − their mean)², and its covariance with another the same sum of products.
std::vector<FittedDeviation> deviations_of(const std::vector<FittedParameter>& parameters,
                                           std::vector<Machine> left_out) {
  const auto count = static_cast<double>(left_out.size());
  std::vector<FittedDeviation> deviations;
  for (const FittedParameter& parameter : parameters) {
    if (!std::isfinite(parameter.interval)) continue;  // kept, or at its bound
    FittedDeviation each{parameter.name, {}};
    double sum = 0;
    for (Machine& machine : left_out) {
      const double* value = fitted_number(machine, parameter.name);
      if (value == nullptr || !(*value > 0)) break;
      each.parts.push_back(std::log(*value));
      sum += each.parts.back();
    }
    if (each.parts.size() != left_out.size()) continue;
    for (double& part : each.parts) part = (part - sum / count) * std::sqrt((count - 1) / count);
    deviations.push_back(std::move(each));
  }
  return deviations;
}

}  // namespace

Calibration calibrate(const Machine& start, const std::vector<Observation>& observations,
                      const CalibrationOptions& options) {
  check(start, observations);
  std::vector<double> weights;
  for (const Observation& observation : observations) weights.push_back(observation.weight);
  WholeFit whole(start, observations, weights);
  GroupFit fit = whole.run();
  Calibration result;
  result.run_costs = whole.costs();
  result.machine = fit.machine;
  result.parameters = std::move(fit.parameters);
  result.residuals = residuals_by_kind(result.machine, result.run_costs, observations);
  std::vector<double> errors;
  for (const Observation& observation : observations) {
    errors.push_back(relative_error(result.machine, result.run_costs, observation));
  }
  result.in_sample_error = median(errors);
  if (options.folds > 1 && observations.size() >= 2 * static_cast<std::size_t>(options.folds)) {
    result.folds = options.folds;
    LeftOut left_out = leave_out(start, observations, weights, options.folds);
    result.left_out_error = left_out.error;
    result.machine.deviations = deviations_of(result.parameters, std::move(left_out.machines));
  }
  // The median of |x| of a normal distribution is 0.6745 standard deviations.
  constexpr double median_of_normal = 0.6745;
  result.machine.spread = std::log1p(result.left_out_error) / median_of_normal;
  raise_peak(result);
  return result;
}

}  // namespace slipway::models
