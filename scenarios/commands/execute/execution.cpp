#include "scenarios/commands/execute/execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "exec/run/data_files.h"
#include "exec/run/executable.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/execute/rank_program.h"
#include "scenarios/commands/simulate/prediction_text.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/predict/readable.h"
#include "schedules/time/replay.h"

namespace slipway::scenarios {
namespace {

double executed_mfu(const PreparedStep& prepared, double tokens_per_s) {
  const double peak = peak_flops(prepared.scenario);
  return peak > 0 ? tokens_per_s * mfu_flops_per_token(prepared.scenario.step.model) / peak : 0;
}

bool knows_rates(const std::vector<LossPoint>& losses) {
  return std::all_of(losses.begin(), losses.end(),
                     [](const LossPoint& point) { return point.learning_rate.has_value(); });
}

// Each key is a list, one per step.
Description<LossPoint> loss_keys() {
  const auto rate = [](const LossPoint& point) { return point.learning_rate; };
  return Description<LossPoint>()
      .only_column("step", [](const LossPoint& point) { return std::to_string(point.step + 1); })
      .only_column("samples", [](const LossPoint& point) { return readable_count(static_cast<double>(point.samples)); })
      .key("losses", "nats", "list, one per step", &LossPoint::loss)
      .column("loss", [](double loss) { return fmt::format("{:.6f}", loss); })
      .key("learning_rates", "1",
           "list, the learning rate of each step; absent where an earlier version ran some of them", rate)
      .column("learning rate", or_dash([](double of_step) { return fmt::format("{:.4g}", of_step); }))
      .if_any()
      .only_column("held out",
                   [](const LossPoint& point) {
                     return point.evaluation_loss ? fmt::format("{:.6f}", *point.evaluation_loss) : "";
                   })
      .if_any();
}

std::string fullest_rank(const Execution& run) {
  const std::vector<double> peaks = peak_memory(run.trace, run.times.first, run.times.last);
  if (peaks.empty()) return "-";
  const auto fullest = std::max_element(peaks.begin(), peaks.end());
  return fmt::format("{} (rank {})", readable_bytes(*fullest), fullest - peaks.begin());
}

// The step time of the batch that ran most steps: between two batches lies no step.
double step_time_of_run(const Execution& run) {
  if (run.batches.empty()) return run.times.median_period_s;
  return longest_of(run.batches).step_s.value_or(run.times.median_period_s);
}

std::string step_time_words(const Execution& run) {
  if (!run.batches.empty() && longest_of(run.batches).step_s)
    return fmt::format("of batch {}, which most steps have; otherwise", longest_of(run.batches).batch);
  if (run.trace.steps < run.trace.window)
    return fmt::format("of {}, fewer than a window of {}", counted(run.trace.steps, "step"), run.trace.window);
  const std::string window = run.trace.window > 1 ? " of " + counted(run.trace.window, "step") : "";
  return "median of " +
         counted(static_cast<std::int64_t>(run.times.period_s.size()), run.trace.window > 1 ? "window" : "step") +
         window;
}

// The table also has the losses of runs before this one. The length of their windows is not known any more.
std::string held_out_words(const Trace& trace) {
  const int before = steps_before(trace);
  bool evaluates = false, is_of_this_run = true;
  for (const LossPoint& point : trace.losses) {
    if (!point.evaluation_loss) continue;
    evaluates = true;
    is_of_this_run &= point.step >= before;
  }
  if (!evaluates) return "";
  const std::string steps = !is_of_this_run     ? "window of steps that ends there"
                            : trace.window == 1 ? "step"
                                                : counted(trace.window, "step") + " that end there";
  return "Held out: with the weights before the " + steps + ".\n";
}

struct Answer {
  const PreparedStep& prepared;
  const Execution& run;
  const std::optional<Comparison>& comparison;
};
const Execution& run_in(const Answer& answer) { return answer.run; }
const Trace& trace_in(const Answer& answer) { return answer.run.trace; }
const std::vector<LossPoint>& losses_in(const Answer& answer) { return answer.run.trace.losses; }

double tokens_per_s_in(const Answer& answer) { return tokens_per_s(answer.prepared, answer.run); }
double mfu_in(const Answer& answer) { return executed_mfu(answer.prepared, tokens_per_s_in(answer)); }

std::vector<LossPoint> evaluations_in(const Answer& answer) {
  std::vector<LossPoint> evaluated = losses_in(answer);
  std::erase_if(evaluated, [](const LossPoint& point) { return !point.evaluation_loss; });
  return evaluated;
}

std::vector<BatchRow> batch_rows_of(const PreparedStep& prepared, const Execution& run) {
  return batch_rows(run.batches, static_cast<double>(prepared.scenario.step.model->sequence), steps_before(run.trace),
                    run.predicted_step_s);
}
std::vector<BatchRow> batches_in_answer(const Answer& answer) { return batch_rows_of(answer.prepared, answer.run); }

std::vector<double> peaks_in(const Answer& answer) {
  return peak_memory(answer.run.trace, answer.run.times.first, answer.run.times.last);
}

Description<LossPoint> evaluation_keys() {
  return Description<LossPoint>()
      .key("step", "number", "the window's last, counted from 1", [](const LossPoint& point) { return point.step + 1; })
      .key("loss", "nats", "mean over the held-out tokens, with the weights of the window's beginning",
           [](const LossPoint& point) { return *point.evaluation_loss; });
}

const Description<Answer>& description() {
  static const Description<Answer> description =
      Description<Answer>()
          .key("scenario", "text", "name of the scenario", [](const Answer& a) { return a.prepared.scenario.name; })
          .key("step_time_s", "s",
               "median distance between the starts of two steps on the slowest rank (one step: its span)",
               of(run_in, step_time_of_run))
          .column("step time", readable_seconds)
          .key("tokens_per_s", "1/s", "global batch x sequence / step_time_s", tokens_per_s_in)
          .column("tokens/s", readable_count)
          .key("mfu", "0..1", "as in simulate; present when the machine profile has a peak for the dtype", mfu_in)
          .when([](const Answer& a) { return mfu_in(a) > 0; })
          .only_column("loss",
                       [](const Answer& a) {
                         return fmt::format("{:.4f} to {:.4f}", losses_in(a).front().loss, losses_in(a).back().loss);
                       })
          .key("waiting_share", "0..1",
               "of the run: compute lanes without work (bubble and exposed communication), mean over ranks",
               [](const Answer& a) { return a.run.times.idle_share; })
          .column("waiting", readable_share)
          .key("first_loss", "nats", "mean token loss of the first step",
               [](const Answer& a) { return losses_in(a).front().loss; })
          .key("last_loss", "nats", "mean token loss of the last step",
               [](const Answer& a) { return losses_in(a).back().loss; })
          .lists(losses_in, loss_keys())
          .when([](const Answer& a) { return knows_rates(losses_in(a)); })
          .list("evaluations",
                "one object per window of steps, of held-out micro-batches in the bubbles; present with schedule.fill "
                "evaluation",
                evaluations_in, evaluation_keys())
          .when([](const Answer& a) { return !evaluations_in(a).empty(); })
          .list("batches", "one object per batch, in order of time; present where the batch grew", batches_in_answer,
                batch_keys())
          .when([](const Answer& a) { return !a.run.batches.empty(); })
          .key("window", "count", "steps after which tasks repeat (work in the bubbles); present above 1",
               of(trace_in, &Trace::window))
          .when([](const Answer& a) { return a.run.trace.window > 1; })
          .key("ranks", "count", "processes that ran", of(trace_in, &Trace::ranks))
          .key("steps", "count", "steps trained", of(trace_in, &Trace::steps))
          .key("peak_memory_bytes", "bytes",
               "list, one per rank: peak of its tensors in the counted steps; present when all ranks "
               "measured it",
               each(peaks_in, [](double bytes) { return std::llround(bytes); }))
          .when([](const Answer& a) { return !peaks_in(a).empty(); })
          .wide_column("peak memory", of(run_in, fullest_rank))
          .key("records", "count", "trace records: tasks executed, counted once per member rank",
               [](const Answer& a) { return a.run.trace.records.size(); })
          .key("trace", "path", "Chrome/Perfetto trace that was written", of(run_in, &Execution::trace_path))
          .key("folder", "path", "folder with bundle, records and losses of the run", of(run_in, &Execution::folder))
          .key("weights", "path", "folder with the weights that were saved; present with --save-weights",
               of(run_in, &Execution::weights_path))
          .when([](const Answer& a) { return !a.run.weights_path.empty(); })
          .object(
              "confirmation", "of --confirm: the keys of compare, prediction against this run; present with it",
              [](const Answer& a) { return a.comparison; }, comparison_description())
          .listed_elsewhere();
  return description;
}

}  // namespace

void refuse_what_cannot_run(const Scenario& scenario) {
  std::vector<std::string> reasons;
  for (const Refusal& refusal : not_executable(scenario.step, scenario.run, scenario.growth.given))
    reasons.push_back(text_of(refusal));
  const bool evaluates = scenario.step.fill == Fill::evaluation;
  for (const auto& [key, path] :
       {std::pair{"run.data", scenario.run.data},
        std::pair{"run.evaluation_data", evaluates ? scenario.run.evaluation_data : std::string()}})
    if (const std::string why = path.empty() ? "" : why_no_sample(path, scenario.step.model); !why.empty())
      reasons.push_back(std::string(key) + ": " + why);
  if (reasons.empty()) return;
  std::string text = "this scenario can be simulated but not executed:";
  for (const std::string& reason : reasons) text += "\n" + scenario.path + ": " + reason;
  throw UsageError(text);
}

void refuse_graphs(const PreparedStep& prepared) {
  if (const auto refusal = not_recordable(prepared.graph)) throw UsageError(text_of(*refusal));
}

void refuse_what_does_not_fit(const PreparedStep& prepared) {
  const Timeline timeline = replay(prepared.graph, prepared.durations);
  const std::vector<Violation> violations = memory_violations(prepared, timeline);
  if (violations.empty()) return;
  const std::string batch =
      prepared.scenario.growth.given
          ? fmt::format(" with batch {}, to which training.growth leads", prepared.graph.step.global_batch)
          : "";
  throw UsageError("the scenario does not fit into memory" + batch +
                   "; nothing was started (--force starts all the same): " + violations.front().message + "\n" +
                   memory_text(stage_memory(prepared, timeline)));
}

std::vector<std::string> execution_notes(const Scenario& scenario, const std::string& program) {
  std::vector<std::string> notes;
  const bool gpus = computes_on_gpus(program);
  for (const NodeGroup& group : scenario.cluster.groups) {
    if ((group.machine.cores == 0) == gpus) continue;
    notes.push_back("the scenario's machine is " + group.machine.name + "; the ranks run on this machine's " +
                    (gpus ? "GPUs" : "CPU") + ", so times are not that machine's");
    break;
  }
  if (writes_scores(scenario.step.kernels) && !(gpus && scenario.step.dtype == Dtype::float64))
    notes.push_back(std::string("schedule.kernels says that attention writes its scores to memory; the ranks' "
                                "attention does not, so time and "
                                "memory are predicted for other kernels; set schedule.kernels: ") +
                    (gpus ? "flash2_rmsnorm" : "flash2"));
  if (gpus) return notes;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  const int ranks = rank_count(scenario.step.layout);
  if (cores > 0 && ranks > cores) {
    notes.push_back(fmt::format("{} share {}; slipway-rank computes with one thread per rank", counted(ranks, "rank"),
                                counted(cores, "core")));
  }
  return notes;
}

std::vector<std::string> evaluation_notes(const PreparedStep& prepared, int done) {
  const Scenario& scenario = prepared.scenario;
  const int steps = scenario.run.steps - done, window = prepared.graph.window;
  if (scenario.step.fill != Fill::evaluation) {
    if (scenario.run.evaluation_data.empty()) return {};
    const bool can = !uses_kfac(prepared.graph.step) && !scenario.growth.given;
    return {std::string("run.evaluation_data is not read, because nothing evaluates it; ") +
            (can ? "set schedule.fill to evaluation"
                 : "evaluation needs schedule.fill evaluation, run.optimizer adamw and a batch that stays")};
  }
  if (steps >= window) return {};
  return {
      fmt::format("the held-out loss is printed at the end of windows of {}, but only {} will run, so there is none; "
                  "raise run.steps "
                  "to {}, or lower schedule.evaluation_micro_batches",
                  counted(window, "step"), counted(steps, "step"), done + window)};
}

std::string loss_table(const std::vector<LossPoint>& losses) {
  constexpr std::size_t most_rows = 12;
  const bool evaluates = std::any_of(losses.begin(), losses.end(),
                                     [](const LossPoint& point) { return point.evaluation_loss.has_value(); });
  std::vector<LossPoint> chosen = losses;  // steps with a held-out loss first
  if (evaluates)
    std::erase_if(chosen,
                  [&](const LossPoint& point) { return !point.evaluation_loss && point.step != losses.back().step; });
  const std::size_t stride = (chosen.size() + most_rows - 1) / most_rows;
  std::vector<LossPoint> shown;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (i % stride == 0 || i + 1 == chosen.size()) shown.push_back(chosen[i]);
  return aligned_table(loss_keys().table(shown), "  ");
}

double tokens_per_s(const PreparedStep& prepared, const Execution& run) {
  if (run.batches.empty()) return tokens_per_step(prepared.scenario) / run.times.median_period_s;
  double samples = 0, seconds = 0;
  for (const BatchMeasured& each : run.batches)
    for (int step = std::max(each.first, run.times.first); step <= std::min(each.last, run.times.last); ++step) {
      samples += static_cast<double>(each.batch);
      seconds += run.times.period_s[step - run.times.first];
    }
  return samples * static_cast<double>(prepared.scenario.step.model->sequence) / seconds;
}

std::string report_text(const PreparedStep& prepared, const Execution& run) {
  const int before = steps_before(run.trace);
  const std::optional<Comparison> none;
  const Answer answer{prepared, run, none};
  std::string text = aligned_table({description().headings(), description().cells(answer)}, "  ");
  if (!run.batches.empty())
    text += "\nBatches (step time: median of the steps with a successor of the same batch):\n" +
            aligned_table(batch_keys().table(batch_rows_of(prepared, run)), "  ");
  text += fmt::format(
      "\nStep time: {} ({}); waiting: compute lanes without work.\n"
      "Peak memory: of all tensors of the fullest rank in these steps.\n\nLoss:\n",
      step_time_words(run),
      run.times.first == run.times.last
          ? fmt::format("step {}", before + run.times.first + 1)
          : fmt::format("steps {} to {}", before + run.times.first + 1, before + run.times.last + 1));
  text += loss_table(run.trace.losses);
  return text + held_out_words(run.trace) + '\n';
}

std::vector<AnswerKeys> execute_answers() { return {{"execute --json", description().keys()}}; }

std::string json_text(const PreparedStep& prepared, const Execution& run, const std::optional<Comparison>& comparison) {
  return description().text({prepared, run, comparison});
}

}  // namespace slipway::scenarios
