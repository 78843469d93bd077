// The keys of --json of what runs and of what is set beside it: execute, compare, confirm.
#include <array>

#include "scenarios/json_summary.h"

namespace slipway {

std::span<const JsonKey> execute_json_keys() {
  static constexpr std::array keys{
      JsonKey{"scenario", "text", "name of the scenario"},
      JsonKey{"step_time_s", "s",
              "median distance between the starts of two steps on the slowest rank (one step: its span)"},
      JsonKey{"tokens_per_s", "1/s", "global batch x sequence / step_time_s"},
      JsonKey{"mfu", "0..1", "as in simulate; present when the machine profile has a peak for the dtype",
              true},
      JsonKey{"waiting_share", "0..1",
              "of the run: compute lanes without work (bubble and exposed communication), mean over ranks"},
      JsonKey{"first_loss", "nats", "mean token loss of the first step"},
      JsonKey{"last_loss", "nats", "mean token loss of the last step"},
      JsonKey{"losses", "nats", "list, one per step"},
      JsonKey{"learning_rates", "1", "list, the learning rate of each step; absent where an earlier version ran some of them",
              true},
      JsonKey{"evaluations", "list", "one object per window of steps, of held-out micro-batches in the bubbles; present with schedule.fill evaluation", true},
      JsonKey{"evaluations[].step", "number", "the window's last, counted from 1"},
      JsonKey{"evaluations[].loss", "nats", "mean over the held-out tokens, with the weights of the window's beginning"},
      JsonKey{"batches", "list", "one object per batch, in order of time; present where the batch grew", true},
      JsonKey{"batches[].batch", "count", "sequences per step"},
      JsonKey{"batches[].first_step", "number", "of the training, counted from 1"},
      JsonKey{"batches[].last_step", "number", "the same"},
      JsonKey{"batches[].step_time_s", "s", "median of its steps that another of the same batch follows; absent without one", true},
      JsonKey{"batches[].predicted_step_s", "s", "simulated before the run; present with --confirm", true},
      JsonKey{"batches[].noise_scale", "count",
              "gradient noise scale in sequences; null where no signal stands out of the noise or the training has diverged; present with the norm test", true},
      JsonKey{"window", "count", "steps after which tasks repeat (work in the bubbles); present above 1", true},
      JsonKey{"ranks", "count", "processes that ran"},
      JsonKey{"steps", "count", "steps trained"},
      JsonKey{"peak_memory_bytes", "bytes",
              "list, one per rank: the most that its tensors took in the counted steps; present when all ranks measured it",
              true},
      JsonKey{"records", "count", "trace records: tasks executed, counted once per member rank"},
      JsonKey{"trace", "path", "Chrome/Perfetto trace that was written"},
      JsonKey{"folder", "path", "folder with bundle, records and losses of the run"},
      JsonKey{"confirmation", "object", "of --confirm: the keys of compare, prediction against this run; present with it",
              true},
  };
  return keys;
}

std::span<const JsonKey> compare_json_keys() {
  static constexpr std::array keys{
      JsonKey{"predicted_step_s", "s", "period of the predicted trace's last step"},
      JsonKey{"measured_step_s", "s", "median period of the measured trace's steps"},
      JsonKey{"step_error", "share", "predicted_step_s / measured_step_s - 1"},
      JsonKey{"window", "count",
              "steps after which tasks repeat (work in the bubbles): kinds and tasks are those of so many steps; present above 1", true},
      JsonKey{"predicted_idle_s", "s", "compute lanes without work in one predicted step, mean over ranks"},
      JsonKey{"measured_idle_s", "s", "the same of the measured steps (median step)"},
      JsonKey{"memory", "list", "one object per rank; present when both traces know the ranks' memory", true},
      JsonKey{"memory[].rank", "index", "the rank"},
      JsonKey{"memory[].predicted_bytes", "bytes", "the most that it needs at once, by the simulated timeline"},
      JsonKey{"memory[].measured_bytes", "bytes", "the most that its tensors took in the counted steps"},
      JsonKey{"memory[].error", "share", "predicted_bytes / measured_bytes - 1"},
      JsonKey{"memory[].predicted_task", "text", "label of the compute task during which the prediction is fullest; empty if unknown"},
      JsonKey{"memory[].measured_task", "text", "of the one during which most was measured"},
      JsonKey{"kinds", "list",
              "one object per kind of task, largest measured time first; sums are over the joined tasks"},
      JsonKey{"kinds[].kind", "text", "\"forward\", \"backward\", \"all-reduce\", ..."},
      JsonKey{"kinds[].count", "count", "joined tasks of this kind, counted once per member rank"},
      JsonKey{"kinds[].predicted_s", "s", "sum of predicted work time, without waiting"},
      JsonKey{"kinds[].measured_s", "s", "sum of measured work time (median over the steps), without waiting"},
      JsonKey{"kinds[].error", "share", "predicted_s / measured_s - 1; null when nothing was measured"},
      JsonKey{"kinds[].predicted_wait_s", "s", "sum of predicted waiting for other members"},
      JsonKey{"kinds[].measured_wait_s", "s", "sum of measured waiting for other members"},
      JsonKey{"worst_tasks", "list",
              "the five tasks with the largest |measured - predicted| work time, largest first"},
      JsonKey{"worst_tasks[].rank", "number", "the rank whose record it is, from 0"},
      JsonKey{"worst_tasks[].label", "text", "label of the task: \"2F0\", \"2F0.L5.mlp\""},
      JsonKey{"worst_tasks[].kind", "text", "as kinds[].kind"},
      JsonKey{"worst_tasks[].predicted_s", "s", "predicted work time, without waiting"},
      JsonKey{"worst_tasks[].measured_s", "s", "measured work time (median over the steps), without waiting"},
      JsonKey{"joined", "count", "tasks (rank, label) present in both traces"},
      JsonKey{"only_predicted", "list", "tasks (\"rank 0: 2F0\") that only the predicted trace has"},
      JsonKey{"only_measured", "list", "tasks that only the measured trace has"},
  };
  return keys;
}

std::span<const JsonKey> confirm_json_keys() {
  static constexpr std::array keys{
      JsonKey{"median_error", "share", "|predicted / measured - 1| of the case in the middle (the larger of the middle two)"},
      JsonKey{"median_case", "text", "which case that is"},
      JsonKey{"median_error_scaled", "share", "the same of the baseline's step scaled by FLOPs, without any model"},
      JsonKey{"median_error_simulated", "share", "the same of the simulated step, without the baseline's measurement"},
      JsonKey{"rounds", "count", "times that the baseline and every case were executed"},
      JsonKey{"baseline", "text", "name of the run that predictions start from"},
      JsonKey{"baseline_simulated_s", "s", "its step, by the profile"},
      JsonKey{"baseline_measured_s", "s", "its step, median over the rounds"},
      JsonKey{"baseline_spread", "share", "half of (slowest - fastest round) / median; null of one round"},
      JsonKey{"cases", "list", "one object per case, in the order given"},
      JsonKey{"cases[].case", "text", "its name"},
      JsonKey{"cases[].simulated_s", "s", "one step, by the profile"},
      JsonKey{"cases[].predicted_s", "s", "baseline_measured_s * simulated_s / baseline_simulated_s"},
      JsonKey{"cases[].scaled_s", "s", "baseline_measured_s * FLOPs of the case / FLOPs of the baseline"},
      JsonKey{"cases[].measured_s", "s", "one step, median over the rounds"},
      JsonKey{"cases[].spread", "share", "as baseline_spread"},
      JsonKey{"cases[].error", "share", "predicted_s / measured_s - 1"},
  };
  return keys;
}

}  // namespace slipway
