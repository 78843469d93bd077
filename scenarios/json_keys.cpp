// The keys of every --json output (of plan, growth, and what runs: json_keys_plan.cpp, json_keys_growth.cpp,
// json_keys_execution.cpp): the only place where they are named and explained.
#include <array>

#include "scenarios/json_keys_basis.h"
#include "scenarios/json_summary.h"

namespace slipway {

std::span<const JsonKey> simulate_json_keys() {
  static constexpr auto keys = with_basis_keys(std::array{
      JsonKey{"scenario", "text", "name of the scenario"},
      JsonKey{
          "step_time_s", "s",
          "steady period: start of the last simulated step minus start of the one before, slowest rank"},
      JsonKey{"makespan_s", "s", "first start to last end of one isolated step (with fill: of one window)"},
      JsonKey{"mfu", "0..1",
              "model FLOPs (6N + 12Lhs per token, N without the experts that a token does not go through, no recompute) "
              "per step over what the ranks' peak allows; 0 where a peak is unknown, or cluster.block_times leaves a part of the model free"},
      JsonKey{"tokens_per_s", "1/s", "global batch x sequence / step_time_s"},
      JsonKey{"compute_share", "0..1", "of the step: compute lanes busy, mean over ranks"},
      JsonKey{
          "exposed_comm_share", "0..1",
          "of the step: compute idle while communication that it needs runs or queues, mean over ranks"},
      JsonKey{"bubble_share", "0..1", "of the step: every other idle time, mean over ranks"},
      JsonKey{"exposed_comm_s", "s", "exposed communication of one step, mean over ranks"},
      JsonKey{"peak_memory_bytes", "bytes", "list, one per pipeline rank: peak of its fullest rank"},
      JsonKey{"memory_capacity_bytes", "bytes",
              "list, one per pipeline rank: memory of that rank's machine"},
      JsonKey{"peak_task", "text",
              "list, one per pipeline rank: label of the task during which the peak occurs"},
      JsonKey{"needed_memory_bytes", "bytes",
              "list, one per pipeline rank: the largest of the timeline's peak, the closed form (with a trainer's own "
              "constants without it) and the estimate of `slipway memory`"},
      JsonKey{"fits", "bool", "needed_memory_bytes <= what a process gets of the GPU's memory, on every rank"},
      JsonKey{"fits_cautious", "bool", "the same within the trainer's cautious share of every GPU, 0.8 of the book"},
      JsonKey{"ranks", "count", "GPUs (or CPU ranks) of the layout"},
      JsonKey{"simulated_ranks", "count",
              "ranks that were simulated; each of the others does the same at the same time as one of these"},
      JsonKey{"micro_batches", "count", "per pipeline and step"},
      JsonKey{"simulated_micro_batches", "count", "of these: simulated; the others repeat them"},
      JsonKey{"parameters", "count", "trainable parameters of the model"},
      JsonKey{"active_parameters", "count", "of these: without the experts that a token does not go through; present with model.experts", true},
      JsonKey{"tasks", "count", "tasks of simulated ranks in the graph of one step (with fill: of one window)"},
      JsonKey{"simulated_units", "count",
              "what these tasks were simulated as: a run of them whose middle nobody else sees counts once"},
      JsonKey{"steps", "count", "steps (with fill: windows) simulated back to back"},
      JsonKey{"simulate_wall_s", "s", "time that the simulator's event loop took"},
      JsonKey{"fill", "text", "what the bubbles are filled with; present with schedule.fill or run.optimizer kfac", true},
      JsonKey{"refresh_steps", "count",
              "steps between two refreshes of it, the window that was simulated; present with fill", true},
      JsonKey{"unfilled_step_time_s", "s", "a step without it, without contention; present with fill", true},
      JsonKey{"utilization_before", "0..1",
              "of the pipeline's time (a step without preconditioning and optimizer): compute, mean over ranks, "
              "without filling; present with fill",
              true},
      JsonKey{"utilization", "0..1", "the same, filled; present with fill", true},
      JsonKey{"utilization_ceiling", "0..1",
              "the same, if all of it fitted in the fewest steps whose bubbles are large enough; utilization is above it only "
              "where work runs behind the window (behind_s), which makes steps longer and fuller; present with fill",
              true},
      JsonKey{"utilization_own_cycles", "0..1",
              "the same, if every rank refreshed after the steps that it needs itself, mean over ranks; present with fill",
              true},
      JsonKey{"behind_s", "s", "of a window: work that found no gap and runs behind it, mean over ranks; present with fill",
              true},
      JsonKey{"stragglers_s", "s",
              "of step_time_s: what slow GPUs and ports cost; this and the next three are present with "
              "cluster.stragglers or cluster.slow_links, without schedule.fill",
              true},
      JsonKey{"healthy_step_time_s", "s", "a step without them, the ranks in the same order", true},
      JsonKey{"waiting_s", "s", "list, one per pipeline rank: step_time_s without its compute, mean over members", true},
      JsonKey{"healthy_waiting_s", "s", "the same without slow GPUs and ports", true},
      JsonKey{"days", "days", "duration of the training; present with run.tokens", true},
      JsonKey{"gpu_hours", "h", "GPUs x duration of the training; present with run.tokens", true},
      JsonKey{"cost", "currency",
              "gpu_hours x cluster.price_per_gpu_hour; present with run.tokens and a price > 0", true},
  });
  return keys;
}

std::span<const JsonKey> goodput_json_keys() {
  static constexpr auto keys = with_time_basis_keys(std::array{
      JsonKey{"scenario", "text", "name of the scenario"},
      JsonKey{"days", "days", "of each history"},
      JsonKey{"step_time_s", "s", "of the simulated step, without faults"},
      JsonKey{"nodes", "count", "nodes that hold ranks"},
      JsonKey{"histories", "count", "that were simulated; 1 where all failures are planned"},
      JsonKey{"goodput", "0..1", "of the time: steps that were kept, mean over histories"},
      JsonKey{"goodput_error", "0..1", "standard error of that mean; absent with one history", true},
      JsonKey{"checkpoint_share", "0..1", "of the time: complete checkpoints; the shares and goodput add up to 1"},
      JsonKey{"lost_share", "0..1", "steps and writing that a failure undid"},
      JsonKey{"restart_share", "0..1", "restarts"},
      JsonKey{"waiting_share", "0..1", "no node was left, training waited for a repair"},
      JsonKey{"failures", "count", "nodes that failed in a history, mean"},
      JsonKey{"failures_error", "count", "standard error of that mean; absent with one history", true},
      JsonKey{"tokens_per_day", "1/day", "of kept steps"},
      JsonKey{"checkpoint_interval_s", "s", "between two checkpoints, in whole steps"},
      JsonKey{"checkpoint_steps", "count", "the same in steps"},
      JsonKey{"closed_form_goodput", "0..1",
              "expectation of Daly 2006, with spares enough; this and the next two are present with "
              "cluster.mtbf_per_node",
              true},
      JsonKey{"best_interval_s", "s", "of Daly 2006; 0 where checkpoints cost nothing: save after every step", true},
      JsonKey{"young_interval_s", "s", "of Young 1974", true},
      JsonKey{"intervals_s", "s", "list: shorter and longer intervals, this one among them"},
      JsonKey{"goodputs", "0..1", "list: the simulated goodput of each"},
  });
  return keys;
}

std::span<const JsonKey> study_json_keys() {
  static constexpr std::array keys{
      JsonKey{"varied", "list", "keys that take several values, in the order of --vary"},
      JsonKey{"points", "list", "all combinations, the last key fastest; a figure that a point has not is absent"},
      JsonKey{"points[].scenario", "text", "name of the scenario"},
      JsonKey{"points[].set", "map", "the varied keys and their values here"},
      JsonKey{"points[].basis", "text",
              "on what its figures rest, with book_error, fitted_stacks, own_sources, not_priced, outside_fit, memory_outside_fit as in "
              "simulate; absent without figures",
              true},
      JsonKey{"points[].error", "text", "why there are no figures; absent where there are", true},
      JsonKey{"points[].step_time_s", "s", "and the other columns of --csv (`slipway study --help`), in base units"},
      JsonKey{"points[].needed_memory_bytes", "bytes", "of the pipeline rank that is nearest to its GPU's memory, as fits judges it"},
      JsonKey{"points[].peak_memory_bytes", "bytes", "on the timeline, of the pipeline rank that is nearest there"},
      JsonKey{"points[].fits", "bool", "as in simulate"},
  };
  return keys;
}

std::span<const JsonKey> memory_json_keys() {
  static constexpr auto keys = with_basis_keys(std::array{
      JsonKey{"scenario", "text", "name of the scenario"},
      JsonKey{"stack", "text", "trainer whose constants make the estimate: cluster.stack, or \"book\""},
      JsonKey{"stack_machine", "text", "machine on which they were found; null: the book's"},
      JsonKey{"fits", "bool", "the largest of closed form (with a trainer's own constants without it), timeline and estimate "
              "is within the GPU on every stage"},
      JsonKey{"fits_cautious", "bool", "the same within the trainer's cautious share of every GPU, 0.8 of the book"},
      JsonKey{"fits_safe_share", "bool",
              "the author's verdict (Fujii et al. 2024): closed form <= 80 % of the GPU on every stage; "
              "null without a closed form"},
      JsonKey{"fullest_stage", "index", "pipeline rank that needs the largest share of its GPU"},
      JsonKey{"peak_bytes", "bytes", "what it needs: the largest of the three"},
      JsonKey{"usable_bytes", "bytes", "memory of its GPU that a process gets"},
      JsonKey{"peak_task", "text", "label of the task during which its memory peaks on the timeline"},
      JsonKey{"step_time_s", "s", "of the scenario, replayed without contention (so not simulate's): what changes are compared with"},
      JsonKey{"stages", "list",
              "per pipeline rank: rank, capacity_bytes, peak_task, needs_bytes, fits, fits_cautious, fits_safe_share and, each "
              "in bytes by "
              "part with total, closed_form (null without one), timeline, estimate"},
      JsonKey{"no_closed_form", "text", "why there is no closed form; present when there is none", true},
      JsonKey{"changes", "list",
              "changes tried, those that fit first, fastest first: change, set (list of --set), refused (why it "
              "cannot be, or null), fits, peak_bytes, share (of the usable memory), step_time_s (null: not "
              "priced); present when it does not fit, or with --changes",
              true},
      JsonKey{"cheapest_change", "text",
              "the first of them that fits, null when none does; present with changes", true},
  });
  return keys;
}

std::span<const JsonKey> validate_json_keys() {
  static constexpr std::array keys{
      JsonKey{"priced_by", "text", "formula (of the row's trainer), or replay, simulation or book: of the task graph (validate --help)"},
      JsonKey{"rows", "count", "rows read; = priced + unpriced + excluded"},
      JsonKey{"priced", "count", "scored rows that have a predicted step time"},
      JsonKey{"unpriced", "count", "scored rows that cannot be priced: each counts as an error of 100 %"},
      JsonKey{"borrowed", "count",
              "of the priced: by constants of another machine, because the trainer was never fitted on theirs"},
      JsonKey{"excluded", "counts",
              "rows without a time score, per rule: status (did not end), after_pp_fix (older version of the "
              "trainer), all_reduce_test (< 300 GB/s)"},
      JsonKey{"mape", "%", "mean of |predicted / measured step time - 1|"},
      JsonKey{"median_ape", "%", "its median"},
      JsonKey{"bias", "%", "mean of predicted / measured - 1 over priced rows"},
      JsonKey{"rank_correlation", "-1..1", "Spearman's, of predicted and measured MFU"},
      JsonKey{"regret_mfu", "0..1",
              "1 - measured MFU of the recommended layout / best measured MFU, mean over tables of alternatives"},
      JsonKey{"regret_mfu_median", "0..1", "the same, median over tables"},
      JsonKey{"regret_mfu_of_3", "0..1", "of the best of the first three recommended, mean over tables"},
      JsonKey{"regret_tables", "list", "table, regret_mfu, regret_mfu_of_3, ran_out (the first pick was OOM)"},
      JsonKey{"oom", "counts",
              "true_fit, true_oom, false_fit (called to fit, ran out), false_oom; rows of status ok and OOM, all "
              "versions of the trainer"},
      JsonKey{"oom_cautious", "counts", "the same for the cautious verdict"},
      JsonKey{"allocated", "counts, %",
              "rows, mape, median_ape, bias of predicted weights, gradients, optimizer and tables against what was "
              "allocated after a step"},
      JsonKey{"reserved", "counts, %", "the same of the first stage's predicted peak against the allocator's"},
      JsonKey{"memory_unpriced", "count", "rows of status ok or OOM that get no memory verdict"},
      JsonKey{"groups", "map", "the keys above per group (model, sequence length, layout: as the table has it)"},
      JsonKey{"machines", "map", "the same per machine profile"},
      JsonKey{"unpriced_rows", "list", "file, line, reason"},
      JsonKey{"assumed_rows", "list", "file, line, assumed: what the table does not tell and was taken for it"},
      JsonKey{"tables", "map", "the keys above per file; left_out when refitted"},
      JsonKey{"left_out", "map",
              "layout, group, choice: the keys above with every row predicted by constants fitted without it; present "
              "when refitted",
              true},
  };
  return keys;
}

}  // namespace slipway
