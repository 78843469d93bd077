#include "models/fit/memory_fit.h"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace slipway::models {
namespace {

constexpr double farthest = 8;         // |z|
constexpr double difference = 1e-6;    // of z, for derivatives
constexpr double settled_gain = 1e-9;  // relative gain of a round that ends the fit
constexpr int most_rounds = 60;
constexpr double most_damping = 1e9;

// A residual whose square is the soft-L1 loss of `r`.
double soft(double r) { return std::copysign(std::sqrt(2 * (std::sqrt(1 + r * r) - 1)), r); }

class Problem {
 public:
  Problem(std::span<const MemoryRun> runs, const StackMemory& from) : runs_(runs), from_(from) {
    for (std::size_t i = 0; i < from.sources.size(); ++i)
      if (from.sources[i].spread > 0) free_.push_back(i);
    measured_ = std::ranges::any_of(runs, [](const MemoryRun& run) { return run.reserved_bytes > 0; });
  }

  Eigen::Index unknowns() const { return static_cast<Eigen::Index>(free_.size()); }
  const std::vector<std::size_t>& free() const { return free_; }

  std::vector<double> values(const Eigen::VectorXd& z) const {
    std::vector<double> result;
    for (const StackConstant& source : from_.sources) result.push_back(source.prior);
    for (std::size_t i = 0; i < free_.size(); ++i)
      result[free_[i]] *= std::exp(from_.sources[free_[i]].spread * z[static_cast<Eigen::Index>(i)]);
    return result;
  }

  MemoryConstants constants(const Eigen::VectorXd& z) const {
    MemoryConstants result = from_.constants;
    const std::vector<double> all = values(z);
    for (std::size_t i = 0; i < all.size(); ++i) result.*memory_parameters()[i].value = all[i];
    return result;
  }

  // One of each run, then z; the sum of squares is what is minimised.
  Eigen::VectorXd residuals(const Eigen::VectorXd& z) const {
    const MemoryConstants now = constants(z);
    Eigen::VectorXd result(static_cast<Eigen::Index>(runs_.size()) + unknowns());
    for (std::size_t i = 0; i < runs_.size(); ++i)
      result[static_cast<Eigen::Index>(i)] = measured_ ? of_peak(runs_[i], now) : of_verdict(runs_[i], now);
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
  static double usable(const MemoryRun& run, const MemoryConstants& constants) {
    return constants.usable_share * run.capacity_bytes;
  }

  double of_verdict(const MemoryRun& run, const MemoryConstants& now) const {
    const double over = std::log(peak_bytes(run.stages, now) / usable(run, now)) / from_.width;
    const double wrong = run.fitted ? over : -over;
    // ln(1 + e^wrong) without overflow
    return std::sqrt(2 * (std::max(wrong, 0.0) + std::log1p(std::exp(-std::abs(wrong)))));
  }

  double of_peak(const MemoryRun& run, const MemoryConstants& now) const {
    if (!run.fitted) return soft(std::min(0.0, std::log(peak_bytes(run.stages, now) / usable(run, now)) / from_.scale));
    if (!(run.reserved_bytes > 0)) return 0;
    return soft(std::log(first_stage_peak(run, now) / run.reserved_bytes) / from_.scale);
  }

  std::span<const MemoryRun> runs_;
  const StackMemory& from_;
  std::vector<std::size_t> free_;
  bool measured_ = false;
};

struct State {
  Eigen::VectorXd z, residuals;
  double damping = 1e-3;
  double loss() const { return residuals.squaredNorm(); }
};

// One accepted step, or false when no damping gives one that helps.
bool improve(const Problem& problem, State& state, const Eigen::MatrixXd& slope) {
  const Eigen::MatrixXd normal = slope.transpose() * slope;
  const Eigen::VectorXd gradient = slope.transpose() * state.residuals;
  for (; state.damping < most_damping; state.damping *= 4) {
    Eigen::MatrixXd damped = normal;
    damped.diagonal() += state.damping * normal.diagonal();
    const Eigen::VectorXd step = damped.ldlt().solve(-gradient);
    const Eigen::VectorXd z = (state.z + step).cwiseMax(-farthest).cwiseMin(farthest);
    Eigen::VectorXd residuals = problem.residuals(z);
    if (!(residuals.squaredNorm() < state.loss())) continue;
    state.z = z;
    state.residuals = std::move(residuals);
    state.damping = std::max(state.damping / 8, 1e-12);
    return true;
  }
  return false;
}

}  // namespace

MemoryFit fit_memory(std::span<const MemoryRun> runs, const StackMemory& from) {
  if (runs.empty()) throw std::invalid_argument("a fit of memory constants needs runs");
  const Problem problem(runs, from);
  State state;
  state.z = Eigen::VectorXd::Zero(problem.unknowns());
  state.residuals = problem.residuals(state.z);
  Eigen::MatrixXd slope = problem.slope(state.z, state.residuals);
  for (int round = 0; round < most_rounds && problem.unknowns() > 0; ++round) {
    const double before = state.loss();
    if (!improve(problem, state, slope)) break;
    slope = problem.slope(state.z, state.residuals);
    if (before - state.loss() < settled_gain * before) break;
  }
  MemoryFit fit{problem.constants(state.z), problem.values(state.z), std::vector<double>(from.sources.size(), 0.0),
                state.loss()};
  if (problem.unknowns() == 0) return fit;
  const Eigen::MatrixXd covariance =
      (slope.transpose() * slope).ldlt().solve(Eigen::MatrixXd::Identity(problem.unknowns(), problem.unknowns()));
  for (std::size_t i = 0; i < problem.free().size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    fit.remaining_spread[problem.free()[i]] = std::sqrt(std::max(covariance(at, at), 0.0));
  }
  return fit;
}

}  // namespace slipway::models
