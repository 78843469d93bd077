// Keys of --json that say on what times and memory rest (basis.h): the same in every table that has them.
#include "scenarios/answers/json_summary.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include "scenarios/answers/readable.h"

namespace slipway::scenarios {

inline constexpr std::array basis_json_keys{
    JsonKey{"basis", "text",
            "trainer of cluster.stack whose constants price the step; book: built-in machine profiles alone; profile: "
            "a profile or block table of your own; in plan of the winner, present where something fits",
            true},
    JsonKey{"book_error", "0..1",
            "list: from, to; how far step times by book values are off published runs; present with basis book", true},
    JsonKey{"fitted_stacks", "list", "stacks that were fitted on these machines; present with basis book", true},
    JsonKey{"own_sources", "list",
            "what times rest on that is not built in: machine profiles (file: source, date), the table of "
            "cluster.block_times; "
            "in plan present where something fits",
            true},
    JsonKey{"not_priced", "list",
            "features that the trainer's formula of step time has no term for; present with a trainer's pace", true},
    JsonKey{"outside_fit", "list",
            "what lies outside the runs that the trainer's times were fitted to: what, here, and least, most (of a "
            "quantity) or fitted (the choices of these runs); slices with fewer tokens than any published run computed "
            "at once; "
            "present with a trainer's pace, or such slices",
            true},
    JsonKey{"memory_outside_fit", "list",
            "the same of the runs that its memory was fitted to; present with cluster.stack, where memory is told",
            true},
};

// Those of memory, the last, only where it is told.
template <bool of_memory, std::size_t count>
constexpr auto with_keys_of_basis(const std::array<JsonKey, count>& own) {
  constexpr std::size_t more = basis_json_keys.size() - (of_memory ? 0 : 1);
  std::array<JsonKey, count + more> all{};
  std::copy_n(basis_json_keys.begin(), more, std::copy(own.begin(), own.end(), all.begin()));
  return all;
}
template <std::size_t count>
constexpr auto with_basis_keys(const std::array<JsonKey, count>& own) {
  return with_keys_of_basis<true>(own);
}
template <std::size_t count>
constexpr auto with_time_basis_keys(const std::array<JsonKey, count>& own) {
  return with_keys_of_basis<false>(own);
}

namespace {

bool is_of_list(const JsonKey& key) { return key.name.find("[].") != std::string_view::npos; }

}  // namespace

JsonSummary::JsonSummary(std::span<const JsonKey> keys) : keys_(keys), values_(keys.size()), given_(keys.size()) {}
JsonSummary::~JsonSummary() = default;

std::size_t JsonSummary::index_of(std::string_view key) const {
  const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const JsonKey& k) { return k.name == key; });
  if (found == keys_.end()) {
    throw std::logic_error("JSON key '" + std::string(key) + "' is not documented in json_keys.cpp");
  }
  return static_cast<std::size_t>(found - keys_.begin());
}

template <typename Value>
void JsonSummary::set(std::string_view key, const Value& value) {
  const std::size_t index = index_of(key);
  values_[index] = value;
  given_[index] = true;
}

template void JsonSummary::set(std::string_view, const double&);
template void JsonSummary::set(std::string_view, const bool&);
template void JsonSummary::set(std::string_view, const int&);
template void JsonSummary::set(std::string_view, const std::int64_t&);
template void JsonSummary::set(std::string_view, const std::uint64_t&);
template void JsonSummary::set(std::string_view, const std::string&);
template void JsonSummary::set(std::string_view, const std::vector<double>&);
template void JsonSummary::set(std::string_view, const std::vector<std::int64_t>&);
template void JsonSummary::set(std::string_view, const std::vector<std::string>&);
template void JsonSummary::set(std::string_view, const nlohmann::json&);

std::string JsonSummary::text() const {
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (given_[i]) {
      object[std::string(keys_[i].name)] = values_[i];
    } else if (!keys_[i].optional && !is_of_list(keys_[i])) {
      throw std::logic_error("JSON key '" + std::string(keys_[i].name) + "' was not set");
    }
  }
  return object.dump(2) + '\n';
}

std::string describe(std::span<const JsonKey> keys) {
  std::size_t name = 0, unit = 0;
  for (const JsonKey& key : keys) {
    name = std::max(name, key.name.size());
    unit = std::max(unit, display_width(std::string(key.unit)));
  }
  std::string text;
  for (const JsonKey& key : keys) {
    text += "  " + std::string(key.name) + std::string(name + 2 - key.name.size(), ' ');
    text += std::string(key.unit) + std::string(unit + 2 - display_width(std::string(key.unit)), ' ');
    text += std::string(key.meaning) + '\n';
  }
  return text;
}

// The keys of every --json output (of plan, growth, and what runs: json_keys_plan.cpp, json_keys_growth.cpp,
// json_keys_execution.cpp): the only place where they are named and explained.

std::span<const JsonKey> simulate_json_keys() {
  static constexpr auto keys = with_basis_keys(std::array{
      JsonKey{"scenario", "text", "name of the scenario"},
      JsonKey{"step_time_s", "s",
              "steady period: start of the last simulated step minus start of the one before, slowest rank"},
      JsonKey{"makespan_s", "s", "first start to last end of one isolated step (with fill: of one window)"},
      JsonKey{
          "mfu", "0..1",
          "model FLOPs (6N + 12Lhs per token, N without the experts that a token does not go through, no recompute) "
          "per step over what the ranks' peak allows; 0 where a peak is unknown, or cluster.block_times leaves a part "
          "of the model free"},
      JsonKey{"tokens_per_s", "1/s", "global batch x sequence / step_time_s"},
      JsonKey{"compute_share", "0..1", "of the step: compute lanes busy, mean over ranks"},
      JsonKey{"exposed_comm_share", "0..1",
              "of the step: compute idle while communication that it needs runs or queues, mean over ranks"},
      JsonKey{"bubble_share", "0..1", "of the step: every other idle time, mean over ranks"},
      JsonKey{"exposed_comm_s", "s", "exposed communication of one step, mean over ranks"},
      JsonKey{"peak_memory_bytes", "bytes", "list, one per pipeline rank: peak of its fullest rank"},
      JsonKey{"memory_capacity_bytes", "bytes", "list, one per pipeline rank: memory of that rank's machine"},
      JsonKey{"peak_task", "text", "list, one per pipeline rank: label of the task during which the peak occurs"},
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
      JsonKey{"active_parameters", "count",
              "of these: without the experts that a token does not go through; present with model.experts", true},
      JsonKey{"tasks", "count", "tasks of simulated ranks in the graph of one step (with fill: of one window)"},
      JsonKey{"simulated_units", "count",
              "what these tasks were simulated as: a run of them whose middle nobody else sees counts once"},
      JsonKey{"steps", "count", "steps (with fill: windows) simulated back to back"},
      JsonKey{"simulate_wall_s", "s", "time that the simulator's event loop took"},
      JsonKey{"fill", "text", "what the bubbles are filled with; present with schedule.fill or run.optimizer kfac",
              true},
      JsonKey{"refresh_steps", "count",
              "steps between two refreshes of it, the window that was simulated; present with fill", true},
      JsonKey{"unfilled_step_time_s", "s", "a step without it, without contention; present with fill", true},
      JsonKey{"utilization_before", "0..1",
              "of the pipeline's time (a step without preconditioning and optimizer): compute, mean over ranks, "
              "without filling; present with fill",
              true},
      JsonKey{"utilization", "0..1", "the same, filled; present with fill", true},
      JsonKey{"utilization_ceiling", "0..1",
              "the same, if all of it fitted in the fewest steps whose bubbles are large enough; utilization is above "
              "it only "
              "where work runs behind the window (behind_s), which makes steps longer and fuller; present with fill",
              true},
      JsonKey{
          "utilization_own_cycles", "0..1",
          "the same, if every rank refreshed after the steps that it needs itself, mean over ranks; present with fill",
          true},
      JsonKey{"behind_s", "s",
              "of a window: work that found no gap and runs behind it, mean over ranks; present with fill", true},
      JsonKey{"stragglers_s", "s",
              "of step_time_s: what slow GPUs and ports cost; this and the next three are present with "
              "cluster.stragglers or cluster.slow_links, without schedule.fill",
              true},
      JsonKey{"healthy_step_time_s", "s", "a step without them, the ranks in the same order", true},
      JsonKey{"waiting_s", "s", "list, one per pipeline rank: step_time_s without its compute, mean over members",
              true},
      JsonKey{"healthy_waiting_s", "s", "the same without slow GPUs and ports", true},
      JsonKey{"days", "days", "duration of the training; present with run.tokens", true},
      JsonKey{"gpu_hours", "h", "GPUs x duration of the training; present with run.tokens", true},
      JsonKey{"cost", "currency", "gpu_hours x cluster.price_per_gpu_hour; present with run.tokens and a price > 0",
              true},
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
              "on what its figures rest, with book_error, fitted_stacks, own_sources, not_priced, outside_fit, "
              "memory_outside_fit as in "
              "simulate; absent without figures",
              true},
      JsonKey{"points[].error", "text", "why there are no figures; absent where there are", true},
      JsonKey{"points[].step_time_s", "s", "and the other columns of --csv (`slipway study --help`), in base units"},
      JsonKey{"points[].needed_memory_bytes", "bytes",
              "of the pipeline rank that is nearest to its GPU's memory, as fits judges it"},
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
      JsonKey{"fits", "bool",
              "the largest of closed form (with a trainer's own constants without it), timeline and estimate "
              "is within the GPU on every stage"},
      JsonKey{"fits_cautious", "bool", "the same within the trainer's cautious share of every GPU, 0.8 of the book"},
      JsonKey{"fits_safe_share", "bool",
              "the author's verdict (Fujii et al. 2024): closed form <= 80 % of the GPU on every stage; "
              "null without a closed form"},
      JsonKey{"fullest_stage", "index", "pipeline rank that needs the largest share of its GPU"},
      JsonKey{"peak_bytes", "bytes", "what it needs: the largest of the three"},
      JsonKey{"usable_bytes", "bytes", "memory of its GPU that a process gets"},
      JsonKey{"peak_task", "text", "label of the task during which its memory peaks on the timeline"},
      JsonKey{"step_time_s", "s",
              "of the scenario, replayed without contention (so not simulate's): what changes are compared with"},
      JsonKey{"stages", "list",
              "per pipeline rank: rank, capacity_bytes, peak_task, needs_bytes, fits, fits_cautious, fits_safe_share "
              "and, each "
              "in bytes by "
              "part with total, closed_form (null without one), timeline, estimate"},
      JsonKey{"no_closed_form", "text", "why there is no closed form; present when there is none", true},
      JsonKey{"changes", "list",
              "changes tried, those that fit first, fastest first: change, set (list of --set), refused (why it "
              "cannot be, or null), fits, peak_bytes, share (of the usable memory), step_time_s (null: not "
              "priced); present when it does not fit, or with --changes",
              true},
      JsonKey{"cheapest_change", "text", "the first of them that fits, null when none does; present with changes",
              true},
  });
  return keys;
}

std::span<const JsonKey> validate_json_keys() {
  static constexpr std::array keys{
      JsonKey{"priced_by", "text",
              "formula (of the row's trainer), or replay, simulation or book: of the task graph (validate --help)"},
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

// The keys of --json of what runs and of what is set beside it: execute, compare, confirm.

std::span<const JsonKey> execute_json_keys() {
  static constexpr std::array keys{
      JsonKey{"scenario", "text", "name of the scenario"},
      JsonKey{"step_time_s", "s",
              "median distance between the starts of two steps on the slowest rank (one step: its span)"},
      JsonKey{"tokens_per_s", "1/s", "global batch x sequence / step_time_s"},
      JsonKey{"mfu", "0..1", "as in simulate; present when the machine profile has a peak for the dtype", true},
      JsonKey{"waiting_share", "0..1",
              "of the run: compute lanes without work (bubble and exposed communication), mean over ranks"},
      JsonKey{"first_loss", "nats", "mean token loss of the first step"},
      JsonKey{"last_loss", "nats", "mean token loss of the last step"},
      JsonKey{"losses", "nats", "list, one per step"},
      JsonKey{"learning_rates", "1",
              "list, the learning rate of each step; absent where an earlier version ran some of them", true},
      JsonKey{"evaluations", "list",
              "one object per window of steps, of held-out micro-batches in the bubbles; present with schedule.fill "
              "evaluation",
              true},
      JsonKey{"evaluations[].step", "number", "the window's last, counted from 1"},
      JsonKey{"evaluations[].loss", "nats",
              "mean over the held-out tokens, with the weights of the window's beginning"},
      JsonKey{"batches", "list", "one object per batch, in order of time; present where the batch grew", true},
      JsonKey{"batches[].batch", "count", "sequences per step"},
      JsonKey{"batches[].first_step", "number", "of the training, counted from 1"},
      JsonKey{"batches[].last_step", "number", "the same"},
      JsonKey{"batches[].step_time_s", "s",
              "median of its steps that another of the same batch follows; absent without one", true},
      JsonKey{"batches[].predicted_step_s", "s", "simulated before the run; present with --confirm", true},
      JsonKey{"batches[].noise_scale", "count",
              "gradient noise scale in sequences; null where no signal stands out of the noise or the training has "
              "diverged; present with the norm test",
              true},
      JsonKey{"window", "count", "steps after which tasks repeat (work in the bubbles); present above 1", true},
      JsonKey{"ranks", "count", "processes that ran"},
      JsonKey{"steps", "count", "steps trained"},
      JsonKey{
          "peak_memory_bytes", "bytes",
          "list, one per rank: the most that its tensors took in the counted steps; present when all ranks measured it",
          true},
      JsonKey{"records", "count", "trace records: tasks executed, counted once per member rank"},
      JsonKey{"trace", "path", "Chrome/Perfetto trace that was written"},
      JsonKey{"folder", "path", "folder with bundle, records and losses of the run"},
      JsonKey{"confirmation", "object",
              "of --confirm: the keys of compare, prediction against this run; present with it", true},
  };
  return keys;
}

std::span<const JsonKey> compare_json_keys() {
  static constexpr std::array keys{
      JsonKey{"predicted_step_s", "s", "period of the predicted trace's last step"},
      JsonKey{"measured_step_s", "s", "median period of the measured trace's steps"},
      JsonKey{"step_error", "share", "predicted_step_s / measured_step_s - 1"},
      JsonKey{"window", "count",
              "steps after which tasks repeat (work in the bubbles): kinds and tasks are those of so many steps; "
              "present above 1",
              true},
      JsonKey{"predicted_idle_s", "s", "compute lanes without work in one predicted step, mean over ranks"},
      JsonKey{"measured_idle_s", "s", "the same of the measured steps (median step)"},
      JsonKey{"memory", "list", "one object per rank; present when both traces know the ranks' memory", true},
      JsonKey{"memory[].rank", "index", "the rank"},
      JsonKey{"memory[].predicted_bytes", "bytes", "the most that it needs at once, by the simulated timeline"},
      JsonKey{"memory[].measured_bytes", "bytes", "the most that its tensors took in the counted steps"},
      JsonKey{"memory[].error", "share", "predicted_bytes / measured_bytes - 1"},
      JsonKey{"memory[].predicted_task", "text",
              "label of the compute task during which the prediction is fullest; empty if unknown"},
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
      JsonKey{"worst_tasks", "list", "the five tasks with the largest |measured - predicted| work time, largest first"},
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
      JsonKey{"median_error", "share",
              "|predicted / measured - 1| of the case in the middle (the larger of the middle two)"},
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

// The keys of `slipway growth --json`, of a scenario and with --fit: the only place where they are named
// and explained.

std::span<const JsonKey> growth_json_keys() {
  static constexpr auto keys = with_time_basis_keys(std::array{
      JsonKey{"scenario", "text", "name of the scenario"},
      JsonKey{"rule", "text", "by which the batch grows"},
      JsonKey{"time_to_target_s", "s", "until training.target_loss; absent where it is not given or not reached", true},
      JsonKey{"speedup", "-",
              "time to the target with the first batch throughout / time_to_target_s; absent without both", true},
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
      JsonKey{"rules[].always_reached", "bool", "do all of them reach it? Absent as target_range_s is", true},
      JsonKey{"rules[].spans", "list", "consecutive steps of one batch: batch, from_sequence, from_loss, steps"},
      JsonKey{"rungs", "list", "batches whose step was simulated, ascending"},
      JsonKey{"rungs[].batch", "sequences", "of the step"},
      JsonKey{"rungs[].micro_batches", "count", "per pipeline"},
      JsonKey{"rungs[].step_time_s", "s", "as in simulate, with tokens_per_s, mfu and fits"},
      JsonKey{"other_rungs", "list",
              "the same batches as rules step that measure norms where the scenario's does not, or do not where it "
              "does; absent "
              "without such rules",
              true},
      JsonKey{"line_error", "0..1", "the most that a simulated step time is off the line between its neighbours"},
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
      JsonKey{"parameters[].interval", "list",
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
      JsonKey{"by_learning_rate", "list",
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
      JsonKey{"predicted_error", "0..1", "mean of |predicted / measured - 1|; absent where none is left out", true},
      JsonKey{"constant_error", "0..1", "mean of |constant / measured - 1|; absent where none is left out", true},
  };
  return keys;
}

std::span<const JsonKey> growth_run_fit_json_keys() {
  static constexpr std::array keys{
      JsonKey{"run", "path",
              "folder of the executed run that was fitted, of as many steps and tokens a sequence (steps, sequence)"},
      JsonKey{"steps", "count", "of the run"},
      JsonKey{"sequence", "tokens", "of a sample"},
      JsonKey{"noise_scale", "tokens", "gradient noise scale at noise_loss, by the norms of the steps"},
      JsonKey{"noise_range", "tokens", "[least, most], 95 %: Student's t of the groups' residuals"},
      JsonKey{"noise_loss", "nats", "loss at which the noise scale is given"},
      JsonKey{"noise_exponent", "-", "of the noise scale by the loss: fitted, or --noise-exponent"},
      JsonKey{
          "noise_exponent_range", "-",
          "[least, most], 95 %; absent where it was given, or is 0 because the noise does not grow as the loss falls",
          true},
      JsonKey{"groups", "list",
              "steps that follow each other: first_step (from 1), steps, loss, batch, noise_scale (tokens)"},
      JsonKey{"start", "nats", "fitted: loss before the first step"},
      JsonKey{"floor", "nats", "assumed: which no training gets below"},
      JsonKey{"offset", "steps", "fitted, noiseless"},
      JsonKey{"exponent", "-", "fitted: of the loss by the noiseless steps"},
      JsonKey{"error", "0..1", "median of |fitted / measured - 1| over the steps that count"},
      JsonKey{"last_loss", "nats", "mean over the last twelfth of the steps"},
      JsonKey{"last_noise_scale", "tokens", "there; absent where noise drowns the gradient", true},
      JsonKey{
          "ends", "list",
          "the run's end by a fit to its first fitted_steps: loss, noise_scale, and what the loss was before (before)"},
      JsonKey{"target_loss", "nats", "of unseen"},
      JsonKey{"unseen", "list",
              "a run of --unseen each: run, batches, learning_rates, tokens and predicted_tokens to the target (absent "
              "where it is "
              "not reached), last_loss, predicted_loss"},
  };
  return keys;
}

// Keys of `slipway plan --json`.

std::span<const JsonKey> plan_json_keys() {
  static constexpr auto keys = with_basis_keys(std::array{
      JsonKey{"scenario", "text", "name of the scenario"},
      JsonKey{"pace", "text", "trainer at whose pace work was priced; null: by the machine profiles alone"},
      JsonKey{"complete", "bool", "false: interrupted, the answer is the best so far"},
      JsonKey{"legal", "count", "layouts of the space that can be run"},
      JsonKey{"too_large", "count",
              "of these: left out because they need more than memory_share (closed form, or simulated)"},
      JsonKey{"simulated", "count", "of these: simulated, because their bound left a chance"},
      JsonKey{"memory_share", "0..1", "of a GPU's memory that a layout may use"},
      JsonKey{
          "best", "list",
          "fastest first: tensor, sequence_parallel, pipeline, chunks, context, data, zero, schedule, "
          "micro_batch, recompute; bound_s, step_time_s, mfu, compute_share, bubble_share, "
          "exposed_comm_share, tokens_per_s, days, gpu_hours and cost as in simulate; memory_bytes and memory_share, "
          "the largest of what `slipway memory` knows, of the fullest pipeline rank; timeline_bytes, the simulated "
          "peak; on uneven clusters split (layers per stage) and placement (order of nodes); why it wins over the "
          "next"},
      JsonKey{"pareto", "list", "rows as in best, each with less memory than every faster one"},
      JsonKey{"best_too_large", "map",
              "the fastest row, by its bound, that needs too much memory; without step_time_s bound_s and "
              "memory_bytes are lower bounds; present when too_large > 0",
              true},
      JsonKey{"closest", "map", "the row that needs the least memory; present when nothing fits", true},
      JsonKey{"remedies", "list",
              "changes of the scenario with which a layout fits, and which; present when nothing fits", true},
      JsonKey{"screening_s", "s", "wall time of the closed form of all layouts"},
      JsonKey{"simulation_s", "s", "wall time of the rest"},
      JsonKey{"launch_arguments", "list", "the trainer's program and arguments; present with --emit", true},
      JsonKey{"launch_row", "count",
              "of best, from 1: the row that they launch, the first that the trainer runs as planned", true},
      JsonKey{"may_be_refused", "list",
              "why the trainer may refuse the winner, or run another layout; why it refuses any", true},
      JsonKey{"not_expressed", "list", "what else of that row the trainer cannot express; present with --emit", true},
      JsonKey{"to_be_added", "list", "arguments that a scenario does not say, or that are slipway's defaults", true},
  });
  return keys;
}

}  // namespace slipway::scenarios
