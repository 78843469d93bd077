// The keys of `slipway growth --json`, of a scenario and with --fit: the only place where they are named
// and explained.
#include <array>

#include "scenarios/json_keys_basis.h"
#include "scenarios/json_summary.h"

namespace slipway {

std::span<const JsonKey> growth_json_keys() {
  static constexpr auto keys = with_time_basis_keys(std::array{
      JsonKey{"scenario", "text", "name of the scenario"},
      JsonKey{"rule", "text", "by which the batch grows"},
      JsonKey{"time_to_target_s", "s",
              "until training.target_loss; absent where it is not given or not reached", true},
      JsonKey{"speedup", "-",
              "time to the target with the first batch throughout / time_to_target_s; absent without both",
              true},
      JsonKey{"time_s", "s", "of the whole course: run.tokens, without them until the target"},
      JsonKey{"last_loss", "nats", "at its end"},
      JsonKey{"rules", "list", "courses by rule: the scenario's, the first batch throughout, the others"},
      JsonKey{"rules[].name", "text", "the rule, or the batch that stays"},
      JsonKey{"rules[].end", "map",
              "of the whole course: steps, sequences, loss, time_s; absent where it takes over 50 M steps"},
      JsonKey{"rules[].target", "map", "the same at the target; absent where it is not reached", true},
      JsonKey{"rules[].target_range_s", "s",
              "[least, most] over the noise scales that may be and reach the target; absent without "
              "training.noise.least or most, and where none reaches it",
              true},
      JsonKey{"rules[].always_reached", "bool", "do all of them reach it? Absent as target_range_s is",
              true},
      JsonKey{"rules[].spans", "list",
              "consecutive steps of one batch: batch, from_sequence, from_loss, steps"},
      JsonKey{"rungs", "list", "batches whose step was simulated, ascending"},
      JsonKey{"rungs[].batch", "sequences", "of the step"},
      JsonKey{"rungs[].micro_batches", "count", "per pipeline"},
      JsonKey{"rungs[].step_time_s", "s", "as in simulate, with tokens_per_s, mfu and fits"},
      JsonKey{"other_rungs", "list",
              "the same batches as rules step that measure norms where the scenario's does not, or do not where it does; absent "
              "without such rules",
              true},
      JsonKey{"line_error", "0..1",
              "the most that a simulated step time is off the line between its neighbours"},
      JsonKey{"noise_scale_first", "sequences", "gradient noise scale at the beginning"},
      JsonKey{"noise_scale_last", "sequences", "the same at the end of the scenario's course"},
      JsonKey{"source", "text", "training.source: of the loss and the noise scale"},
      JsonKey{"outside_curves", "list", "what lies outside of training.fitted: here, and what was fitted"},
  });
  return keys;
}

std::span<const JsonKey> growth_fit_json_keys() {
  static constexpr std::array keys{
      JsonKey{"curves", "path", "table of losses that was fitted"},
      JsonKey{"points", "count", "losses that count"},
      JsonKey{"error", "nats", "median of |fitted - measured|"},
      JsonKey{"parameters", "list", "what was fitted, each with name, unit and value"},
      JsonKey{"parameters[].told", "bool",
              "is it known within a factor of three either way? False without an interval"},
      JsonKey{
          "parameters[].interval", "list",
          "[least, most], 95 %, jackknife over submissions, if floor and noise_exponent are right; absent "
          "with fewer than three, or where the others of one cannot be fitted",
          true},
      JsonKey{"noise_loss", "nats", "loss at which the noise scale is given: the median of the points"},
      JsonKey{"noise_exponent", "-", "assumed: of the noise scale by the loss"},
      JsonKey{"floor", "nats", "assumed: which no training gets below"},
      JsonKey{"noise_range", "tokens",
              "list of the least and the most noise scale: its interval joined with those of one learning "
              "rate, and with the value of one whose interval is unknown; absent without its own",
              true},
      JsonKey{
          "by_learning_rate", "list",
          "learning_rate, batch_sizes, submissions and, where these runs alone can be fitted, noise_scale "
          "with its interval; empty where there is one rate"},
      JsonKey{"target_loss", "nats", "of left_out"},
      JsonKey{"left_out", "list",
              "a batch size that the fit has not seen each; empty with fewer than three sizes, or two that "
              "reach it"},
      JsonKey{"left_out[].batch", "sequences", "left out, and how many runs of it reach the target (runs)"},
      JsonKey{"left_out[].measured", "tokens", "to the target, median of these runs"},
      JsonKey{"left_out[].predicted", "tokens",
              "the same by the fit without them; absent where the others cannot be fitted"},
      JsonKey{"left_out[].constant", "tokens",
              "the median of the other sizes' medians: a guess that knows no batch size"},
      JsonKey{"left_out[].noise_scale", "tokens", "of the fit without them; absent as predicted is"},
      JsonKey{"predicted_error", "0..1",
              "mean of |predicted / measured - 1|; absent where none is left out", true},
      JsonKey{"constant_error", "0..1", "mean of |constant / measured - 1|; absent where none is left out",
              true},
  };
  return keys;
}

std::span<const JsonKey> growth_run_fit_json_keys() {
  static constexpr std::array keys{
      JsonKey{"run", "path", "folder of the executed run that was fitted, of as many steps and tokens a sequence (steps, sequence)"},
      JsonKey{"steps", "count", "of the run"},
      JsonKey{"sequence", "tokens", "of a sample"},
      JsonKey{"noise_scale", "tokens", "gradient noise scale at noise_loss, by the norms of the steps"},
      JsonKey{"noise_range", "tokens", "[least, most], 95 %: Student's t of the groups' residuals"},
      JsonKey{"noise_loss", "nats", "loss at which the noise scale is given"},
      JsonKey{"noise_exponent", "-", "of the noise scale by the loss: fitted, or --noise-exponent"},
      JsonKey{"noise_exponent_range", "-",
              "[least, most], 95 %; absent where it was given, or is 0 because the noise does not grow as the loss falls", true},
      JsonKey{"groups", "list", "steps that follow each other: first_step (from 1), steps, loss, batch, noise_scale (tokens)"},
      JsonKey{"start", "nats", "fitted: loss before the first step"},
      JsonKey{"floor", "nats", "assumed: which no training gets below"},
      JsonKey{"offset", "steps", "fitted, noiseless"},
      JsonKey{"exponent", "-", "fitted: of the loss by the noiseless steps"},
      JsonKey{"error", "0..1", "median of |fitted / measured - 1| over the steps that count"},
      JsonKey{"last_loss", "nats", "mean over the last twelfth of the steps"},
      JsonKey{"last_noise_scale", "tokens", "there; absent where noise drowns the gradient", true},
      JsonKey{"ends", "list",
              "the run's end by a fit to its first fitted_steps: loss, noise_scale, and what the loss was before (before)"},
      JsonKey{"target_loss", "nats", "of unseen"},
      JsonKey{"unseen", "list",
              "a run of --unseen each: run, batches, learning_rates, tokens and predicted_tokens to the target (absent where it is "
              "not reached), last_loss, predicted_loss"},
  };
  return keys;
}

}  // namespace slipway
