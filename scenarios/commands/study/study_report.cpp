#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/study/study_report.h"
#include "scenarios/files/csv.h"
#include "scenarios/language/keys.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"
#include "scenarios/search/study.h"

namespace slipway::scenarios {

std::span<const StudyMetric> study_metrics() {
  using F = StudyMetrics;
  using enum MetricKind;
  constexpr Shown always = Shown::always, where_present = Shown::where_present;
  static constexpr std::array metrics{
      StudyMetric{"step_time_s", "step time", "as in simulate", seconds, always, &F::step_time_s},
      StudyMetric{"step_time_low_s", "90 % interval", "as in simulate", seconds, where_present, &F::step_time_low_s,
                  &F::step_time_high_s},
      StudyMetric{"step_time_high_s", "its end", "as in simulate", seconds, Shown::when_asked, &F::step_time_high_s},
      StudyMetric{"tokens_per_s", "tokens/s", "as in simulate", rate, always, &F::tokens_per_s},
      StudyMetric{"sequences_per_s", "sequences/s", "global batch / step_time_s", rate, always, &F::sequences_per_s},
      StudyMetric{"mfu", "MFU", "as in simulate; absent where it is 0", share, always, &F::mfu},
      StudyMetric{"bubble_share", "bubble", "as in simulate", share, always, &F::bubble_share},
      StudyMetric{"exposed_comm_share", "exposed comm.", "as in simulate", share, always, &F::exposed_comm_share},
      StudyMetric{"needed_memory_bytes", "memory",
                  "of the pipeline rank that is nearest to its GPU's memory, as fits judges it", bytes, always,
                  &F::needed_memory_bytes},
      StudyMetric{"peak_memory_bytes", "timeline", "on the timeline, of the pipeline rank that is nearest there", bytes,
                  Shown::when_asked, &F::peak_memory_bytes},
      StudyMetric{"fits", "fits", "as in simulate", flag, always, &F::fits},
      StudyMetric{"utilization_before", "before", "as in simulate", share, where_present, &F::utilization_before},
      StudyMetric{"utilization", "filled", "as in simulate", share, where_present, &F::utilization},
      StudyMetric{"utilization_ceiling", "ceiling", "as in simulate", share, where_present, &F::utilization_ceiling},
      StudyMetric{"refresh_steps", "refresh", "as in simulate", count, where_present, &F::refresh_steps},
      StudyMetric{"utilization_own_cycles", "own cycle", "as in simulate", share, where_present,
                  &F::utilization_own_cycles},
      StudyMetric{"closed_form_step_time_s", "closed-form step", "of Osawa et al. 2022; present where it has one",
                  seconds, where_present, &F::closed_form_step_time_s},
      StudyMetric{"closed_form_memory_bytes", "closed-form memory", "of Osawa et al. 2022; present where it has one",
                  bytes, where_present, &F::closed_form_memory_bytes},
  };
  return metrics;
}

const StudyMetric* metric_named(std::string_view name) {
  for (const StudyMetric& metric : study_metrics())
    if (metric.name == name) return &metric;
  return nullptr;
}

std::string readable(const StudyMetric& metric, double value) {
  if (std::isnan(value)) return "-";
  switch (metric.kind) {
    case MetricKind::seconds:
      return readable_seconds(value);
    case MetricKind::rate:
      return value < 1000 ? fmt::format("{:.1f}", value) : readable_count(value);
    case MetricKind::share:
      return readable_share(value);
    case MetricKind::bytes:
      return readable_bytes(value);
    case MetricKind::flag:
      return yes_no(value > 0);
    case MetricKind::count:
      break;
  }
  return counted(static_cast<std::int64_t>(std::llround(value)), "step");
}

std::string readable(const StudyMetric& metric, const StudyMetrics& metrics) {
  const std::string text = readable(metric, metrics.*metric.value);
  const bool has_end = metric.to != nullptr && !std::isnan(metrics.*metric.to);
  return has_end ? text + " to " + readable(metric, metrics.*metric.to) : text;
}

namespace {

bool is_shown(const Study& study, const StudyMetric& metric) {
  if (!study.columns.empty())
    return std::find(study.columns.begin(), study.columns.end(), &metric) != study.columns.end();
  if (metric.shown != Shown::where_present) return metric.shown == Shown::always;
  for (const StudyRow& row : study.rows)
    if (row.error.empty() && !std::isnan(row.metrics.*metric.value)) return true;
  return false;
}

}  // namespace

std::vector<std::string> labels(const Study& study, const StudyRow& row) {
  std::vector<std::string> cells;
  if (study.scenarios.size() > 1) cells.push_back(std::filesystem::path(row.point.path).stem().string());
  for (const std::size_t key : study.first_keys) cells.push_back(row.point.values[key]);
  return cells;
}

std::vector<std::vector<std::string>> study_rows(const Study& study) {
  std::vector<std::vector<std::string>> table(1);
  if (study.scenarios.size() > 1) table[0].emplace_back("scenario");
  for (const std::size_t key : study.first_keys) table[0].emplace_back(leaf_of(study.keys[key]));
  for (const StudyMetric& metric : study_metrics())
    if (is_shown(study, metric)) table[0].emplace_back(metric.heading);
  for (const StudyRow& row : study.rows) {
    std::vector<std::string>& cells = table.emplace_back(labels(study, row));
    for (const StudyMetric& metric : study_metrics())
      if (is_shown(study, metric)) cells.push_back(row.error.empty() ? readable(metric, row.metrics) : "-");
  }
  return table;
}

std::string study_text(const Study& study) {
  std::string reasons;
  for (const StudyRow& row : study.rows) {
    std::string name;
    for (const std::string& cell : labels(study, row)) name += (name.empty() ? "" : ", ") + cell;
    if (!row.error.empty()) reasons += "  " + (name.empty() ? row.point.path : name) + ": " + row.error + "\n";
  }
  std::string text = aligned_table(study_rows(study));
  std::vector<Basis> bases;
  for (const StudyRow& row : study.rows)
    if (row.error.empty()) bases.push_back(row.basis);
  text += empty_line_first(basis_text(bases, "point"));
  if (!reasons.empty()) text += "\nWithout results:\n" + reasons;
  return text;
}

namespace {

struct Point {
  const Study& study;
  const StudyRow& row;
};

const char* unit_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::seconds:
      return "s";
    case MetricKind::rate:
      return "1/s";
    case MetricKind::share:
      return "0..1";
    case MetricKind::bytes:
      return "bytes";
    case MetricKind::flag:
      return "bool";
    case MetricKind::count:
      break;
  }
  return "count";
}

std::string scenario_name(const StudyRow& row) { return std::filesystem::path(row.point.path).stem().string(); }

std::map<std::string, std::string> varied(const Point& point) {
  std::map<std::string, std::string> values;
  for (std::size_t i = 0; i < point.study.keys.size(); ++i) values[point.study.keys[i]] = point.row.point.values[i];
  return values;
}

bool has_metrics(const Point& point) { return point.row.error.empty(); }

std::optional<Basis> basis_in(const Point& point) {
  return has_metrics(point) ? std::optional(point.row.basis) : std::nullopt;
}

Description<Point> point_keys() {
  Description<Point> description;
  description.key("scenario", "text", "name of the scenario", [](const Point& p) { return scenario_name(p.row); })
      .key("set", "map", "the varied keys and their values here", varied)
      .key("error", "text", "why there are no values; absent otherwise", [](const Point& p) { return p.row.error; })
      .when([](const Point& p) { return !has_metrics(p); });
  for (const StudyMetric& metric : study_metrics())
    description
        .key(std::string(metric.name), unit_of(metric.kind), std::string(metric.meaning),
             [&metric](const Point& p) {
               const double value = p.row.metrics.*metric.value;
               return metric.kind == MetricKind::flag ? nlohmann::json(value > 0) : nlohmann::json(value);
             })
        .when([&metric](const Point& p) { return has_metrics(p) && !std::isnan(p.row.metrics.*metric.value); });
  return description.include(basis_keys(), basis_in);
}

std::vector<Point> points_in(const Study& study) {
  std::vector<Point> points;
  for (const StudyRow& row : study.rows) points.push_back({study, row});
  return points;
}

const Description<Study>& description() {
  static const Description<Study> description =
      Description<Study>()
          .key("varied", "list", "keys that take several values, in the order of --vary", &Study::keys)
          .list("points", "all combinations, the last key fastest; keys without a value at a point are absent",
                points_in, point_keys());
  return description;
}

}  // namespace

std::vector<AnswerKeys> study_answers() { return {{"study --json", description().keys()}}; }

std::string study_json(const Study& study) { return description().text(study); }

std::string study_csv(const Study& study) {
  std::vector<std::string> header{"scenario"};
  header.insert(header.end(), study.keys.begin(), study.keys.end());
  for (const StudyMetric& metric : study_metrics()) header.emplace_back(metric.name);
  header.emplace_back("error");
  std::string text = csv_line(header);
  for (const StudyRow& row : study.rows) {
    std::vector<std::string> cells{scenario_name(row)};
    cells.insert(cells.end(), row.point.values.begin(), row.point.values.end());
    for (const StudyMetric& metric : study_metrics()) {
      const double value = row.metrics.*metric.value;
      cells.push_back(!row.error.empty() || std::isnan(value) ? "" : fmt::format("{}", value));
    }
    cells.push_back(row.error);
    text += csv_line(cells);
  }
  return text;
}

}  // namespace slipway::scenarios
