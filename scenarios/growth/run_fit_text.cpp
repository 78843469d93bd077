// The answer of `slipway growth --fit RUN` for people, with the lines for a scenario.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/growth/run_fit_report.h"
#include "scenarios/growth/training_lines.h"
#include "scenarios/readable.h"
#include "scenarios/training_words.h"

namespace slipway {
namespace {

std::string off_text(double predicted, double measured) { return fmt::format("{:+.1f} %", 100 * (predicted / measured - 1)); }

// "64", "8 to 64"
std::string extent_text(const Interval& extent, const std::function<std::string(double)>& text) {
  return extent.least == extent.most ? text(extent.least) : text(extent.least) + " to " + text(extent.most);
}
std::string batches_text(const ExecutedRun& run) { return extent_text(run.batches(), readable_count); }
std::string rates_text(const ExecutedRun& run) {
  return extent_text(run.rates(), [](double rate) { return fmt::format("{:g}", rate); });
}

std::string steps_text(std::size_t first, std::size_t count) {
  return count == 1 ? fmt::format("{}", first + 1) : fmt::format("{} to {}", first + 1, first + count);
}

std::string run_text(const RunFitAnswer& answer) {
  const ExecutedRun& run = answer.run;
  return fmt::format("{}: {}, batch {} of {:g} tokens, {}, learning rate {}\n\n", run.folder,
                     counted(static_cast<std::int64_t>(run.steps.size()), "step"), batches_text(run), run.sequence,
                     tokens_text(run.tokens()), rates_text(run));
}

std::string exponent_text(const RunFitAnswer& answer) {
  const MeasuredNoise& noise = answer.noise;
  if (answer.request.exponent) return fmt::format("It goes {} as --noise-exponent says.", power_text(noise.exponent));
  if (noise.falls) return "It does not grow as the loss falls; it is taken as constant.";
  if (!noise.exponent_interval) return "The loss stays, so nothing says how it goes with it.";
  return fmt::format("It goes {} ({:.3g} to {:.3g}).", power_text(noise.exponent), noise.exponent_interval->least,
                     noise.exponent_interval->most);
}

std::string noise_text(const RunFitAnswer& answer) {
  const MeasuredNoise& noise = answer.noise;
  return fmt::format("Noise scale {}, {:.3g} sequences, at loss {:.4g} (95 % interval {} to {}): a step of as much gets half as "
                     "far as a noiseless one. {}\n\n",
                     tokens_text(noise.tokens), noise.tokens / answer.run.sequence, noise.at_loss,
                     readable_count(noise.interval->least), readable_count(noise.interval->most), exponent_text(answer));
}

std::string groups_text(const RunFitAnswer& answer) {
  std::vector<std::vector<std::string>> rows{{"steps", "loss", "batch", "noise scale", "fitted", "off by"}};
  for (const NoiseGroup& group : answer.noise.groups) {
    const double fitted = noise_scale_at(answer.fit.dynamics, group.loss);
    rows.push_back({steps_text(answer.from + group.first, group.steps), fmt::format("{:.4g}", group.loss),
                    fmt::format("{:.3g}", group.batch_tokens / answer.run.sequence), readable_count(group.noise_tokens),
                    readable_count(fitted), off_text(fitted, group.noise_tokens)});
  }
  return "Noise scale in tokens, by the norms of the steps:\n" + aligned_table(rows, "  ");
}

std::string law_text(const RunFitAnswer& answer) {
  const LossDynamics& d = answer.fit.dynamics;
  return fmt::format(
      "\nLoss after S noiseless steps: {:g} + {:.4g}·(1 + S/{:.4g})^-{:.4g}, off by {} (median of the steps that count); the floor "
      "{:g} is assumed. Losses are those of the training's own batches.\n",
      d.floor, d.start - d.floor, d.offset, d.exponent, readable_share(answer.fit.error), d.floor);
}

std::string ends_text(const RunFitAnswer& answer) {
  const std::size_t steps = answer.run.steps.size(), last = last_steps(steps);
  if (answer.ends.empty()) return "\nThe run is too short to predict its end by its beginning.\n";
  std::vector<std::vector<std::string>> rows{{"fitted to steps", "loss", "predicted", "off by", "as before", "off by", "noise scale",
                                              "predicted", "off by"}};
  for (const RunEnd& end : answer.ends)
    rows.push_back({steps_text(answer.from, end.fitted - answer.from), fmt::format("{:.4g}", answer.last_loss),
                    fmt::format("{:.4g}", end.predicted), off_text(end.predicted, answer.last_loss), fmt::format("{:.4g}", end.before),
                    off_text(end.before, answer.last_loss), answer.last_noise ? readable_count(*answer.last_noise) : "drowned",
                    readable_count(end.noise_tokens),
                    answer.last_noise ? off_text(end.noise_tokens, *answer.last_noise) : "-"});
  return fmt::format("\nThe run's end (steps {}) by its beginning; as before: the loss that the beginning ended with:\n",
                     steps_text(steps - last, last)) +
         aligned_table(rows, "  ");
}

std::string unseen_text(const RunFitAnswer& answer) {
  if (answer.unseen.empty()) return "\nNo run that the fit has not seen was given (--unseen).\n";
  std::vector<std::vector<std::string>> rows{
      {"run", "batch", "rate", "tokens", "predicted", "off by", "last loss", "predicted", "off by"}};
  bool other_rate = false;
  for (const UnseenRun& each : answer.unseen) {
    const bool both = each.tokens && each.predicted_tokens;
    rows.push_back({each.run.folder, batches_text(each.run), rates_text(each.run),
                    each.tokens ? readable_count(*each.tokens) : "-",
                    each.predicted_tokens ? readable_count(*each.predicted_tokens) : "-",
                    both ? off_text(*each.predicted_tokens, *each.tokens) : "-", fmt::format("{:.4g}", each.last_loss),
                    fmt::format("{:.4g}", each.predicted_loss), off_text(each.predicted_loss, each.last_loss)});
    const Interval own = answer.run.rates(), rates = each.run.rates();
    other_rate |= rates.least != own.least || rates.most != own.most;
  }
  std::string text = fmt::format("\nRuns that the fit has not seen: tokens to loss {:.4g}, and the mean loss of the last twelfth:\n",
                                 answer.target_loss) +
                     aligned_table(rows, "  ");
  if (other_rate) text += "  learning rates differ, and the fit knows nothing of them\n";
  return text;
}

}  // namespace

std::string run_fit_text(const RunFitAnswer& answer) {
  return run_text(answer) + noise_text(answer) + groups_text(answer) + law_text(answer) + ends_text(answer) + unseen_text(answer) +
         training_lines(answer.run.folder, answer.run.batches(), answer.last_loss, answer.fit.dynamics, answer.noise.interval);
}

}  // namespace slipway
