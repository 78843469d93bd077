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
      JsonKey{"rules[].end", "map", "of the whole course: steps, sequences, loss, time_s"},
      JsonKey{"rules[].target", "map", "the same at the target; absent where it is not reached", true},
      JsonKey{
          "rules[].target_range_s", "s",
          "[least, most] over the noise scales that may be; absent without training.noise.least or most, "
          "and where one of them does not reach the target",
          true},
      JsonKey{"rules[].spans", "list",
              "consecutive steps of one batch: batch, from_sequence, from_loss, steps"},
      JsonKey{"rungs", "list", "batches whose step was simulated, ascending"},
      JsonKey{"rungs[].batch", "sequences", "of the step"},
      JsonKey{"rungs[].micro_batches", "count", "per pipeline"},
      JsonKey{"rungs[].step_time_s", "s", "as in simulate, with tokens_per_s, mfu and fits"},
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
      JsonKey{"parameters[].interval", "list",
              "[least, most], 95 %, jackknife over submissions; absent with fewer than three, or where one "
              "of them holds all but one batch size",
              true},
      JsonKey{"noise_loss", "nats", "loss at which the noise scale is given: the median of the points"},
      JsonKey{"noise_range", "tokens",
              "list of the least and the most noise scale: its interval and the fits of one learning rate; "
              "absent without an interval",
              true},
      JsonKey{"by_learning_rate", "list",
              "learning_rate, batch_sizes and, with two of them or more, noise_scale of these runs alone; "
              "empty where there is one rate"},
      JsonKey{"target_loss", "nats", "of left_out"},
      JsonKey{"left_out", "list",
              "a batch size that the fit has not seen each; empty with fewer than three sizes"},
      JsonKey{"left_out[].batch", "sequences", "left out, and how many runs of it reach the target (runs)"},
      JsonKey{"left_out[].measured", "tokens", "to the target, median of these runs"},
      JsonKey{"left_out[].predicted", "tokens", "the same by the fit without them"},
      JsonKey{"left_out[].constant", "tokens",
              "the median of the other runs: a guess that knows no batch size"},
      JsonKey{"left_out[].noise_scale", "tokens", "of the fit without them"},
      JsonKey{"predicted_error", "0..1",
              "mean of |predicted / measured - 1|; absent where none is left out", true},
      JsonKey{"constant_error", "0..1", "mean of |constant / measured - 1|; absent where none is left out",
              true},
  };
  return keys;
}

}  // namespace slipway
