#include "scenarios/commands/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/step_times.h"

namespace slipway::scenarios {

namespace {

// One task of a trace's typical step.
struct TypicalTask {
  std::string kind;
  double work_s = 0, wait_s = 0;
};
using TaskKey = std::pair<int, std::string>;  // rank, label
using TypicalStep = std::map<TaskKey, TypicalTask>;

// Medians over steps [first, last].
TypicalStep typical_step(const Trace& trace, int first, int last) {
  struct Samples {
    std::string kind;
    std::vector<double> work, wait;
  };
  std::map<TaskKey, Samples> samples;
  const std::vector<double> work = work_times(trace);
  for (std::size_t i = 0; i < work.size(); ++i) {
    const TraceRecord& record = trace.records[i];
    if (record.step < first || record.step > last) continue;
    Samples& task = samples[{record.rank, record.label}];
    task.kind = record.kind;
    task.work.push_back(work[i]);
    task.wait.push_back(record.wait_s);
  }
  TypicalStep step;
  for (auto& [key, task] : samples) {
    step.emplace(key, TypicalTask{task.kind, median(std::move(task.work)), median(std::move(task.wait))});
  }
  return step;
}

std::string name_of(const TaskKey& key) { return "rank " + std::to_string(key.first) + ": " + key.second; }

std::vector<TaskPair> join(const TypicalStep& predicted, const TypicalStep& measured, Comparison& comparison) {
  std::vector<TaskPair> pairs;
  for (const auto& [key, task] : predicted) {
    const auto other = measured.find(key);
    if (other == measured.end()) {
      comparison.only_predicted.push_back(name_of(key));
      continue;
    }
    pairs.push_back(
        {key.first, key.second, task.kind, task.work_s, other->second.work_s, task.wait_s, other->second.wait_s});
  }
  for (const auto& [key, task] : measured) {
    if (!predicted.contains(key)) comparison.only_measured.push_back(name_of(key));
  }
  return pairs;
}

std::vector<KindComparison> sums_by_kind(const std::vector<TaskPair>& pairs) {
  std::map<std::string, KindComparison> by_kind;
  for (const TaskPair& pair : pairs) {
    KindComparison& kind = by_kind[pair.kind];
    kind.kind = pair.kind;
    ++kind.count;
    kind.predicted_s += pair.predicted_s;
    kind.measured_s += pair.measured_s;
    kind.predicted_wait_s += pair.predicted_wait_s;
    kind.measured_wait_s += pair.measured_wait_s;
  }
  std::vector<KindComparison> kinds;
  for (auto& [name, kind] : by_kind) kinds.push_back(std::move(kind));
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.measured_s > b.measured_s; });
  return kinds;
}

std::vector<TaskPair> five_worst(std::vector<TaskPair> pairs) {
  const auto error = [](const TaskPair& pair) { return std::abs(pair.measured_s - pair.predicted_s); };
  std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) { return error(a) > error(b); });
  pairs.resize(std::min<std::size_t>(pairs.size(), 5));
  return pairs;
}

// For each rank, the compute task with the highest memory in steps [first, last]; the first among equals. Empty where
// the memory is unknown.
std::vector<std::string> fullest_tasks(const Trace& trace, int first, int last) {
  std::vector<const TraceRecord*> fullest(static_cast<std::size_t>(trace.ranks));
  for (const TraceRecord& record : trace.records) {
    if (record.step < first || record.step > last || record.lane != "compute" || record.memory_peak_bytes == 0)
      continue;
    const TraceRecord*& most = fullest[record.rank];
    if (most == nullptr || record.memory_peak_bytes > most->memory_peak_bytes) most = &record;
  }
  std::vector<std::string> labels;
  for (const TraceRecord* record : fullest) labels.push_back(record == nullptr ? "" : record->label);
  return labels;
}

std::vector<RankPeak> peaks_of_both(const Trace& predicted, const Trace& measured, int first, int last) {
  const std::vector<double> found = peak_memory(measured, first, last);
  if (predicted.peak_bytes.empty() || found.size() != predicted.peak_bytes.size()) return {};
  const std::vector<std::string> expected_at = fullest_tasks(predicted, 0, predicted.steps),
                                 found_at = fullest_tasks(measured, first, last);
  std::vector<RankPeak> peaks;
  for (std::size_t rank = 0; rank < found.size(); ++rank)
    peaks.push_back(
        {static_cast<int>(rank), predicted.peak_bytes[rank], found[rank], expected_at[rank], found_at[rank]});
  return peaks;
}

// Signed error of a prediction. A measured time of zero has none, unless zero was predicted.
std::string error_text(double error) {
  if (std::isnan(error)) return "0.0 %";
  return std::isinf(error) ? "-" : fmt::format("{:+.1f} %", 100 * error);
}

Description<RankPeak> rank_peak_keys() {
  return Description<RankPeak>()
      .key("rank", "index", "the rank", &RankPeak::rank)
      .column("rank")
      .key("predicted_bytes", "bytes", "peak by the simulated timeline", whole(&RankPeak::predicted_bytes))
      .column("predicted", readable_bytes)
      .key("measured_bytes", "bytes", "peak of its tensors in the counted steps", whole(&RankPeak::measured_bytes))
      .column("measured", readable_bytes)
      .key("error", "share", "predicted_bytes / measured_bytes - 1", &RankPeak::error)
      .column("error", error_text)
      .key("predicted_task", "text",
           "label of the compute task during which the prediction is fullest; empty if unknown",
           &RankPeak::predicted_task)
      .column("predicted in")
      .key("measured_task", "text", "label of the compute task during which the measurement is fullest",
           &RankPeak::measured_task)
      .column("measured in");
}

Description<KindComparison> kind_keys() {
  return Description<KindComparison>()
      .key("kind", "text", "\"forward\", \"backward\", \"all-reduce\", ...", &KindComparison::kind)
      .column("kind")
      .key("count", "count", "joined tasks of this kind, counted once per member rank", &KindComparison::count)
      .column("count", readable_count)
      .key("predicted_s", "s", "sum of predicted work time, without waiting", &KindComparison::predicted_s)
      .column("predicted", readable_seconds)
      .key("measured_s", "s", "sum of measured work time (median over the steps), without waiting",
           &KindComparison::measured_s)
      .column("measured", readable_seconds)
      .key("error", "share", "predicted_s / measured_s - 1; null when nothing was measured", &KindComparison::error)
      .column("error", error_text)
      .key("predicted_wait_s", "s", "sum of predicted waiting for other members", &KindComparison::predicted_wait_s)
      .column("waiting predicted", readable_seconds)
      .key("measured_wait_s", "s", "sum of measured waiting for other members", &KindComparison::measured_wait_s)
      .column("waiting measured", readable_seconds);
}

Description<TaskPair> task_keys() {
  return Description<TaskPair>()
      .key("rank", "number", "the rank whose record it is, from 0", &TaskPair::rank)
      .key("label", "text", "label of the task: \"2F0\", \"2F0.L5.mlp\"", &TaskPair::label)
      .wide_column("task", [](const TaskPair& pair) { return fmt::format("rank {}: {}", pair.rank, pair.label); })
      .key("kind", "text", "as kinds[].kind", &TaskPair::kind)
      .column("kind")
      .key("predicted_s", "s", "predicted work time, without waiting", &TaskPair::predicted_s)
      .column("predicted", readable_seconds)
      .key("measured_s", "s", "measured work time (median over the steps), without waiting", &TaskPair::measured_s)
      .column("measured", readable_seconds)
      .only_column("error", [](const TaskPair& pair) { return error_text(pair.predicted_s / pair.measured_s - 1); });
}

std::string kinds_text(const std::vector<KindComparison>& kinds) {
  return "Work per kind of task (sum over ranks, waiting beside it):\n" + aligned_table(kind_keys().table(kinds), "  ");
}

std::string worst_text(const std::vector<TaskPair>& worst) {
  return "The " + counted(static_cast<std::int64_t>(worst.size()), "task") + " with the largest difference:\n" +
         aligned_table(task_keys().table(worst), "  ");
}

// The fullest ranks by measured memory.
std::string memory_text(std::vector<RankPeak> peaks) {
  constexpr std::size_t most_shown = 8;
  if (peaks.empty()) return "";
  std::stable_sort(peaks.begin(), peaks.end(),
                   [](const RankPeak& a, const RankPeak& b) { return a.measured_bytes > b.measured_bytes; });
  const std::string left_out =
      most_shown < peaks.size() ? " (the fullest " + std::to_string(most_shown) + "; --json has all)" : "";
  peaks.resize(std::min(peaks.size(), most_shown));
  return "Peak memory of tensors per rank" + left_out + ":\n" + aligned_table(rank_peak_keys().table(peaks), "  ") +
         '\n';
}

std::string one_sided_text(const std::string& side, const std::vector<std::string>& tasks) {
  constexpr std::size_t most_shown = 5;
  if (tasks.empty()) return "";
  std::string text = counted(static_cast<std::int64_t>(tasks.size()), "task") + " only in the " + side + " trace: ";
  for (std::size_t i = 0; i < std::min(tasks.size(), most_shown); ++i) text += (i == 0 ? "" : ", ") + tasks[i];
  return text + (tasks.size() > most_shown ? ", ... (--json lists all)\n" : "\n");
}

}  // namespace

std::vector<double> peak_memory(const Trace& measured, int first, int last) {
  std::vector<double> peaks(measured.ranks);
  for (const TraceRecord& record : measured.records) {
    if (record.step < first || record.step > last) continue;
    double& peak = peaks[record.rank];
    peak = std::max(peak, record.memory_peak_bytes);
  }
  const bool known = std::all_of(peaks.begin(), peaks.end(), [](double bytes) { return bytes > 0; });
  return known ? peaks : std::vector<double>();
}

Comparison compare_traces(const Trace& predicted, const Trace& measured) {
  if (predicted.window != measured.window)
    throw std::invalid_argument(
        "the tasks of one trace repeat after " + std::to_string(predicted.window) + " steps, of the other after " +
        std::to_string(measured.window) +
        ": the machine's profile decides how many steps bubble work takes; predict with the profile "
        "that the run was executed with, or execute again with this one");
  const StepTimes expected = step_times(predicted), found = step_times(measured);
  Comparison comparison;
  comparison.predicted_step_s = expected.period_s.back();
  comparison.low_s = predicted.step_low_s, comparison.high_s = predicted.step_high_s;
  comparison.predicted_idle_s = expected.idle_s.back();
  comparison.measured_step_s = found.median_period_s;
  comparison.measured_idle_s = found.median_idle_s;
  comparison.window = predicted.window;
  comparison.predicted_step = expected.last;
  comparison.measured_before = steps_before(measured);
  comparison.first_measured = found.first;
  comparison.last_measured = found.last;
  const std::vector<TaskPair> pairs = join(typical_step(predicted, expected.last + 1 - predicted.window, expected.last),
                                           typical_step(measured, found.first, found.last), comparison);
  if (pairs.empty()) {
    throw std::invalid_argument(
        "the traces have no task (rank, label) in common; compare a prediction and a "
        "measurement of the same scenario");
  }
  comparison.joined = static_cast<std::int64_t>(pairs.size());
  comparison.memory = peaks_of_both(predicted, measured, found.first, found.last);
  comparison.kinds = sums_by_kind(pairs);
  comparison.worst = five_worst(pairs);
  return comparison;
}

const Description<Comparison>& comparison_description() {
  const auto has_interval = [](const Comparison& c) { return c.high_s > 0; };
  static const Description<Comparison> description =
      Description<Comparison>()
          .key("predicted_step_s", "s", "period of the predicted trace's last step", &Comparison::predicted_step_s)
          .key("measured_step_s", "s", "median period of the measured trace's steps", &Comparison::measured_step_s)
          .key("step_error", "share", "predicted_step_s / measured_step_s - 1", &Comparison::step_error)
          .key("step_time_low_s", "s",
               "from here to step_time_high_s 90 of 100 measured runs were expected; present where the prediction has "
               "an interval, like the next two",
               &Comparison::low_s)
          .when(has_interval)
          .key("step_time_high_s", "s", "the other end", &Comparison::high_s)
          .when(has_interval)
          .key("inside", "bool", "measured_step_s is in it", &Comparison::is_inside)
          .when(has_interval)
          .key("window", "count",
               "steps after which tasks repeat (work in the bubbles): kinds and tasks are those of so many steps; "
               "present above 1",
               &Comparison::window)
          .when([](const Comparison& c) { return c.window > 1; })
          .key("predicted_idle_s", "s", "compute lanes without work in one predicted step, mean over ranks",
               &Comparison::predicted_idle_s)
          .key("measured_idle_s", "s", "the same of the measured steps (median step)", &Comparison::measured_idle_s)
          .list("memory", "one object per rank; present when both traces know the ranks' memory", &Comparison::memory,
                rank_peak_keys())
          .when([](const Comparison& c) { return !c.memory.empty(); })
          .list("kinds", "one object per kind of task, largest measured time first; sums are over the joined tasks",
                &Comparison::kinds, kind_keys())
          .list("worst_tasks", "the five tasks with the largest |measured - predicted| work time, largest first",
                &Comparison::worst, task_keys())
          .key("joined", "count", "tasks (rank, label) present in both traces", &Comparison::joined)
          .key("only_predicted", "list", "tasks (\"rank 0: 2F0\") that only the predicted trace has",
               &Comparison::only_predicted)
          .key("only_measured", "list", "tasks that only the measured trace has", &Comparison::only_measured);
  return description;
}

std::vector<std::vector<std::string>> kind_rows(const Comparison& comparison) {
  return kind_keys().table(comparison.kinds);
}

std::vector<std::vector<std::string>> worst_rows(const Comparison& comparison) {
  return task_keys().table(comparison.worst);
}

std::vector<std::vector<std::string>> peak_rows(const Comparison& comparison) {
  return rank_peak_keys().table(comparison.memory);
}

std::string report_text(const Comparison& c) {
  std::string text =
      aligned_table({{"", "predicted", "measured", "error"},
                     {"step time", readable_seconds(c.predicted_step_s), readable_seconds(c.measured_step_s),
                      error_text(c.step_error())},
                     {"waiting", readable_seconds(c.predicted_idle_s), readable_seconds(c.measured_idle_s),
                      error_text(c.predicted_idle_s / c.measured_idle_s - 1)}},
                    "  ");
  if (c.high_s > 0)
    text += fmt::format("  The measured step is {} the 90 % interval of the prediction, {} to {}.\n",
                        c.is_inside() ? "inside" : "outside", readable_seconds(c.low_s), readable_seconds(c.high_s));
  const std::string steps = c.window > 1
                                ? fmt::format("Steps {} to {}", c.predicted_step + 2 - c.window, c.predicted_step + 1)
                                : fmt::format("Step {}", c.predicted_step + 1);
  text += fmt::format(
      "\n{} of the prediction against the median of steps {} to {} of the training, {} joined.\n"
      "Waiting: compute lanes without work in one step, mean over ranks.\n{}\n",
      steps, c.measured_before + c.first_measured + 1, c.measured_before + c.last_measured + 1,
      counted(c.joined, "task"),
      c.window > 1 ? fmt::format("Bubble work and refreshes of inverses run once in {} steps.\n", c.window) : "");
  text += kinds_text(c.kinds) + '\n' + memory_text(c.memory) + worst_text(c.worst);
  const std::string one_sided =
      one_sided_text("predicted", c.only_predicted) + one_sided_text("measured", c.only_measured);
  return one_sided.empty() ? text : text + '\n' + one_sided;
}

}  // namespace slipway::scenarios
