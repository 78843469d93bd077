// Fits loss and gradient noise (models/training/loss_dynamics.h) to losses of runs with constant batch size.
//
//   curves of loss against tokens, several batch sizes
//      fitted    start, offset, exponent, noise scale                  fit_with_priors (prior_fit.h)
//      assumed   floor, noise exponent                                 such curves do not determine them
//
// Uncertainty; curves of one laboratory resemble each other more than a formula's error suggests:
//   interval   ± t·√(jackknife² + formula²) of ln θ. The jackknife over submissions (all runs of one system at one
//              batch) is (n−1)/n·Σ(θ_i − mean)². The fit's own error stays near the wide prior's where the points have
//              no information. t is Student's of n−1 (student.h). The interval holds if the assumptions are right
//   left out   each batch size is predicted by a fit without it: tokens to a target loss, beside the median of the
//              other batch sizes
//   one rate   the learning rate is not in the formula. Where it differs between batch sizes, fits of one rate alone
//              show how much of the noise scale may be its effect
//
// What a part of the curves cannot determine is unknown; only the fit of all refuses.
//
// Guarded by tests/models/loss_curves_test.cpp: curves made with known numbers give these back; for batches that hardly
// differ the noise scale stays unknown.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/training/loss_dynamics.h"

namespace slipway::models {

struct CurvePoint {
  double tokens = 0, loss = 0;
};
// One run. Points are in the order of their tokens.
struct LossCurve {
  std::string submission;  // runs of one submission are alike
  double batch_tokens = 0, learning_rate = 0;
  std::vector<CurvePoint> points;
};

// Removes the points before `tokens`, and curves that have no others.
std::vector<LossCurve> curves_after(const std::vector<LossCurve>& curves, double tokens);
// Batch sizes of all curves, in tokens per step.
std::set<double> batch_sizes(const std::vector<LossCurve>& curves);
std::set<std::string> submissions_of(const std::vector<LossCurve>& curves);

struct CurveAssumptions {
  double floor = 0;  // nats
  double noise_exponent = kaplan_noise_exponent;
};

struct Interval {
  double least = 0, most = 0;
};
struct FittedDynamic {
  std::string name, unit;
  double value = 0;
  double formula = 0;  // standard error of ln(value) by the fit itself
  // 95 %; unknown with fewer than three submissions, or if all but one of them cannot be fitted.
  std::optional<Interval> interval;
  // True if the value is known within a factor of three either way.
  bool is_known() const { return interval && interval->most < 9 * interval->least; }
};
struct DynamicsFit {
  LossDynamics dynamics;
  std::vector<FittedDynamic> parameters;  // start, offset, exponent, noise scale
  double error = 0;                       // median of |fitted − measured|, nats
  std::size_t points = 0, submissions = 0;
};

// The reason why fit_dynamics would refuse sound curves: fewer than two batch sizes or eight points, or a floor that is
// not below all losses. Empty if it would not.
std::string why_unfit(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed);
// Throws std::invalid_argument for the reasons of why_unfit, for numbers that are not finite and above 0, and for
// points out of order.
DynamicsFit fit_dynamics(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed);
// The same with intervals, at the cost of one more fit per submission.
DynamicsFit fit_with_intervals(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed);

// Losses at the points of a curve.
std::vector<double> losses_along(const LossDynamics& dynamics, const LossCurve& curve);
// Tokens at which the curve first reaches the loss, on the line between two points; nothing if it never does.
std::optional<double> measured_tokens_to(const LossCurve& curve, double loss);

struct LeftOutBatch {
  double batch_tokens = 0;
  int runs = 0;  // that reach the target
  // Tokens: median of its runs; median of the other sizes' medians, a guess without regard to batch size.
  double measured = 0, constant = 0;
  // By the fit without it: tokens to the target, and its noise scale at noise_loss. Unknown where the others cannot be
  // fitted.
  std::optional<double> predicted, noise_tokens;
};
// A row per batch size, ascending, that reaches the target while another one does too; none with fewer than three
// sizes.
std::vector<LeftOutBatch> leave_one_batch_out(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed,
                                              double target_loss, double noise_loss);

// The curves with one learning rate.
struct OneRate {
  double learning_rate = 0;
  std::size_t batch_sizes = 0, points = 0, submissions = 0;
  std::optional<double> noise_tokens;  // at noise_loss; unknown with one batch size or too few points
  std::optional<Interval> interval;    // of noise_tokens
};
// An entry per learning rate, ascending; empty where all curves have one rate.
std::vector<OneRate> fits_by_learning_rate(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed,
                                           double noise_loss);

}  // namespace slipway::models
