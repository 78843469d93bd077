#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "scenarios/answers/json_summary.h"
#include "scenarios/answers/readable.h"
#include "scenarios/language/keys.h"
#include "scenarios/study/study.h"
#include "scenarios/tables/csv.h"

namespace slipway::scenarios {

std::span<const StudyFigure> study_figures() {
  using F = StudyFigures;
  using enum FigureKind;
  static constexpr std::array figures{
      StudyFigure{"step_time_s", "step time", seconds, Shown::always, &F::step_time_s},
      StudyFigure{"tokens_per_s", "tokens/s", rate, Shown::always, &F::tokens_per_s},
      StudyFigure{"sequences_per_s", "sequences/s", rate, Shown::always, &F::sequences_per_s},
      StudyFigure{"mfu", "MFU", share, Shown::always, &F::mfu},
      StudyFigure{"bubble_share", "bubble", share, Shown::always, &F::bubble_share},
      StudyFigure{"exposed_comm_share", "exposed comm.", share, Shown::always, &F::exposed_comm_share},
      StudyFigure{"needed_memory_bytes", "memory", bytes, Shown::always, &F::needed_memory_bytes},
      StudyFigure{"peak_memory_bytes", "timeline", bytes, Shown::when_asked, &F::peak_memory_bytes},
      StudyFigure{"fits", "fits", flag, Shown::always, &F::fits},
      StudyFigure{"utilization_before", "before", share, Shown::where_present, &F::utilization_before},
      StudyFigure{"utilization", "filled", share, Shown::where_present, &F::utilization},
      StudyFigure{"utilization_ceiling", "ceiling", share, Shown::where_present, &F::utilization_ceiling},
      StudyFigure{"refresh_steps", "refresh", count, Shown::where_present, &F::refresh_steps},
      StudyFigure{"utilization_own_cycles", "own cycle", share, Shown::where_present, &F::utilization_own_cycles},
      StudyFigure{"closed_form_step_time_s", "closed-form step", seconds, Shown::where_present,
                  &F::closed_form_step_time_s},
      StudyFigure{"closed_form_memory_bytes", "closed-form memory", bytes, Shown::where_present,
                  &F::closed_form_memory_bytes},
  };
  return figures;
}

const StudyFigure* figure_named(std::string_view name) {
  for (const StudyFigure& figure : study_figures())
    if (figure.name == name) return &figure;
  return nullptr;
}

std::string readable(const StudyFigure& figure, double value) {
  if (std::isnan(value)) return "-";
  switch (figure.kind) {
    case FigureKind::seconds:
      return readable_seconds(value);
    case FigureKind::rate:
      return value < 1000 ? fmt::format("{:.1f}", value) : readable_count(value);
    case FigureKind::share:
      return readable_share(value);
    case FigureKind::bytes:
      return readable_bytes(value);
    case FigureKind::flag:
      return value > 0 ? "yes" : "no";
    case FigureKind::count:
      break;
  }
  return counted(static_cast<std::int64_t>(std::llround(value)), "step");
}

namespace {

std::vector<std::string> labels(const Study& study, const StudyRow& row) {
  std::vector<std::string> cells;
  if (study.scenarios.size() > 1) cells.push_back(std::filesystem::path(row.point.path).stem().string());
  for (const std::size_t key : study.first_keys) cells.push_back(row.point.values[key]);
  return cells;
}

bool is_shown(const Study& study, const StudyFigure& figure) {
  if (!study.columns.empty())
    return std::find(study.columns.begin(), study.columns.end(), &figure) != study.columns.end();
  if (figure.shown != Shown::where_present) return figure.shown == Shown::always;
  for (const StudyRow& row : study.rows)
    if (row.error.empty() && !std::isnan(row.figures.*figure.value)) return true;
  return false;
}

}  // namespace

std::string study_text(const Study& study) {
  std::vector<std::vector<std::string>> table(1);
  if (study.scenarios.size() > 1) table[0].emplace_back("scenario");
  for (const std::size_t key : study.first_keys) table[0].emplace_back(leaf_of(study.keys[key]));
  for (const StudyFigure& figure : study_figures())
    if (is_shown(study, figure)) table[0].emplace_back(figure.heading);
  std::string reasons;
  for (const StudyRow& row : study.rows) {
    std::vector<std::string>& cells = table.emplace_back(labels(study, row));
    std::string name;
    for (const std::string& cell : cells) name += (name.empty() ? "" : ", ") + cell;
    if (!row.error.empty()) reasons += "  " + (name.empty() ? row.point.path : name) + ": " + row.error + "\n";
    for (const StudyFigure& figure : study_figures())
      if (is_shown(study, figure))
        cells.push_back(row.error.empty() ? readable(figure, row.figures.*figure.value) : "-");
  }
  std::string text = aligned_table(table);
  std::vector<Basis> bases;
  for (const StudyRow& row : study.rows)
    if (row.error.empty()) bases.push_back(row.basis);
  text += empty_line_first(basis_text(bases, "point"));
  if (!reasons.empty()) text += "\nWithout figures:\n" + reasons;
  return text;
}

std::string study_json(const Study& study) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const StudyRow& row : study.rows) {
    nlohmann::ordered_json point{{"scenario", std::filesystem::path(row.point.path).stem().string()},
                                 {"set", nlohmann::ordered_json::object()}};
    for (std::size_t i = 0; i < study.keys.size(); ++i) point["set"][study.keys[i]] = row.point.values[i];
    if (!row.error.empty()) point["error"] = row.error;
    if (row.error.empty()) point.update(nlohmann::ordered_json(basis_json(row.basis)));
    for (const StudyFigure& figure : study_figures())
      if (const double value = row.figures.*figure.value; row.error.empty() && !std::isnan(value)) {
        if (figure.kind == FigureKind::flag)
          point[std::string(figure.name)] = value > 0;
        else
          point[std::string(figure.name)] = value;
      }
    points.push_back(std::move(point));
  }
  JsonSummary json(study_json_keys());
  json.set("varied", study.keys);
  json.set("points", nlohmann::json(points));
  return json.text();
}

std::string study_csv(const Study& study) {
  std::vector<std::string> header{"scenario"};
  header.insert(header.end(), study.keys.begin(), study.keys.end());
  for (const StudyFigure& figure : study_figures()) header.emplace_back(figure.name);
  header.emplace_back("error");
  std::string text = csv_line(header);
  for (const StudyRow& row : study.rows) {
    std::vector<std::string> cells{std::filesystem::path(row.point.path).stem().string()};
    cells.insert(cells.end(), row.point.values.begin(), row.point.values.end());
    for (const StudyFigure& figure : study_figures()) {
      const double value = row.figures.*figure.value;
      cells.push_back(!row.error.empty() || std::isnan(value) ? "" : fmt::format("{}", value));
    }
    cells.push_back(row.error);
    text += csv_line(cells);
  }
  return text;
}

}  // namespace slipway::scenarios
