// The answer of `slipway study`: a row per point, as text, CSV and JSON.
//
//   StudyRow ──study_columns()──► name, unit, meaning and heading of each number ──► table, CSV, JSON, bar chart (plot.h)
//
// Guarded by tests/scenarios/study_command_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/predict/description.h"
#include "scenarios/search/study.h"

namespace slipway::scenarios {

// The numbers of a row.
using StudyColumn = UntypedDescription::Field;
const std::vector<StudyColumn>& study_columns();
const StudyColumn* study_column(std::string_view name);
// "1.31 s", "12.5 %", by the unit of the column; "-" for NaN.
std::string readable(const StudyColumn& column, double value);

struct Study {
  std::vector<std::string> scenarios;
  std::vector<std::string> keys;        // varied, in order
  std::vector<std::size_t> first_keys;  // indices in `keys`: the first key of each variation, which tables show
  std::vector<StudyRow> rows;
  std::vector<std::string> columns;  // names of columns of the text; empty: all that some point has
};
// The table of the text, headings first.
std::vector<std::vector<std::string>> study_rows(const Study& study);
// The values in which a row differs from the others, and the scenario's name where there are several.
std::vector<std::string> labels(const Study& study, const StudyRow& row);
std::string study_text(const Study& study);
std::string study_csv(const Study& study);
std::string study_json(const Study& study);

// The keys of its --json.
std::vector<AnswerKeys> study_answers();

}  // namespace slipway::scenarios
