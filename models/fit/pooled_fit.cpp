#include "models/fit/pooled_fit.h"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <tuple>

namespace slipway::models {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

bool concerns(const PooledCoordinate& coordinate, const std::string& trainer, const std::string& machine) {
  return (coordinate.machine.empty() || coordinate.machine == machine) &&
         (coordinate.trainer.empty() || coordinate.trainer == trainer);
}

std::vector<StepConstants> constants_of_rows(const PooledConstants& pooled, const std::vector<PooledRow>& rows) {
  std::map<std::pair<std::string, std::string>, StepConstants> known;
  std::vector<StepConstants> result;
  for (const PooledRow& row : rows) {
    const auto key = std::pair(row.trainer, row.machine);
    if (!known.contains(key)) known[key] = constants_of(pooled, row.trainer, row.machine);
    result.push_back(known[key]);
  }
  return result;
}

// d ln step / d coordinate: rows of a constant's slopes, where the coordinate concerns the row.
MatrixXd design(const PooledConstants& pooled, const std::vector<PooledRow>& rows,
                const std::vector<std::vector<double>>& slopes) {
  MatrixXd result =
      MatrixXd::Zero(static_cast<Eigen::Index>(rows.size()), static_cast<Eigen::Index>(pooled.coordinates.size()));
  for (std::size_t c = 0; c < pooled.coordinates.size(); ++c)
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (concerns(pooled.coordinates[c], rows[i].trainer, rows[i].machine))
        result(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(c)) = slopes[i][pooled.coordinates[c].constant];
  return result;
}

VectorXd residuals(const std::vector<PooledRow>& rows, const std::vector<double>& seconds, double scale) {
  VectorXd r(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!(seconds[i] > 0) || !(rows[i].measured_s > 0))
      throw std::invalid_argument("a pooled fit needs predicted and measured times above 0");
    r[static_cast<Eigen::Index>(i)] = std::log(seconds[i] / rows[i].measured_s) / scale;
  }
  return r;
}

VectorXd as_vector(const std::vector<double>& values) {
  return Eigen::Map<const VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

struct Loss {
  VectorXd weights, precisions;  // of rows; of the priors
  double operator()(const VectorXd& r, const VectorXd& x) const {
    const Eigen::ArrayXd square = r.array().square();
    return (weights.array() * 2 * square / ((1 + square).sqrt() + 1)).sum() +
           (precisions.array() * x.array().square()).sum();
  }
};

}  // namespace

StepConstants constants_of(const PooledConstants& pooled, const std::string& trainer, const std::string& machine) {
  StepConstants result = book_constants();
  const auto constants = step_constants();
  for (std::size_t c = 0; c < pooled.coordinates.size(); ++c)
    if (concerns(pooled.coordinates[c], trainer, machine))
      result.*constants[pooled.coordinates[c].constant].value *= std::exp(pooled.values[c]);
  return result;
}

double spread_of(const PooledConstants& pooled, const std::string& trainer, const std::string& machine,
                 const std::vector<double>& slopes) {
  const auto n = static_cast<Eigen::Index>(pooled.coordinates.size());
  VectorXd at = VectorXd::Zero(n);
  const auto constants = step_constants();
  std::vector<double> unseen(constants.size());  // variance of deviations that nobody has measured
  for (std::size_t j = 0; j < constants.size(); ++j) {
    const StepConstant& constant = constants[j];
    unseen[j] =
        constant.machine * constant.machine + constant.trainer * constant.trainer + constant.site * constant.site;
  }
  for (std::size_t c = 0; c < pooled.coordinates.size(); ++c) {
    const PooledCoordinate& coordinate = pooled.coordinates[c];
    if (!concerns(coordinate, trainer, machine)) continue;
    at[static_cast<Eigen::Index>(c)] = slopes[coordinate.constant];
    if (!coordinate.machine.empty() || !coordinate.trainer.empty())
      unseen[coordinate.constant] -= coordinate.spread * coordinate.spread;
  }
  const MatrixXd covariance = Eigen::Map<const MatrixXd>(pooled.covariance.data(), n, n);
  double variance = at.dot(covariance * at);
  for (std::size_t j = 0; j < constants.size(); ++j) variance += std::max(unseen[j], 0.0) * slopes[j] * slopes[j];
  return std::sqrt(variance);
}

PooledConstants prior_constants(const std::vector<PooledRow>& rows) {
  std::set<std::string> machines, trainers;
  std::set<std::pair<std::string, std::string>> sites;
  for (const PooledRow& row : rows) {
    machines.insert(row.machine);
    trainers.insert(row.trainer);
    sites.insert({row.trainer, row.machine});
  }
  PooledConstants pooled;
  const auto constants = step_constants();
  for (std::size_t j = 0; j < constants.size(); ++j) {
    const StepConstant& constant = constants[j];
    if (constant.spread > 0) pooled.coordinates.push_back({j, "", "", constant.spread});
    if (constant.machine > 0)
      for (const auto& machine : machines) pooled.coordinates.push_back({j, machine, "", constant.machine});
    if (constant.trainer > 0)
      for (const auto& trainer : trainers) pooled.coordinates.push_back({j, "", trainer, constant.trainer});
    if (constant.site > 0)
      for (const auto& [trainer, machine] : sites) pooled.coordinates.push_back({j, machine, trainer, constant.site});
  }
  pooled.values.assign(pooled.coordinates.size(), 0);
  pooled.covariance.assign(pooled.coordinates.size() * pooled.coordinates.size(), 0);
  for (std::size_t c = 0; c < pooled.coordinates.size(); ++c)
    pooled.covariance[c * pooled.coordinates.size() + c] = pooled.coordinates[c].spread * pooled.coordinates[c].spread;
  return pooled;
}

namespace {

// Values of another fit, where it has the same coordinates.
void take_start(PooledConstants& pooled, const PooledConstants& from) {
  std::map<std::tuple<std::size_t, std::string, std::string>, double> known;
  for (std::size_t c = 0; c < from.coordinates.size(); ++c)
    known[{from.coordinates[c].constant, from.coordinates[c].machine, from.coordinates[c].trainer}] = from.values[c];
  for (std::size_t c = 0; c < pooled.coordinates.size(); ++c) {
    const PooledCoordinate& own = pooled.coordinates[c];
    const auto found = known.find({own.constant, own.machine, own.trainer});
    if (found != known.end()) pooled.values[c] = found->second;
  }
}

}  // namespace

PooledConstants fit_pooled(const std::vector<PooledRow>& rows, const PooledPrices& prices,
                           const PooledOptions& options) {
  PooledConstants pooled = prior_constants(rows);
  if (options.start != nullptr) take_start(pooled, *options.start);
  Loss loss;
  loss.weights.resize(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) loss.weights[static_cast<Eigen::Index>(i)] = rows[i].weight;
  loss.precisions.resize(static_cast<Eigen::Index>(pooled.coordinates.size()));
  for (std::size_t c = 0; c < pooled.coordinates.size(); ++c)
    loss.precisions[static_cast<Eigen::Index>(c)] = 1 / (pooled.coordinates[c].spread * pooled.coordinates[c].spread);
  VectorXd x = as_vector(pooled.values), r;
  const auto constants_at = [&](const VectorXd& at) {
    pooled.values.assign(at.begin(), at.end());
    return constants_of_rows(pooled, rows);
  };
  MatrixXd slope, normal;
  const auto set_normal = [&] {
    const VectorXd w = loss.weights.array() / (1 + r.array().square()).sqrt();
    normal = slope.transpose() * w.asDiagonal() * slope;
    normal.diagonal() += loss.precisions;
    return VectorXd(slope.transpose() * w.cwiseProduct(r) + loss.precisions.cwiseProduct(x));
  };
  constexpr int steps = 8, tries = 6, path_rounds = 3;
  constexpr double settled = 1e-5;
  const int rounds = std::max(options.replays, path_rounds);
  for (int round = 0; round < rounds; ++round) {
    const auto here = constants_at(x);
    if (round < options.replays) prices.replay(here);
    slope = design(pooled, rows, prices.slopes(here)) / options.scale;
    r = residuals(rows, prices.seconds(here), options.scale);
    double present = loss(r, x), damping = 1e-4;
    const double before = present;
    for (int step = 0; step < steps; ++step) {
      const VectorXd gradient = set_normal();
      bool better = false;
      for (int attempt = 0; attempt < tries && !better; ++attempt, damping *= 8) {
        MatrixXd damped = normal;
        damped.diagonal() += damping * normal.diagonal();
        const VectorXd moved = x - damped.ldlt().solve(gradient);
        const VectorXd residual = residuals(rows, prices.seconds(constants_at(moved)), options.scale);
        const double value = loss(residual, moved);
        if (!(value < present * (1 - settled))) continue;
        better = true;
        x = moved, r = residual, present = value;
        damping = std::max(damping / 64, 1e-9);
      }
      if (!better) break;
    }
    if (round + 1 >= options.replays && before - present < settled * before) break;
  }
  pooled.values.assign(x.begin(), x.end());
  set_normal();
  const MatrixXd covariance = normal.ldlt().solve(MatrixXd::Identity(normal.rows(), normal.cols()));
  pooled.covariance.assign(covariance.data(), covariance.data() + covariance.size());
  return pooled;
}

double effective_constants(const PooledConstants& pooled) {
  double sum = 0;
  const std::size_t n = pooled.coordinates.size();
  for (std::size_t c = 0; c < n; ++c)
    sum += 1 - pooled.covariance[c * n + c] / (pooled.coordinates[c].spread * pooled.coordinates[c].spread);
  return sum;
}

}  // namespace slipway::models
