#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "scenarios/comparison.h"
#include "scenarios/json_summary.h"
#include "scenarios/readable.h"

namespace slipway {
namespace {

// Signed error of a prediction; a measured time of zero has none.
std::string error_text(double predicted, double measured) {
  if (measured == 0) return predicted == 0 ? "0.0 %" : "-";
  return fmt::format("{:+.1f} %", 100 * (predicted / measured - 1));
}

std::string kinds_text(const std::vector<KindComparison>& kinds) {
  std::vector<std::vector<std::string>> rows{
      {"kind", "count", "predicted", "measured", "error", "waiting predicted", "waiting measured"}};
  for (const KindComparison& kind : kinds) {
    rows.push_back({kind.kind, readable_count(static_cast<double>(kind.count)),
                    readable_seconds(kind.predicted_s), readable_seconds(kind.measured_s),
                    error_text(kind.predicted_s, kind.measured_s), readable_seconds(kind.predicted_wait_s),
                    readable_seconds(kind.measured_wait_s)});
  }
  return "Work per kind of task (sum over ranks, waiting beside it):\n" + aligned_table(rows, "  ");
}

std::string worst_text(const std::vector<TaskPair>& worst) {
  std::vector<std::vector<std::string>> rows{{"task", "kind", "predicted", "measured", "error"}};
  for (const TaskPair& pair : worst) {
    rows.push_back({fmt::format("rank {}: {}", pair.rank, pair.label), pair.kind,
                    readable_seconds(pair.predicted_s), readable_seconds(pair.measured_s),
                    error_text(pair.predicted_s, pair.measured_s)});
  }
  return "The " + counted(static_cast<std::int64_t>(worst.size()), "task") +
         " with the largest difference:\n" + aligned_table(rows, "  ");
}

// The fullest ranks, by what was measured.
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
  const std::string left_out = shown < peaks.size() ? " (the fullest " + std::to_string(shown) + "; --json has all)" : "";
  return "Peak memory of tensors per rank" + left_out + ":\n" + aligned_table(rows, "  ") + '\n';
}

std::string one_sided_text(const std::string& side, const std::vector<std::string>& tasks) {
  constexpr std::size_t most_shown = 5;
  if (tasks.empty()) return "";
  std::string text =
      counted(static_cast<std::int64_t>(tasks.size()), "task") + " only in the " + side + " trace: ";
  for (std::size_t i = 0; i < std::min(tasks.size(), most_shown); ++i)
    text += (i == 0 ? "" : ", ") + tasks[i];
  return text + (tasks.size() > most_shown ? ", ... (--json lists all)\n" : "\n");
}

}  // namespace

std::string report_text(const Comparison& c) {
  std::string text = aligned_table(
      {{"", "predicted", "measured", "error"},
       {"step time", readable_seconds(c.predicted_step_s), readable_seconds(c.measured_step_s),
        error_text(c.predicted_step_s, c.measured_step_s)},
       {"waiting", readable_seconds(c.predicted_idle_s), readable_seconds(c.measured_idle_s),
        error_text(c.predicted_idle_s, c.measured_idle_s)}},
      "  ");
  const std::string steps = c.window > 1 ? fmt::format("Steps {} to {}", c.predicted_step + 2 - c.window, c.predicted_step + 1)
                                         : fmt::format("Step {}", c.predicted_step + 1);
  text += fmt::format(
      "\n{} of the prediction against the median of steps {} to {} of the training, {} joined.\n"
      "Waiting: compute lanes without work in one step, mean over ranks.\n{}\n",
      steps, c.measured_before + c.first_measured + 1, c.measured_before + c.last_measured + 1, counted(c.joined, "task"),
      c.window > 1 ? fmt::format("What fills the bubbles, and refreshes inverses, runs once in {} steps.\n", c.window) : "");
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

}  // namespace slipway
