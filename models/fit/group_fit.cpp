#include "models/fit/group_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "models/fit/least_squares.h"
#include "models/fit/robust_fit.h"

namespace slipway::models {

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

}  // namespace slipway::models
