#include "models/fit/prior_fit.h"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/fit/damped_step.h"

namespace slipway::models {
namespace {

constexpr double farthest = 8;         // |z|
constexpr double difference = 1e-6;    // of z, for derivatives
constexpr double settled_gain = 1e-9;  // relative gain of a round that ends the fit

class Problem {
 public:
  Problem(std::span<const PriorParameter> parameters, std::span<const double> measured, const PredictRows& predict,
          double scale)
      : parameters_(parameters), measured_(measured), predict_(predict), scale_(scale) {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].spread > 0) free_.push_back(i);
  }

  Eigen::Index unknowns() const { return static_cast<Eigen::Index>(free_.size()); }
  const std::vector<std::size_t>& free() const { return free_; }

  std::vector<double> values(const Eigen::VectorXd& z) const {
    std::vector<double> result;
    for (const PriorParameter& parameter : parameters_) result.push_back(parameter.prior);
    for (std::size_t i = 0; i < free_.size(); ++i) {
      const PriorParameter& parameter = parameters_[free_[i]];
      double& value = result[free_[i]];
      value = std::min(value * std::exp(parameter.spread * z[static_cast<Eigen::Index>(i)]), parameter.most);
    }
    return result;
  }

  // r of the rows, then z.
  Eigen::VectorXd residuals(const Eigen::VectorXd& z) const {
    const std::vector<double> seconds = predict_(values(z));
    if (seconds.size() != measured_.size())
      throw std::invalid_argument("a fit with priors needs one prediction for each measured time");
    Eigen::VectorXd result(static_cast<Eigen::Index>(seconds.size()) + unknowns());
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      result[static_cast<Eigen::Index>(i)] = std::log(seconds[i] / measured_[i]) / scale_;
    }
    result.tail(unknowns()) = z;
    return result;
  }

  // The sum to be minimised; NaN or infinity where something cannot be predicted.
  double loss(const Eigen::VectorXd& r) const {
    const Eigen::ArrayXd rows = r.head(r.size() - unknowns()).array();
    // 2(√(1+r²) − 1) without cancellation
    return (2 * rows.square() / ((1 + rows.square()).sqrt() + 1)).sum() + r.tail(unknowns()).squaredNorm();
  }

  // With these weights the gradient of a sum of squares is that of the loss: a row's is r/√(1+r²).
  Eigen::VectorXd weights(const Eigen::VectorXd& r) const {
    Eigen::VectorXd result = (1 + r.array().square()).rsqrt();
    result.tail(unknowns()).setOnes();
    return result;
  }

  Eigen::MatrixXd jacobian(const Eigen::VectorXd& z, const Eigen::VectorXd& at) const {
    Eigen::MatrixXd result(at.size(), unknowns());
    for (Eigen::Index column = 0; column < unknowns(); ++column) {
      Eigen::VectorXd moved = z;
      const double step = z[column] < farthest - difference ? difference : -difference;
      moved[column] += step;
      result.col(column) = (residuals(moved) - at) / step;
    }
    return result;
  }

 private:
  std::span<const PriorParameter> parameters_;
  std::span<const double> measured_;
  const PredictRows& predict_;
  double scale_;
  std::vector<std::size_t> free_;
};

Eigen::VectorXd start_of(const Problem& problem, std::span<const PriorParameter> parameters,
                         const std::vector<double>& start) {
  Eigen::VectorXd z = Eigen::VectorXd::Zero(problem.unknowns());
  for (std::size_t i = 0; i < problem.free().size() && !start.empty(); ++i) {
    const PriorParameter& parameter = parameters[problem.free()[i]];
    const double from = std::log(start[problem.free()[i]] / parameter.prior) / parameter.spread;
    z[static_cast<Eigen::Index>(i)] = std::clamp(from, -farthest, farthest);
  }
  return z;
}

struct State {
  Eigen::VectorXd z, residuals;
  double loss = 0;
  Damping damping = {};
};

bool improve(const Problem& problem, State& state, const Eigen::MatrixXd& slope) {
  const Eigen::VectorXd weights = problem.weights(state.residuals);
  const Eigen::MatrixXd normal = slope.transpose() * weights.asDiagonal() * slope;
  const Eigen::VectorXd gradient = slope.transpose() * weights.cwiseProduct(state.residuals);
  return damped_step(normal, gradient, state.damping, [&](const Eigen::VectorXd& step) {
    const Eigen::VectorXd z = (state.z + step).cwiseMax(-farthest).cwiseMin(farthest);
    Eigen::VectorXd residuals = problem.residuals(z);
    const double loss = problem.loss(residuals);
    if (!(loss < state.loss)) return false;
    state.z = z;
    state.residuals = std::move(residuals);
    state.loss = loss;
    return true;
  });
}

void check(std::span<const PriorParameter> parameters, std::span<const double> measured,
           const PriorFitOptions& options) {
  const bool bad_prior = std::any_of(parameters.begin(), parameters.end(),
                                     [](const PriorParameter& p) { return !(p.prior > 0) || !(p.spread >= 0); });
  const bool bad_time = std::any_of(measured.begin(), measured.end(), [](double s) { return !(s > 0); });
  if (bad_prior || bad_time) throw std::invalid_argument("a fit with priors needs priors and measured times above 0");
  if (!options.start.empty() && options.start.size() != parameters.size())
    throw std::invalid_argument("a fit with priors starts from one value for each parameter");
}

}  // namespace

PriorFit fit_with_priors(std::span<const PriorParameter> parameters, std::span<const double> measured,
                         const PredictRows& predict, const PriorFitOptions& options) {
  check(parameters, measured, options);
  const Problem problem(parameters, measured, predict, options.scale);
  State state;
  state.z = start_of(problem, parameters, options.start);
  state.residuals = problem.residuals(state.z);
  state.loss = problem.loss(state.residuals);
  if (!std::isfinite(state.loss))
    throw std::invalid_argument("a fit with priors cannot begin: a prediction is not a positive finite time");
  Eigen::MatrixXd slope = problem.jacobian(state.z, state.residuals);
  for (int round = 0; round < options.most_rounds && problem.unknowns() > 0; ++round) {
    const double before = state.loss;
    if (!improve(problem, state, slope)) break;
    slope = problem.jacobian(state.z, state.residuals);
    if (before - state.loss < settled_gain * before) break;
  }
  PriorFit fit{problem.values(state.z), std::vector<double>(parameters.size(), 0.0), state.loss};
  if (problem.unknowns() > 0) {
    const Eigen::MatrixXd normal = slope.transpose() * problem.weights(state.residuals).asDiagonal() * slope;
    const Eigen::MatrixXd covariance =
        normal.ldlt().solve(Eigen::MatrixXd::Identity(problem.unknowns(), problem.unknowns()));
    for (std::size_t i = 0; i < problem.free().size(); ++i) {
      const auto at = static_cast<Eigen::Index>(i);
      fit.remaining_spread[problem.free()[i]] = std::sqrt(std::max(covariance(at, at), 0.0));
    }
  }
  return fit;
}

}  // namespace slipway::models
