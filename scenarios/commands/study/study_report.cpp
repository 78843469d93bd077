#include <fmt/format.h>

#include <algorithm>
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

namespace {

std::string in_unit(std::string_view unit, double value) {
  if (std::isnan(value)) return "-";
  if (unit == "s") return readable_seconds(value);
  if (unit == "1/s") return value < 1000 ? fmt::format("{:.1f}", value) : readable_count(value);
  if (unit == "0..1") return readable_share(value);
  if (unit == "bytes") return readable_bytes(value);
  if (unit == "bool") return yes_no(value > 0);
  return counted(static_cast<std::int64_t>(std::llround(value)), "step");
}

std::string interval_cell(const StudyRow& row) {
  const std::string low = in_unit("s", row.number("step_time_low_s"));
  return low == "-" ? low : low + " to " + in_unit("s", row.number("step_time_high_s"));
}

class Columns {
 public:
  // The column of a key; `unit` says how it is printed.
  Description<StudyRow>& add(const char* name, const char* heading, const char* unit, const char* meaning) {
    const auto value = [name](const StudyRow& row) -> std::optional<double> {
      const auto found = row.numbers.find(name);
      return found == row.numbers.end() ? std::nullopt : std::optional(found->second);
    };
    if (unit == std::string_view("bool"))
      description_.key(name, unit, meaning, [value](const StudyRow& row) -> std::optional<bool> {
        const std::optional<double> number = value(row);
        return number ? std::optional(*number > 0) : std::nullopt;
      });
    else
      description_.key(name, unit, meaning, value);
    return description_.column(heading, [unit](double number) { return in_unit(unit, number); });
  }
  const Description<StudyRow>& all() const { return description_; }

 private:
  Description<StudyRow> description_;
};

const Description<StudyRow>& numbers() {
  static const Description<StudyRow> description = [] {
    constexpr const char *as_simulated = "as in simulate", *osawa = "of Osawa et al. 2022; present where it has one";
    Columns columns;
    columns.add("step_time_s", "step time", "s", as_simulated);
    columns.add("step_time_low_s", "90 % interval", "s", as_simulated)
        .wide_column("90 % interval", interval_cell)
        .if_any();
    columns.add("step_time_high_s", "its end", "s", as_simulated).if_asked();
    columns.add("tokens_per_s", "tokens/s", "1/s", as_simulated);
    columns.add("sequences_per_s", "sequences/s", "1/s", "global batch / step_time_s");
    columns.add("mfu", "MFU", "0..1", "as in simulate; absent where it is 0");
    columns.add("bubble_share", "bubble", "0..1", as_simulated);
    columns.add("exposed_comm_share", "exposed comm.", "0..1", as_simulated);
    columns.add("needed_memory_bytes", "memory", "bytes",
                "of the pipeline rank that is nearest to its GPU's memory, as fits judges it");
    columns.add("peak_memory_bytes", "timeline", "bytes", "on the timeline, of the pipeline rank that is nearest there")
        .if_asked();
    columns.add("fits", "fits", "bool", as_simulated);
    columns.add("utilization_before", "before", "0..1", as_simulated).if_any();
    columns.add("utilization", "filled", "0..1", as_simulated).if_any();
    columns.add("utilization_ceiling", "ceiling", "0..1", as_simulated).if_any();
    columns.add("refresh_steps", "refresh", "count", as_simulated).if_any();
    columns.add("utilization_own_cycles", "own cycle", "0..1", as_simulated).if_any();
    columns.add("closed_form_step_time_s", "closed-form step", "s", osawa).if_any();
    columns.add("closed_form_memory_bytes", "closed-form memory", "bytes", osawa).if_any();
    return columns.all();
  }();
  return description;
}

struct Point {
  const Study& study;
  const StudyRow& row;
};

std::string scenario_name(const StudyRow& row) { return std::filesystem::path(row.point.path).stem().string(); }

std::map<std::string, std::string> varied(const Point& point) {
  std::map<std::string, std::string> values;
  for (std::size_t i = 0; i < point.study.keys.size(); ++i) values[point.study.keys[i]] = point.row.point.values[i];
  return values;
}

bool has_numbers(const Point& point) { return point.row.error.empty(); }

std::optional<Basis> basis_in(const Point& point) {
  return has_numbers(point) ? std::optional(point.row.basis) : std::nullopt;
}

Description<Point> point_keys() {
  Description<Point> description;
  description.key("scenario", "text", "name of the scenario", [](const Point& p) { return scenario_name(p.row); })
      .key("set", "map", "the varied keys and their values here", varied)
      .key("error", "text", "why there are no values; absent otherwise", [](const Point& p) { return p.row.error; })
      .when([](const Point& p) { return !has_numbers(p); })
      .include(numbers(), [](const Point& p) -> const StudyRow& { return p.row; });
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

const std::vector<StudyColumn>& study_columns() { return numbers().untyped().fields(); }

const StudyColumn* study_column(std::string_view name) {
  for (const StudyColumn& column : study_columns())
    if (column.key.name == name) return &column;
  return nullptr;
}

std::string readable(const StudyColumn& column, double value) { return in_unit(column.key.unit, value); }

std::vector<std::string> labels(const Study& study, const StudyRow& row) {
  std::vector<std::string> cells;
  if (study.scenarios.size() > 1) cells.push_back(std::filesystem::path(row.point.path).stem().string());
  for (const std::size_t key : study.first_keys) cells.push_back(row.point.values[key]);
  return cells;
}

std::vector<std::vector<std::string>> study_rows(const Study& study) {
  const std::vector<std::vector<std::string>> cells = numbers().table(study.rows, study.columns);
  std::vector<std::vector<std::string>> table(1);
  if (study.scenarios.size() > 1) table[0].emplace_back("scenario");
  for (const std::size_t key : study.first_keys) table[0].emplace_back(leaf_of(study.keys[key]));
  for (const StudyRow& row : study.rows) table.push_back(labels(study, row));
  for (std::size_t i = 0; i < table.size(); ++i) table[i].insert(table[i].end(), cells[i].begin(), cells[i].end());
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

std::vector<AnswerKeys> study_answers() { return {{"study --json", description().keys()}}; }

std::string study_json(const Study& study) { return description().text(study); }

std::string study_csv(const Study& study) {
  std::vector<std::string> header{"scenario"};
  header.insert(header.end(), study.keys.begin(), study.keys.end());
  for (const StudyColumn& column : study_columns()) header.push_back(column.key.name);
  header.emplace_back("error");
  std::string text = csv_line(header);
  for (const StudyRow& row : study.rows) {
    std::vector<std::string> cells{scenario_name(row)};
    cells.insert(cells.end(), row.point.values.begin(), row.point.values.end());
    for (const StudyColumn& column : study_columns()) {
      const double value = row.number(column.key.name);
      cells.push_back(std::isnan(value) ? "" : fmt::format("{}", value));
    }
    cells.push_back(row.error);
    text += csv_line(cells);
  }
  return text;
}

}  // namespace slipway::scenarios
