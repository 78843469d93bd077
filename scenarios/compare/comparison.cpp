#include "scenarios/compare/comparison.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "scenarios/answers/json_summary.h"
#include "scenarios/answers/readable.h"
#include "scenarios/answers/step_times.h"

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
  for (const TraceRecord& record : trace.records) {
    if (record.step < first || record.step > last) continue;
    Samples& task = samples[{record.rank, record.label}];
    task.kind = record.kind;
    task.work.push_back(work_seconds(record));
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
        ": work in the bubbles takes as many steps as the machine's profile says; predict with the one "
        "that the run was executed with, or execute again with this one");
  const StepTimes expected = step_times(predicted), found = step_times(measured);
  Comparison comparison;
  comparison.predicted_step_s = expected.period_s.back();
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

namespace {

// Signed error of a prediction; empty for a measured time of zero.
std::string error_text(double predicted, double measured) {
  if (measured == 0) return predicted == 0 ? "0.0 %" : "-";
  return fmt::format("{:+.1f} %", 100 * (predicted / measured - 1));
}

std::string kinds_text(const std::vector<KindComparison>& kinds) {
  std::vector<std::vector<std::string>> rows{
      {"kind", "count", "predicted", "measured", "error", "waiting predicted", "waiting measured"}};
  for (const KindComparison& kind : kinds) {
    rows.push_back({kind.kind, readable_count(static_cast<double>(kind.count)), readable_seconds(kind.predicted_s),
                    readable_seconds(kind.measured_s), error_text(kind.predicted_s, kind.measured_s),
                    readable_seconds(kind.predicted_wait_s), readable_seconds(kind.measured_wait_s)});
  }
  return "Work per kind of task (sum over ranks, waiting beside it):\n" + aligned_table(rows, "  ");
}

std::string worst_text(const std::vector<TaskPair>& worst) {
  std::vector<std::vector<std::string>> rows{{"task", "kind", "predicted", "measured", "error"}};
  for (const TaskPair& pair : worst) {
    rows.push_back({fmt::format("rank {}: {}", pair.rank, pair.label), pair.kind, readable_seconds(pair.predicted_s),
                    readable_seconds(pair.measured_s), error_text(pair.predicted_s, pair.measured_s)});
  }
  return "The " + counted(static_cast<std::int64_t>(worst.size()), "task") + " with the largest difference:\n" +
         aligned_table(rows, "  ");
}

// The fullest ranks by measured memory.
std::string memory_text(std::vector<RankPeak> peaks) {
  constexpr std::size_t most_shown = 8;
  if (peaks.empty()) return "";
  std::stable_sort(peaks.begin(), peaks.end(),
                   [](const RankPeak& a, const RankPeak& b) { return a.measured_bytes > b.measured_bytes; });
  const std::size_t shown = std::min(peaks.size(), most_shown);
  std::vector<std::vector<std::string>> rows{{"rank", "predicted", "measured", "error", "predicted in", "measured in"}};
  for (std::size_t i = 0; i < shown; ++i)
    rows.push_back({std::to_string(peaks[i].rank), readable_bytes(peaks[i].predicted_bytes),
                    readable_bytes(peaks[i].measured_bytes),
                    error_text(peaks[i].predicted_bytes, peaks[i].measured_bytes), peaks[i].predicted_task,
                    peaks[i].measured_task});
  const std::string left_out =
      shown < peaks.size() ? " (the fullest " + std::to_string(shown) + "; --json has all)" : "";
  return "Peak memory of tensors per rank" + left_out + ":\n" + aligned_table(rows, "  ") + '\n';
}

std::string one_sided_text(const std::string& side, const std::vector<std::string>& tasks) {
  constexpr std::size_t most_shown = 5;
  if (tasks.empty()) return "";
  std::string text = counted(static_cast<std::int64_t>(tasks.size()), "task") + " only in the " + side + " trace: ";
  for (std::size_t i = 0; i < std::min(tasks.size(), most_shown); ++i) text += (i == 0 ? "" : ", ") + tasks[i];
  return text + (tasks.size() > most_shown ? ", ... (--json lists all)\n" : "\n");
}

}  // namespace

std::string report_text(const Comparison& c) {
  std::string text =
      aligned_table({{"", "predicted", "measured", "error"},
                     {"step time", readable_seconds(c.predicted_step_s), readable_seconds(c.measured_step_s),
                      error_text(c.predicted_step_s, c.measured_step_s)},
                     {"waiting", readable_seconds(c.predicted_idle_s), readable_seconds(c.measured_idle_s),
                      error_text(c.predicted_idle_s, c.measured_idle_s)}},
                    "  ");
  const std::string steps = c.window > 1
                                ? fmt::format("Steps {} to {}", c.predicted_step + 2 - c.window, c.predicted_step + 1)
                                : fmt::format("Step {}", c.predicted_step + 1);
  text += fmt::format(
      "\n{} of the prediction against the median of steps {} to {} of the training, {} joined.\n"
      "Waiting: compute lanes without work in one step, mean over ranks.\n{}\n",
      steps, c.measured_before + c.first_measured + 1, c.measured_before + c.last_measured + 1,
      counted(c.joined, "task"),
      c.window > 1 ? fmt::format("What fills the bubbles, and refreshes inverses, runs once in {} steps.\n", c.window)
                   : "");
  text += kinds_text(c.kinds) + '\n' + memory_text(c.memory) + worst_text(c.worst);
  const std::string one_sided =
      one_sided_text("predicted", c.only_predicted) + one_sided_text("measured", c.only_measured);
  return one_sided.empty() ? text : text + '\n' + one_sided;
}

std::string json_text(const Comparison& c) {
  JsonSummary json(compare_json_keys());
  json.set("predicted_step_s", c.predicted_step_s);
  json.set("measured_step_s", c.measured_step_s);
  json.set("step_error", c.step_error());
  if (c.window > 1) json.set("window", c.window);
  json.set("predicted_idle_s", c.predicted_idle_s);
  json.set("measured_idle_s", c.measured_idle_s);
  nlohmann::json kinds = nlohmann::json::array(), worst = nlohmann::json::array();
  for (const KindComparison& kind : c.kinds) {
    kinds.push_back({{"kind", kind.kind},
                     {"count", kind.count},
                     {"predicted_s", kind.predicted_s},
                     {"measured_s", kind.measured_s},
                     {"error", kind.predicted_s / kind.measured_s - 1},
                     {"predicted_wait_s", kind.predicted_wait_s},
                     {"measured_wait_s", kind.measured_wait_s}});
  }
  for (const TaskPair& pair : c.worst) {
    worst.push_back({{"rank", pair.rank},
                     {"label", pair.label},
                     {"kind", pair.kind},
                     {"predicted_s", pair.predicted_s},
                     {"measured_s", pair.measured_s}});
  }
  if (!c.memory.empty()) {
    nlohmann::json memory = nlohmann::json::array();
    for (const RankPeak& peak : c.memory)
      memory.push_back({{"rank", peak.rank},
                        {"predicted_bytes", std::llround(peak.predicted_bytes)},
                        {"measured_bytes", std::llround(peak.measured_bytes)},
                        {"error", peak.predicted_bytes / peak.measured_bytes - 1},
                        {"predicted_task", peak.predicted_task},
                        {"measured_task", peak.measured_task}});
    json.set("memory", memory);
  }
  json.set("kinds", kinds);
  json.set("worst_tasks", worst);
  json.set("joined", c.joined);
  json.set("only_predicted", c.only_predicted);
  json.set("only_measured", c.only_measured);
  return json.text();
}

}  // namespace slipway::scenarios
