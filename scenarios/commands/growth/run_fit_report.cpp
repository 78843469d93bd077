#include "scenarios/commands/growth/run_fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>

#include "scenarios/commands/growth/executed_losses.h"
#include "scenarios/commands/growth/interval_bounds.h"
#include "scenarios/commands/growth/training_lines.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/training_words.h"

namespace slipway::scenarios {

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

RunFit fit_of(std::span<const GradientStep> steps, std::size_t from, const RunFitRequest& request,
              MeasuredNoise& noise) {
  noise = measured_noise(steps.subspan(from), request.exponent);
  return fit_run(steps, from, noise, request.floor);
}

// Mean predicted loss over the last of these steps.
double predicted_last(const LossDynamics& dynamics, std::span<const GradientStep> steps, std::size_t last) {
  const std::vector<double> losses = predicted_losses(dynamics, batches_of(steps));
  double sum = 0;
  for (std::size_t i = losses.size() - last; i < losses.size(); ++i) sum += losses[i];
  return sum / static_cast<double>(last);
}

// Fits to the first half, two thirds and five sixths of the run, where there are enough steps.
std::vector<RunEnd> ends_of(const RunFitAnswer& answer) {
  const std::span<const GradientStep> steps = answer.run.steps;
  const std::size_t last = last_steps(steps.size());
  std::vector<RunEnd> ends;
  for (const std::size_t sixths : {3U, 4U, 5U}) {
    const std::size_t fitted = steps.size() * sixths / 6;
    const std::span<const GradientStep> beginning = steps.first(fitted);
    if (fitted < answer.from + last || !why_unmeasured(beginning.subspan(std::min(answer.from, fitted))).empty())
      continue;
    MeasuredNoise noise;
    const LossDynamics dynamics = fit_of(beginning, answer.from, answer.request, noise).dynamics;
    ends.push_back({fitted, predicted_last(dynamics, steps, last), mean_loss(steps, fitted - last, last),
                    noise_scale_at(dynamics, answer.last_loss)});
  }
  return ends;
}

UnseenRun unseen_of(ExecutedRun run, const LossDynamics& dynamics, double target) {
  const std::size_t last = last_steps(run.steps.size());
  UnseenRun unseen{{},
                   mean_loss(run.steps, run.steps.size() - last, last),
                   predicted_last(dynamics, run.steps, last),
                   tokens_to_mean_loss(run.steps, last, target),
                   predicted_tokens_to(dynamics, batches_of(run.steps), target)};
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
      throw UsageError(
          fmt::format("{}: sequences of {:g} tokens, those of {} have {:g}; give runs of one sequence length",
                      other.folder, other.sequence, run.folder, run.sequence));
}

std::string steps_text(std::size_t first, std::size_t count) {
  return count == 1 ? fmt::format("{}", first + 1) : fmt::format("{} to {}", first + 1, first + count);
}

std::string off_text(double predicted, double measured) {
  return fmt::format("{:+.1f} %", 100 * (predicted / measured - 1));
}

// "64", "8 to 64"
std::string extent_text(const Interval& extent, const std::function<std::string(double)>& text) {
  return extent.least == extent.most ? text(extent.least) : text(extent.least) + " to " + text(extent.most);
}
std::string batches_text(const ExecutedRun& run) { return extent_text(run.batches(), readable_count); }
std::string rates_text(const ExecutedRun& run) {
  return extent_text(run.rates(), [](double rate) { return fmt::format("{:g}", rate); });
}

std::string loss_cell(double loss) { return fmt::format("{:.4g}", loss); }

// Each part of the answer as it is shown: with the answer.
struct Group {
  const RunFitAnswer& answer;
  const NoiseGroup& of_steps;

  std::size_t first_step() const { return answer.from + of_steps.first + 1; }  // from 1
  double batch() const { return of_steps.batch_tokens / answer.run.sequence; }
  double fitted() const { return noise_scale_at(answer.fit.dynamics, of_steps.loss); }
};
struct End {
  const RunFitAnswer& answer;
  const RunEnd& end;
};

std::vector<Group> groups_of(const RunFitAnswer& answer) {
  std::vector<Group> groups;
  for (const NoiseGroup& group : answer.noise.groups) groups.push_back({answer, group});
  return groups;
}

std::vector<End> ends_in(const RunFitAnswer& answer) {
  std::vector<End> ends;
  for (const RunEnd& end : answer.ends) ends.push_back({answer, end});
  return ends;
}

Description<Group> group_keys() {
  const auto steps = [](auto get) {
    return of([](const Group& group) -> const NoiseGroup& { return group.of_steps; }, get);
  };
  return Description<Group>()
      .key("first_step", "number", "from 1", &Group::first_step)
      .wide_column("steps", [](const Group& group) { return steps_text(group.first_step() - 1, group.of_steps.steps); })
      .key("steps", "count", "that follow each other", steps(&NoiseGroup::steps))
      .key("loss", "nats", "mean over these steps", steps(&NoiseGroup::loss))
      .column("loss", loss_cell)
      .key("batch", "sequences", "mean over these steps", &Group::batch)
      .column("batch", [](double batch) { return fmt::format("{:.3g}", batch); })
      .key("noise_scale", "tokens", "by the norms of these steps", steps(&NoiseGroup::noise_tokens))
      .column("noise scale", readable_count)
      .only_column("fitted", [](const Group& group) { return readable_count(group.fitted()); })
      .only_column("off by", [](const Group& group) { return off_text(group.fitted(), group.of_steps.noise_tokens); });
}

Description<End> end_keys() {
  const auto end = [](auto get) { return of([](const End& row) -> const RunEnd& { return row.end; }, get); };
  return Description<End>()
      .key("fitted_steps", "count", "the first steps, to which the fit is", end(&RunEnd::fitted))
      .wide_column("fitted to steps",
                   [](const End& row) { return steps_text(row.answer.from, row.end.fitted - row.answer.from); })
      .only_column("loss", [](const End& row) { return loss_cell(row.answer.last_loss); })
      .key("loss", "nats", "of the run's end by that fit", end(&RunEnd::predicted))
      .column("predicted", loss_cell)
      .only_column("off by", [](const End& row) { return off_text(row.end.predicted, row.answer.last_loss); })
      .key("before", "nats", "what the loss was before the end", end(&RunEnd::before))
      .column("as before", loss_cell)
      .only_column("off by", [](const End& row) { return off_text(row.end.before, row.answer.last_loss); })
      .only_column(
          "noise scale",
          [](const End& row) { return row.answer.last_noise ? readable_count(*row.answer.last_noise) : "drowned"; })
      .key("noise_scale", "tokens", "of the run's end by that fit", end(&RunEnd::noise_tokens))
      .column("predicted", readable_count)
      .only_column("off by", [](const End& row) {
        return row.answer.last_noise ? off_text(row.end.noise_tokens, *row.answer.last_noise) : "-";
      });
}

Description<UnseenRun> unseen_keys() {
  return Description<UnseenRun>()
      .key("run", "path", "its folder", of(&UnseenRun::run, &ExecutedRun::folder))
      .column("run")
      .key("batches", "sequences", "[least, most]", [](const UnseenRun& each) { return bounds(each.run.batches()); })
      .wide_column("batch", [](const UnseenRun& each) { return batches_text(each.run); })
      .key("learning_rates", "1", "[least, most]", [](const UnseenRun& each) { return bounds(each.run.rates()); })
      .wide_column("rate", [](const UnseenRun& each) { return rates_text(each.run); })
      .key("tokens", "tokens", "to the target; absent where it is not reached", &UnseenRun::tokens)
      .column("tokens", or_dash(readable_count))
      .key("predicted_tokens", "tokens", "the same by the fit", &UnseenRun::predicted_tokens)
      .column("predicted", or_dash(readable_count))
      .only_column("off by",
                   [](const UnseenRun& each) {
                     return each.tokens && each.predicted_tokens ? off_text(*each.predicted_tokens, *each.tokens) : "-";
                   })
      .key("last_loss", "nats", "mean over its last steps", &UnseenRun::last_loss)
      .column("last loss", loss_cell)
      .key("predicted_loss", "nats", "the same by the fit", &UnseenRun::predicted_loss)
      .column("predicted", loss_cell)
      .only_column("off by", [](const UnseenRun& each) { return off_text(each.predicted_loss, each.last_loss); });
}

std::string run_text(const RunFitAnswer& answer) {
  const ExecutedRun& run = answer.run;
  return fmt::format("{}: {}, batch {} of {:g} tokens, {}, learning rate {}\n\n", run.folder,
                     counted(static_cast<std::int64_t>(run.steps.size()), "step"), batches_text(run), run.sequence,
                     tokens_text(run.tokens()), rates_text(run));
}

std::string exponent_text(const RunFitAnswer& answer) {
  const MeasuredNoise& noise = answer.noise;
  if (answer.request.exponent) return fmt::format("It goes {}, by --noise-exponent.", power_text(noise.exponent));
  if (noise.falls) return "It does not grow as the loss falls; it is taken as constant.";
  if (!noise.exponent_interval) return "The loss stays, so its exponent is unknown.";
  return fmt::format("It goes {} ({:.3g} to {:.3g}).", power_text(noise.exponent), noise.exponent_interval->least,
                     noise.exponent_interval->most);
}

std::string noise_text(const RunFitAnswer& answer) {
  const MeasuredNoise& noise = answer.noise;
  return fmt::format(
      "Noise scale {}, {:.3g} sequences, at loss {:.4g} (95 % interval {} to {}): a step with this batch gets half as "
      "far as a noiseless one. {}\n\n",
      tokens_text(noise.tokens), noise.tokens / answer.run.sequence, noise.at_loss,
      readable_count(noise.interval->least), readable_count(noise.interval->most), exponent_text(answer));
}

std::string groups_text(const RunFitAnswer& answer) {
  return "Noise scale in tokens, from the norms of the steps:\n" +
         aligned_table(group_keys().table(groups_of(answer)), "  ");
}

std::string law_text(const RunFitAnswer& answer) {
  const LossDynamics& d = answer.fit.dynamics;
  return fmt::format(
      "\nLoss after S noiseless steps: {:g} + {:.4g}·(1 + S/{:.4g})^-{:.4g}, off by {} (median of the steps that "
      "count); the floor "
      "{:g} is assumed. Losses are those of the training's own batches.\n",
      d.floor, d.start - d.floor, d.offset, d.exponent, readable_share(answer.fit.error), d.floor);
}

std::string ends_text(const RunFitAnswer& answer) {
  const std::size_t steps = answer.run.steps.size(), last = last_steps(steps);
  if (answer.ends.empty()) return "\nThe run is too short to predict its end from its beginning.\n";
  return fmt::format(
             "\nThe run's end (steps {}), predicted from its beginning; as before: the last loss of the beginning:\n",
             steps_text(steps - last, last)) +
         aligned_table(end_keys().table(ends_in(answer)), "  ");
}

std::string unseen_text(const RunFitAnswer& answer) {
  if (answer.unseen.empty()) return "\nNo unseen run was given (--unseen).\n";
  const Interval own = answer.run.rates();
  const bool other_rate = std::any_of(answer.unseen.begin(), answer.unseen.end(), [&](const UnseenRun& each) {
    const Interval rates = each.run.rates();
    return rates.least != own.least || rates.most != own.most;
  });
  std::string text =
      fmt::format("\nRuns that the fit has not seen: tokens to loss {:.4g}, and the mean loss of the last twelfth:\n",
                  answer.target_loss) +
      aligned_table(unseen_keys().table(answer.unseen), "  ");
  if (other_rate) text += "  learning rates differ, and the fit ignores them\n";
  return text;
}

}  // namespace

std::size_t last_steps(std::size_t steps) { return std::max<std::size_t>(1, steps / 12); }

RunFitAnswer fitted_run(ExecutedRun run, std::vector<ExecutedRun> unseen, const RunFitRequest& request) {
  check_has_norms(run);
  check_same_sequence(run, unseen);
  RunFitAnswer answer{std::move(run), request, 0, {}, {}, 0, {}, {}, 0, {}};
  const std::vector<GradientStep>& steps = answer.run.steps;
  answer.from = first_step_after(answer.run, request.from_tokens);
  if (answer.from == steps.size())
    throw UsageError(answer.run.folder + ": there is no step that counts; lower --after");
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
  for (ExecutedRun& other : unseen)
    answer.unseen.push_back(unseen_of(std::move(other), answer.fit.dynamics, answer.target_loss));
  return answer;
}

// The answer of `slipway growth --fit RUN` as JSON.
const Description<RunFitAnswer>& run_fit_description() {
  const auto run = [](auto get) { return of(&RunFitAnswer::run, get); };
  const auto dynamics = [](double LossDynamics::*value) {
    return [value](const RunFitAnswer& answer) { return answer.fit.dynamics.*value; };
  };
  static const Description<RunFitAnswer> description =
      Description<RunFitAnswer>()
          .key("run", "path", "folder of the executed run that was fitted", run(&ExecutedRun::folder))
          .key("steps", "count", "of the run", [](const RunFitAnswer& answer) { return answer.run.steps.size(); })
          .key("sequence", "tokens", "of a sample", run(&ExecutedRun::sequence))
          .key("noise_scale", "tokens", "gradient noise scale at noise_loss, by the norms of the steps",
               dynamics(&LossDynamics::noise_tokens))
          .key("noise_range", "tokens", "[least, most], 95 %: Student's t of the groups' residuals",
               [](const RunFitAnswer& answer) { return bounds(*answer.noise.interval); })
          .key("noise_loss", "nats", "loss at which the noise scale is given", dynamics(&LossDynamics::noise_loss))
          .key("noise_exponent", "-", "of the noise scale by the loss: fitted, or --noise-exponent",
               dynamics(&LossDynamics::noise_exponent))
          .key("noise_exponent_range", "-",
               "[least, most], 95 %; absent where it was given, or is 0 because the noise does not grow as the loss "
               "falls",
               [](const RunFitAnswer& answer) { return bounds(answer.noise.exponent_interval); })
          .list("groups", "one object per group of steps that follow each other", groups_of, group_keys())
          .key("start", "nats", "fitted: loss before the first step", dynamics(&LossDynamics::start))
          .key("floor", "nats", "assumed lower limit of the loss", dynamics(&LossDynamics::floor))
          .key("offset", "steps", "fitted, noiseless", dynamics(&LossDynamics::offset))
          .key("exponent", "-", "fitted: of the loss by the noiseless steps", dynamics(&LossDynamics::exponent))
          .key("error", "0..1", "median of |fitted / measured - 1| over the steps that count",
               of(&RunFitAnswer::fit, &RunFit::error))
          .key("last_loss", "nats", "mean over the last twelfth of the steps", &RunFitAnswer::last_loss)
          .key("last_noise_scale", "tokens", "there; absent where noise drowns the gradient", &RunFitAnswer::last_noise)
          .list("ends", "the run's end by fits to its first steps", ends_in, end_keys())
          .key("target_loss", "nats", "of unseen", &RunFitAnswer::target_loss)
          .list("unseen", "one object per run of --unseen", &RunFitAnswer::unseen, unseen_keys());
  return description;
}

// The answer of `slipway growth --fit RUN` as a report, with the lines for a scenario.
std::string run_fit_text(const RunFitAnswer& answer) {
  return run_text(answer) + noise_text(answer) + groups_text(answer) + law_text(answer) + ends_text(answer) +
         unseen_text(answer) +
         training_lines(answer.run.folder, answer.run.batches(), answer.last_loss, answer.fit.dynamics,
                        answer.noise.interval);
}

}  // namespace slipway::scenarios
