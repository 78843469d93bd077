#include "scenarios/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "scenarios/step_times.h"

namespace slipway {
namespace {

// One task of the step that stands for a trace.
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

std::vector<TaskPair> join(const TypicalStep& predicted, const TypicalStep& measured,
                           Comparison& comparison) {
  std::vector<TaskPair> pairs;
  for (const auto& [key, task] : predicted) {
    const auto other = measured.find(key);
    if (other == measured.end()) {
      comparison.only_predicted.push_back(name_of(key));
      continue;
    }
    pairs.push_back({key.first, key.second, task.kind, task.work_s, other->second.work_s, task.wait_s,
                     other->second.wait_s});
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
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](const auto& a, const auto& b) { return error(a) > error(b); });
  pairs.resize(std::min<std::size_t>(pairs.size(), 5));
  return pairs;
}

// Of every rank, the compute task in steps [first, last] during which most is taken, the first of equals; empty where no
// memory is known.
std::vector<std::string> fullest_tasks(const Trace& trace, int first, int last) {
  std::vector<const TraceRecord*> fullest(static_cast<std::size_t>(trace.ranks));
  for (const TraceRecord& record : trace.records) {
    if (record.step < first || record.step > last || record.lane != "compute" || record.memory_peak_bytes == 0) continue;
    const TraceRecord*& most = fullest[static_cast<std::size_t>(record.rank)];
    if (most == nullptr || record.memory_peak_bytes > most->memory_peak_bytes) most = &record;
  }
  std::vector<std::string> labels;
  for (const TraceRecord* record : fullest) labels.push_back(record == nullptr ? "" : record->label);
  return labels;
}

std::vector<RankPeak> peaks_of_both(const Trace& predicted, const Trace& measured, int first, int last) {
  const std::vector<double> found = peak_memory(measured, first, last);
  if (predicted.peak_bytes.empty() || found.size() != predicted.peak_bytes.size()) return {};
  const std::vector<std::string> expected_at = fullest_tasks(predicted, 0, predicted.steps), found_at = fullest_tasks(measured, first, last);
  std::vector<RankPeak> peaks;
  for (std::size_t rank = 0; rank < found.size(); ++rank)
    peaks.push_back({static_cast<int>(rank), predicted.peak_bytes[rank], found[rank], expected_at[rank], found_at[rank]});
  return peaks;
}

}  // namespace

std::vector<double> peak_memory(const Trace& measured, int first, int last) {
  std::vector<double> peaks(static_cast<std::size_t>(measured.ranks));
  for (const TraceRecord& record : measured.records) {
    if (record.step < first || record.step > last) continue;
    double& peak = peaks[static_cast<std::size_t>(record.rank)];
    peak = std::max(peak, record.memory_peak_bytes);
  }
  const bool known = std::all_of(peaks.begin(), peaks.end(), [](double bytes) { return bytes > 0; });
  return known ? peaks : std::vector<double>();
}

Comparison compare_traces(const Trace& predicted, const Trace& measured) {
  if (predicted.window != measured.window)
    throw std::invalid_argument("the tasks of one trace repeat after " + std::to_string(predicted.window) +
                                " steps, of the other after " + std::to_string(measured.window) +
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

}  // namespace slipway
