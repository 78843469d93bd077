#include "scenarios/growth/run_fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "scenarios/commands/command.h"

namespace slipway {
namespace {

std::vector<double> batches_of(std::span<const GradientStep> steps) {
  std::vector<double> batches;
  for (const GradientStep& step : steps) batches.push_back(step.batch_tokens);
  return batches;
}

std::size_t first_step_after(const ExecutedRun& run, double tokens) {
  double before = 0;
  std::size_t step = 0;
  while (step < run.steps.size() && before < tokens) before += run.steps[step++].batch_tokens;
  return step;
}

void check_has_norms(const ExecutedRun& run) {
  if (run.has_norms) return;
  throw UsageError(run.folder +
                   ": the gradient's noise was not measured in this run; execute it with the norm test, as with --set "
                   "'training.growth={rule: norm-test, largest: 64, eta: 0.5}'");
}

RunFit fit_of(std::span<const GradientStep> steps, std::size_t from, const RunFitRequest& request, MeasuredNoise& noise) {
  noise = measured_noise(steps.subspan(from), request.exponent);
  return fit_run(steps, from, noise, request.floor);
}

// Mean over the last of these steps by the dynamics.
double predicted_last(const LossDynamics& dynamics, std::span<const GradientStep> steps, std::size_t last) {
  const std::vector<double> losses = predicted_losses(dynamics, batches_of(steps));
  double sum = 0;
  for (std::size_t i = losses.size() - last; i < losses.size(); ++i) sum += losses[i];
  return sum / static_cast<double>(last);
}

// By the first half, two thirds and five sixths of the run, where that much can be fitted.
std::vector<RunEnd> ends_of(const RunFitAnswer& answer) {
  const std::span<const GradientStep> steps = answer.run.steps;
  const std::size_t last = last_steps(steps.size());
  std::vector<RunEnd> ends;
  for (const std::size_t sixths : {3U, 4U, 5U}) {
    const std::size_t fitted = steps.size() * sixths / 6;
    const std::span<const GradientStep> beginning = steps.first(fitted);
    if (fitted < answer.from + last || !why_unmeasured(beginning.subspan(std::min(answer.from, fitted))).empty()) continue;
    MeasuredNoise noise;
    const LossDynamics dynamics = fit_of(beginning, answer.from, answer.request, noise).dynamics;
    ends.push_back({fitted, predicted_last(dynamics, steps, last), mean_loss(steps, fitted - last, last),
                    noise_scale_at(dynamics, answer.last_loss)});
  }
  return ends;
}

UnseenRun unseen_of(ExecutedRun run, const LossDynamics& dynamics, double target) {
  const std::size_t last = last_steps(run.steps.size());
  UnseenRun unseen{{}, mean_loss(run.steps, run.steps.size() - last, last), predicted_last(dynamics, run.steps, last),
                   tokens_to_mean_loss(run.steps, last, target), predicted_tokens_to(dynamics, batches_of(run.steps), target)};
  unseen.run = std::move(run);
  return unseen;
}

double reached_by_all(const RunFitAnswer& answer, const std::vector<ExecutedRun>& unseen) {
  double highest = answer.last_loss;
  for (const ExecutedRun& run : unseen) {
    const std::size_t last = last_steps(run.steps.size());
    highest = std::max(highest, mean_loss(run.steps, run.steps.size() - last, last));
  }
  return highest;
}

void check_same_sequence(const ExecutedRun& run, const std::vector<ExecutedRun>& unseen) {
  for (const ExecutedRun& other : unseen)
    if (other.sequence != run.sequence)
      throw UsageError(fmt::format("{}: sequences of {:g} tokens, those of {} have {:g}; give runs of one sequence length",
                                   other.folder, other.sequence, run.folder, run.sequence));
}

}  // namespace

std::size_t last_steps(std::size_t steps) { return std::max<std::size_t>(1, steps / 12); }

RunFitAnswer fitted_run(ExecutedRun run, std::vector<ExecutedRun> unseen, const RunFitRequest& request) {
  check_has_norms(run);
  check_same_sequence(run, unseen);
  RunFitAnswer answer{std::move(run), request, 0, {}, {}, 0, {}, {}, 0, {}};
  const std::vector<GradientStep>& steps = answer.run.steps;
  answer.from = first_step_after(answer.run, request.from_tokens);
  if (answer.from == steps.size()) throw UsageError(answer.run.folder + ": there is no step that counts; lower --after");
  const std::size_t last = last_steps(steps.size());
  answer.last_loss = mean_loss(steps, steps.size() - last, last);
  answer.last_noise = noise_of_group(std::span(steps).last(last));
  try {
    answer.fit = fit_of(steps, answer.from, request, answer.noise);
    answer.ends = ends_of(answer);
  } catch (const std::invalid_argument& reason) {
    throw UsageError(answer.run.folder + ": " + reason.what());
  }
  answer.target_loss = request.target_loss.value_or(reached_by_all(answer, unseen));
  for (ExecutedRun& other : unseen) answer.unseen.push_back(unseen_of(std::move(other), answer.fit.dynamics, answer.target_loss));
  return answer;
}

}  // namespace slipway
