// The unknowns of a calibration as numbers θ in which durations are linear: costs, not rates.
//
//   gemm_efficiency 0.8  ⇄  θ = 1.25      node_link.bandwidth 10 GB/s  ⇄  θ = 1e-10 s/byte
//
// Each has a lower bound: an efficiency is at most 1 where the peak comes from a data sheet, and no memory or link of
// one rank is faster than 10 TB/s. Private to models/fit.
#include "models/fit/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/fit/least_squares.h"
#include "models/trace/statistics.h"

namespace slipway::models {

struct FitParameter {
  std::string name, unit;
  double guess = 0;                            // θ where the machine has no value; 0 if that means none
  double lowest = 0;                           // θ
  double scale = 0;                            // a small θ, for derivatives
  std::function<double(const Machine&)> cost;  // θ; 0 = the machine has no value
  std::function<void(Machine&, double)> set_cost;
  std::function<double(const Machine&)> value;  // as in the profile
};

// In order of preference: when two parameters explain the same, the earlier one is fitted.
static std::vector<FitParameter> parameters_of(ObservationGroup group, const Machine& start, bool with_reduction);

// True if the number itself is fitted (a CPU, or unknown), not an efficiency below it.
static bool peak_is_free(const Machine& machine);

// The fit of one group of observations that share parameters (compute; one kind of link); calibration.h has the method.
// Private to models/fit.

struct FitRow {
  const Observation* observation = nullptr;
  double seconds = 0;  // measured, without the time that overlap added
  double weight = 1;
};

struct GroupFit {
  Machine machine;
  std::vector<FittedParameter> parameters;
};

// `searches_half`: gemm_half is an unknown too (the compute group).
GroupFit fit_group(const Machine& start, std::span<const FitParameter> parameters, std::span<const FitRow> rows,
                   bool searches_half);

namespace {

constexpr double fastest = 1e-13;  // s/byte: 10 TB/s

double inverse(double value) { return value > 0 ? 1 / value : 0; }

using Cost = std::function<double(const Machine&)>;

// The memory's rate itself, or its share of a data sheet's number.
FitParameter memory(const Machine& start) {
  const double sheet = start.memory_bandwidth;
  const Cost cost = [](const Machine& m) { return inverse(m.memory_bandwidth * m.memory_efficiency); };
  FitParameter parameter;
  if (start.cores > 0 || !(sheet > 0)) {
    parameter = {.name = "memory_bandwidth",
                 .unit = "B/s",
                 .guess = 1e-10,
                 .lowest = fastest,
                 .scale = 1e-10,
                 .cost = cost,
                 .set_cost = {},
                 .value = [](const Machine& m) { return m.memory_bandwidth; }};
    parameter.set_cost = [](Machine& m, double to) { m.memory_bandwidth = 1 / to, m.memory_efficiency = 1; };
  } else {
    parameter = {.name = "memory_efficiency",
                 .unit = "",
                 .guess = 1 / (0.8 * sheet),
                 .lowest = 1 / sheet,
                 .scale = 1 / sheet,
                 .cost = cost,
                 .set_cost = {},
                 .value = [](const Machine& m) { return m.memory_efficiency; }};
    parameter.set_cost = [](Machine& m, double to) { m.memory_efficiency = 1 / (to * m.memory_bandwidth); };
  }
  return parameter;
}

FitParameter bandwidth(const std::string& name, Link Machine::*link, const Machine& start) {
  const double sheet = (start.*link).bandwidth;
  const bool is_free = start.cores > 0 || !(sheet > 0);
  FitParameter parameter;
  parameter.name = name + (is_free ? ".bandwidth" : ".efficiency");
  parameter.unit = is_free ? "B/s" : "";
  parameter.guess = parameter.scale = 1e-9;
  parameter.lowest = is_free ? fastest : 1 / sheet;
  parameter.cost = [=](const Machine& m) { return inverse((m.*link).bandwidth * (m.*link).efficiency); };
  parameter.set_cost = [=](Machine& m, double cost) {
    if (is_free) (m.*link).bandwidth = 1 / cost;
    (m.*link).efficiency = is_free ? 1 : 1 / (cost * (m.*link).bandwidth);
  };
  parameter.value = [=](const Machine& m) { return is_free ? (m.*link).bandwidth : (m.*link).efficiency; };
  return parameter;
}

FitParameter latency(const std::string& name, Link Machine::*link) {
  const Cost seconds = [=](const Machine& m) { return (m.*link).latency; };
  return {.name = name + ".latency",
          .unit = "s",
          .guess = 0,
          .lowest = 0,
          .scale = 1e-6,
          .cost = seconds,
          .set_cost = [=](Machine& m, double cost) { (m.*link).latency = cost; },
          .value = seconds};
}

FitParameter efficiency(const std::string& name, double Machine::*field, double lowest) {
  return {.name = name,
          .unit = "",
          .guess = 1.25,
          .lowest = lowest,
          .scale = 1,
          .cost = [=](const Machine& m) { return inverse(m.*field); },
          .set_cost = [=](Machine& m, double cost) { m.*field = 1 / cost; },
          .value = [=](const Machine& m) { return m.*field; }};
}

FitParameter overhead(const std::string& name, double Machine::*field) {
  const Cost seconds = [=](const Machine& m) { return m.*field; };
  return {.name = name,
          .unit = "s",
          .guess = 0,
          .lowest = 0,
          .scale = 1e-6,
          .cost = seconds,
          .set_cost = [=](Machine& m, double cost) { m.*field = cost; },
          .value = seconds};
}

// 0 bytes/s means that adding is free, so the cost 0 is a value like any other.
FitParameter reduction() {
  return {.name = "reduce_bandwidth",
          .unit = "B/s",
          .guess = 0,
          .lowest = 0,
          .scale = 1e-9,
          .cost = [](const Machine& m) { return inverse(m.reduce_bandwidth); },
          .set_cost = [](Machine& m, double cost) { m.reduce_bandwidth = inverse(cost); },
          .value = [](const Machine& m) { return m.reduce_bandwidth; }};
}

// The link and its name in the profile.
std::pair<std::string, Link Machine::*> fitted_link(ObservationGroup group) {
  if (group == ObservationGroup::node_link) return {"node_link", &Machine::node_link};
  if (group == ObservationGroup::network_link) return {"network_link", &Machine::network_link};
  if (group == ObservationGroup::host_to_device) return {"host_to_device", &Machine::host_to_device};
  return {"device_to_host", &Machine::device_to_host};
}

}  // namespace

static bool peak_is_free(const Machine& machine) { return machine.cores > 0; }

static std::vector<FitParameter> parameters_of(ObservationGroup group, const Machine& start, bool with_reduction) {
  if (group == ObservationGroup::compute) {
    // With a free peak an efficiency may come out above 1; the peak is raised afterwards.
    const double lowest = peak_is_free(start) ? 0.01 : 1;
    return {efficiency("gemm_efficiency", &Machine::gemm_efficiency, lowest), memory(start),
            efficiency("attention_efficiency", &Machine::attention_efficiency, lowest),
            overhead("launch_overhead", &Machine::launch_overhead), overhead("task_overhead", &Machine::task_overhead)};
  }
  const auto [name, link] = fitted_link(group);
  std::vector<FitParameter> parameters{bandwidth(name, link, start), latency(name, link)};
  if (with_reduction && is_between_ranks(group)) parameters.push_back(reduction());
  return parameters;
}

namespace {

constexpr double largest_half = 4096;     // a product of this size would reach half the asymptote
constexpr double negligible_half = 1e-2;  // one part in a thousand of a product of size 10
constexpr double independence = 0.03;     // share of a column that no other explains

// The linear problem at one machine: rows and right side divided by the measured seconds.
struct Linear {
  Matrix matrix;
  std::vector<double> right, weights;
};

class Fitter {
 public:
  Fitter(const Machine& start, std::span<const FitParameter> parameters, std::span<const FitRow> rows)
      : parameters_(parameters), rows_(rows), start_(start) {
    for (const FitParameter& parameter : parameters) {
      if (parameter.cost(start_) <= 0 && parameter.guess > 0) parameter.set_cost(start_, parameter.guess);
    }
    choose_parameters();
  }

  const std::vector<bool>& chosen() const { return chosen_; }
  const Machine& start() const { return start_; }

  // Best machine at a fixed gemm_half, and its loss.
  std::pair<Machine, double> at_half(double half) const {
    Machine machine = start_;
    machine.gemm_half = half;
    Machine best = machine;
    double best_loss = std::numeric_limits<double>::infinity();
    constexpr int most_rounds = 20;
    for (int round = 0; round < most_rounds; ++round) {
      const Linear linear = linearised(machine);
      const RobustFit fit = robust_fit(linear.matrix, linear.right, linear.weights);
      const Machine next = with(machine, fit.solution);
      const double loss = loss_of(next);
      // Operators change sides between arithmetic and memory, so without progress it could cycle for ever.
      if (loss >= best_loss * (1 - 1e-9)) break;
      best_loss = loss;
      machine = best = next;
    }
    return {best, best_loss};
  }

  // Grid over 1 + half in powers, then golden section around the best.
  double best_half() const {
    constexpr int points = 16;
    const double step = std::log(1 + largest_half) / points;
    int best = 0;
    double best_loss = std::numeric_limits<double>::infinity();
    for (int i = 0; i <= points; ++i) {
      const double loss = at_half(std::expm1(i * step)).second;
      if (loss < best_loss) best = i, best_loss = loss;
    }
    double low = std::max(0, best - 1) * step, high = std::min(points, best + 1) * step;
    const double ratio = (std::sqrt(5.0) - 1) / 2;
    const auto loss_at = [&](double x) { return at_half(std::expm1(x)).second; };
    double a = high - ratio * (high - low), b = low + ratio * (high - low);
    double loss_a = loss_at(a), loss_b = loss_at(b);
    for (int i = 0; i < 24; ++i) {
      if (loss_a <= loss_b) {
        high = b, b = a, loss_b = loss_a, a = high - ratio * (high - low), loss_a = loss_at(a);
      } else {
        low = a, a = b, loss_a = loss_b, b = low + ratio * (high - low), loss_b = loss_at(b);
      }
    }
    const double half = std::expm1((low + high) / 2);
    return half < negligible_half ? 0 : half;
  }

  bool half_is_identified() const {
    Matrix columns = jacobian(start_);
    return identified(columns, weights(), independence).back();
  }

  // Standard error of every θ, gemm_half's last; infinity where the data have no information.
  std::vector<double> errors(const Machine& machine, bool with_half) const {
    Matrix columns = jacobian(machine);
    for (std::size_t row = 0; row < columns.rows; ++row) {
      for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (!chosen_[i] || at_bound(machine, i)) columns.at(row, i) = 0;
      }
      if (!with_half) columns.at(row, parameters_.size()) = 0;
    }
    std::vector<double> residuals;
    for (const FitRow& row : rows_) residuals.push_back(row.observation->predict(machine) / row.seconds - 1);
    return standard_errors(columns, residuals, weights());
  }

  bool at_bound(const Machine& machine, std::size_t i) const {
    return parameters_[i].cost(machine) <= parameters_[i].lowest * (1 + 1e-9) + 1e-15;
  }

 private:
  std::vector<double> weights() const {
    std::vector<double> weights;
    for (const FitRow& row : rows_) weights.push_back(row.weight);
    return weights;
  }

  double step_of(const Machine& machine, std::size_t i) const {
    constexpr double relative = 1e-5;  // far above rounding, far below a change of sides
    return std::max(parameters_[i].cost(machine), parameters_[i].scale) * relative;
  }

  // ∂(prediction)/∂θ / measured, a column per parameter and a last one for gemm_half.
  Matrix jacobian(const Machine& machine) const {
    Matrix columns(rows_.size(), parameters_.size() + 1);
    for (std::size_t i = 0; i <= parameters_.size(); ++i) {
      Machine moved = machine;
      const bool is_half = i == parameters_.size();
      const double step = is_half ? 1e-3 : step_of(machine, i);
      if (is_half)
        moved.gemm_half += step;
      else
        parameters_[i].set_cost(moved, parameters_[i].cost(machine) + step);
      for (std::size_t row = 0; row < rows_.size(); ++row) {
        const auto& predict = rows_[row].observation->predict;
        columns.at(row, i) = (predict(moved) - predict(machine)) / step / rows_[row].seconds;
      }
    }
    return columns;
  }

  void choose_parameters() {
    const Matrix all = jacobian(start_);
    Matrix linear(all.rows, parameters_.size());
    for (std::size_t row = 0; row < all.rows; ++row) {
      for (std::size_t i = 0; i < parameters_.size(); ++i) linear.at(row, i) = all.at(row, i);
    }
    chosen_ = identified(linear, weights(), independence);
  }

  // Unknowns are θ − lowest of the chosen parameters, so that "not negative" is the bound.
  Linear linearised(const Machine& machine) const {
    const Matrix all = jacobian(machine);
    Linear linear{Matrix(rows_.size(), parameters_.size()), {}, weights()};
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      double right = 1 - rows_[row].observation->predict(machine) / rows_[row].seconds;
      for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (!chosen_[i]) continue;
        linear.matrix.at(row, i) = all.at(row, i);
        right += all.at(row, i) * (parameters_[i].cost(machine) - parameters_[i].lowest);
      }
      linear.right.push_back(right);
    }
    return linear;
  }

  Machine with(Machine machine, const std::vector<double>& above_lowest) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (chosen_[i]) parameters_[i].set_cost(machine, parameters_[i].lowest + above_lowest[i]);
    }
    return machine;
  }

  double loss_of(const Machine& machine) const {
    constexpr double threshold = 0.02;
    double loss = 0;
    for (const FitRow& row : rows_) {
      const double size = std::abs(row.observation->predict(machine) / row.seconds - 1);
      loss += row.weight * (size <= threshold ? size * size / 2 : threshold * (size - threshold / 2));
    }
    return loss;
  }

  std::span<const FitParameter> parameters_;
  std::span<const FitRow> rows_;
  Machine start_;
  std::vector<bool> chosen_;
};

constexpr double normal_95 = 1.96;

// ± of the value that belongs to ± of its cost.
double interval_of(const FitParameter& parameter, const Machine& machine, double error) {
  if (!std::isfinite(error)) return error;
  const double cost = parameter.cost(machine), step = std::max(cost, 1e-15) * 1e-6;
  Machine moved = machine;
  parameter.set_cost(moved, cost + step);
  return std::abs(parameter.value(moved) - parameter.value(machine)) / step * error * normal_95;
}

}  // namespace

GroupFit fit_group(const Machine& start, std::span<const FitParameter> parameters, std::span<const FitRow> rows,
                   bool searches_half) {
  const Fitter fitter(start, parameters, rows);
  const bool with_half = searches_half && fitter.half_is_identified();
  GroupFit result;
  result.machine = fitter.at_half(with_half ? fitter.best_half() : start.gemm_half).first;
  const std::vector<double> errors = fitter.errors(result.machine, with_half);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const FitParameter& parameter = parameters[i];
    FittedParameter fitted{parameter.name, parameter.unit, parameter.value(result.machine),
                           std::numeric_limits<double>::infinity(), "fitted"};
    if (!fitter.chosen()[i]) {
      const bool known = parameter.cost(start) > 0 || parameter.guess == 0;
      fitted.note = std::string(known ? "kept" : "a guess") + ": the measurements cannot separate it from the others";
    } else if (fitter.at_bound(result.machine, i)) {
      fitted.note = "at its bound: the measurements show no more cost";
    } else {
      fitted.interval = interval_of(parameter, result.machine, errors[i]);
    }
    result.parameters.push_back(std::move(fitted));
  }
  if (searches_half) {
    result.parameters.push_back({"gemm_half", "", result.machine.gemm_half,
                                 with_half ? errors.back() * normal_95 : std::numeric_limits<double>::infinity(),
                                 with_half ? "fitted" : "kept: the measurements cannot separate it from the others"});
  }
  return result;
}

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
