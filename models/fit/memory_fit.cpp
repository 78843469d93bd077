#include "models/fit/memory_fit.h"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "models/fit/damped_step.h"
#include "models/trace/statistics.h"

namespace slipway::models {
namespace {

constexpr double farthest = 8;         // |z|
constexpr double difference = 1e-4;    // of z, for derivatives
constexpr double settled_gain = 1e-6;  // relative gain of a round that ends the fit
constexpr int most_rounds = 60;
constexpr double peak_spread = 0.06;      // of a measured peak's logarithm; beyond it a run pulls linearly
constexpr double measured_spread = 0.01;  // of a measured peak beside libraries

// −2·ln of the probability of a verdict, 0 at best.
double of_verdict(double room, double spread, double other) {
  const double share = (1 - other) * normal_share(room / spread) + other / 2;
  return std::max(0.0, -2 * std::log(share) + 2 * std::log(1 - other / 2));
}

double soft(double r) { return 2 * (std::sqrt(1 + r * r) - 1); }

void add_deviation(std::vector<MemoryDeviation>& list, const std::string& trainer, const std::string& machine) {
  const auto same = [&](const MemoryDeviation& each) { return each.trainer == trainer && each.machine == machine; };
  if (std::ranges::none_of(list, same)) list.push_back({trainer, machine, 1});
}

class Problem {
 public:
  Problem(std::span<const MemoryRun* const> runs, const PooledMemory& from, std::span<const double> weights)
      : runs_(runs), shape_(from), weights_(weights.begin(), weights.end()) {
    if (weights_.empty()) weights_ = weights_of(runs);
    for (const MemoryRun* run : runs) {
      add_deviation(shape_.fragmentation, run->trainer, "");
      add_deviation(shape_.library, run->trainer, run->machine);
    }
    shape_.covariance.clear();
    for (const MemoryRun* run : runs) set_of_.push_back(set_index(*run));
  }

  Eigen::Index unknowns() const { return static_cast<Eigen::Index>(shape_.unknowns()); }

  Eigen::VectorXd start() const {
    Eigen::VectorXd z(unknowns());
    Eigen::Index at = 0;
    for (const PooledConstant& each : shape_.constants) z[at++] = std::log(each.value / each.prior) / each.spread;
    for (const MemoryDeviation& each : shape_.fragmentation)
      z[at++] = std::log(each.value) / shape_.fragmentation_spread;
    for (const MemoryDeviation& each : shape_.library) z[at++] = std::log(each.value) / shape_.library_spread;
    return z.cwiseMax(-farthest).cwiseMin(farthest);
  }

  PooledMemory at(const Eigen::VectorXd& z) const {
    PooledMemory pooled = shape_;
    Eigen::Index at = 0;
    for (PooledConstant& each : pooled.constants) each.value = each.prior * std::exp(each.spread * z[at++]);
    for (MemoryDeviation& each : pooled.fragmentation) each.value = std::exp(pooled.fragmentation_spread * z[at++]);
    for (MemoryDeviation& each : pooled.library) each.value = std::exp(pooled.library_spread * z[at++]);
    return pooled;
  }

  // One of each run, then z; the sum of squares is what is minimised.
  Eigen::VectorXd residuals(const Eigen::VectorXd& z) const {
    const PooledMemory pooled = at(z);
    std::vector<MemoryConstants> constants;
    for (const MemoryRun* first : sets_)
      constants.push_back(constants_of(pooled, first->trainer, first->machine, first->facts));
    Eigen::VectorXd result(static_cast<Eigen::Index>(runs_.size()) + unknowns());
    for (std::size_t i = 0; i < runs_.size(); ++i)
      result[static_cast<Eigen::Index>(i)] = std::sqrt(weights_[i] * loss_of(*runs_[i], constants[set_of_[i]]));
    result.tail(unknowns()) = z;
    return result;
  }

  Eigen::MatrixXd slope(const Eigen::VectorXd& z, const Eigen::VectorXd& at) const {
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
  // Runs of one trainer on one machine have the same constants.
  std::size_t set_index(const MemoryRun& run) {
    const auto [found, fresh] = known_.insert({{run.trainer, run.machine}, sets_.size()});
    if (fresh) sets_.push_back(&run);
    return found->second;
  }

  double loss_of(const MemoryRun& run, const MemoryConstants& now) const {
    if (!(run.reserved_bytes > 0)) {
      double peak = 0;
      for (const StageTerms& stage : run.stages) peak = std::max(peak, peak_bytes(stage, now));
      const double room = std::log(run.capacity_bytes / peak);
      return of_verdict(run.fitted ? room : -room, now.row_spread, now.other_share);
    }
    const double library = estimated(run.stages.front(), now)[MemoryPart::library];
    const double room = std::log(run.capacity_bytes / (run.reserved_bytes + library));
    return soft(std::log(first_stage_peak(run, now) / run.reserved_bytes) / peak_spread) +
           of_verdict(room, measured_spread, now.other_share);
  }

  std::span<const MemoryRun* const> runs_;
  PooledMemory shape_;
  std::vector<double> weights_;
  std::map<std::pair<std::string, std::string>, std::size_t> known_;
  std::vector<const MemoryRun*> sets_;
  std::vector<std::size_t> set_of_;
};

struct State {
  Eigen::VectorXd z, residuals;
  Damping damping = {};
  double loss() const { return residuals.squaredNorm(); }
};

bool improve(const Problem& problem, State& state, const Eigen::MatrixXd& slope) {
  const Eigen::MatrixXd normal = slope.transpose() * slope;
  const Eigen::VectorXd gradient = slope.transpose() * state.residuals;
  return damped_step(normal, gradient, state.damping, [&](const Eigen::VectorXd& step) {
    const Eigen::VectorXd z = (state.z + step).cwiseMax(-farthest).cwiseMin(farthest);
    Eigen::VectorXd residuals = problem.residuals(z);
    if (!(residuals.squaredNorm() < state.loss())) return false;
    state.z = z;
    state.residuals = std::move(residuals);
    return true;
  });
}

}  // namespace

std::vector<double> weights_of(std::span<const MemoryRun* const> runs) {
  std::map<std::string, double> count;
  for (const MemoryRun* run : runs) ++count[run->trainer];
  std::vector<double> weights;
  for (const MemoryRun* run : runs) weights.push_back(std::min(1.0, most_runs_of_a_trainer / count[run->trainer]));
  return weights;
}

PooledMemory fit_memory(std::span<const MemoryRun* const> runs, const PooledMemory& from,
                        std::span<const double> weights) {
  if (runs.empty()) throw std::invalid_argument("a fit of memory constants needs runs");
  const Problem problem(runs, from, weights);
  State state;
  state.z = problem.start();
  state.residuals = problem.residuals(state.z);
  Eigen::MatrixXd slope = problem.slope(state.z, state.residuals);
  for (int round = 0; round < most_rounds; ++round) {
    const double before = state.loss();
    if (!improve(problem, state, slope)) break;
    slope = problem.slope(state.z, state.residuals);
    if (before - state.loss() < settled_gain * before) break;
  }
  PooledMemory fit = problem.at(state.z);
  const Eigen::MatrixXd covariance =
      (slope.transpose() * slope).ldlt().solve(Eigen::MatrixXd::Identity(problem.unknowns(), problem.unknowns()));
  for (Eigen::Index i = 0; i < problem.unknowns(); ++i)
    for (Eigen::Index j = 0; j < problem.unknowns(); ++j) fit.covariance.push_back(covariance(i, j));
  return fit;
}

}  // namespace slipway::models
