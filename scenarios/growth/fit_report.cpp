#include "scenarios/growth/fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "scenarios/commands/command.h"

namespace slipway {
namespace {

std::optional<LeftOutErrors> errors_of(const std::vector<LeftOutBatch>& rows) {
  LeftOutErrors sum;
  int predicted = 0;
  for (const LeftOutBatch& row : rows) {
    if (!row.predicted) continue;
    ++predicted;
    sum.predicted += std::abs(*row.predicted / row.measured - 1);
    sum.constant += std::abs(row.constant / row.measured - 1);
  }
  if (predicted == 0) return std::nullopt;
  return LeftOutErrors{sum.predicted / predicted, sum.constant / predicted};
}

// Where a rate's interval is unknown its value is held at least.
std::optional<Interval> noise_range_of(const FitAnswer& answer) {
  std::optional<Interval> range = answer.fit.parameters.back().interval;
  if (!range) return range;
  for (const OneRate& rate : answer.by_rate) {
    if (!rate.noise_tokens) continue;
    const Interval own = rate.interval.value_or(Interval{*rate.noise_tokens, *rate.noise_tokens});
    range = Interval{std::min(range->least, own.least), std::max(range->most, own.most)};
  }
  return range;
}

void check_target_is_reached(const FitAnswer& answer) {
  const std::vector<LossCurve>& curves = answer.file.curves;
  if (std::any_of(curves.begin(), curves.end(), [&](const LossCurve& curve) {
        return measured_tokens_to(curve, answer.target_loss).has_value();
      }))
    return;
  Interval losses{curves[0].points[0].loss, 0};
  for (const LossCurve& curve : curves)
    for (const CurvePoint& point : curve.points)
      losses = {std::min(losses.least, point.loss), std::max(losses.most, point.loss)};
  throw UsageError(fmt::format(
      "{}: no run falls from above to --target {:g}; allowed: a loss between those of a run, which go from "
      "{:.4g} down to {:.4g}",
      answer.file.path, answer.target_loss, losses.most, losses.least));
}

}  // namespace

double reached_by_all(const std::vector<LossCurve>& curves) {
  double highest = 0;
  for (const LossCurve& curve : curves) {
    const auto lowest =
        std::min_element(curve.points.begin(), curve.points.end(),
                         [](const CurvePoint& a, const CurvePoint& b) { return a.loss < b.loss; });
    if (lowest != curve.points.end()) highest = std::max(highest, lowest->loss);
  }
  return highest;
}

FitAnswer fitted_curves(CurvesFile file, const FitRequest& request) {
  FitAnswer answer{std::move(file), request.assumed, 0, {}, {}, {}, {}, {}};
  answer.file.curves = curves_after(answer.file.curves, request.from_tokens);
  const std::vector<LossCurve>& curves = answer.file.curves;
  if (curves.empty()) throw UsageError(answer.file.path + ": there is no loss that counts; lower --after");
  try {
    answer.fit = fit_with_intervals(curves, request.assumed);
    const double noise_loss = answer.fit.dynamics.noise_loss;
    answer.target_loss = request.target_loss.value_or(reached_by_all(curves));
    if (request.target_loss) check_target_is_reached(answer);
    answer.by_rate = fits_by_learning_rate(curves, request.assumed, noise_loss);
    answer.left_out = leave_one_batch_out(curves, request.assumed, answer.target_loss, noise_loss);
  } catch (const std::invalid_argument& reason) {
    throw UsageError(answer.file.path + ": " + reason.what());
  }
  answer.errors = errors_of(answer.left_out);
  answer.noise_range = noise_range_of(answer);
  return answer;
}

}  // namespace slipway
