// The answer of `slipway study`: a row per point, as text, CSV and JSON.
//
//   StudyRow ──study_metrics()──► columns: name, heading, unit of each figure ──► table, CSV, JSON, bar chart (plot.h)
//
// Guarded by tests/scenarios/study_command_test.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/predict/answer_keys.h"
#include "scenarios/search/study.h"

namespace slipway::scenarios {

enum class MetricKind : unsigned char { seconds, rate, share, bytes, flag, count };
enum class Shown : unsigned char { always, where_present, when_asked };  // in the table
struct StudyMetric {
  std::string_view name;     // column of the CSV, as in simulate --json
  std::string_view heading;  // column of the table
  std::string_view meaning;
  MetricKind kind;
  Shown shown;
  double StudyMetrics::*value;
  double StudyMetrics::*to = nullptr;  // the other end of an interval, whose column shows both
};
std::span<const StudyMetric> study_metrics();
const StudyMetric* metric_named(std::string_view name);
std::string readable(const StudyMetric& metric, double value);
std::string readable(const StudyMetric& metric, const StudyMetrics& metrics);

struct Study {
  std::vector<std::string> scenarios;
  std::vector<std::string> keys;        // varied, in order
  std::vector<std::size_t> first_keys;  // indices in `keys`: the first key of each variation, which tables show
  std::vector<StudyRow> rows;
  std::vector<const StudyMetric*> columns;  // columns of the text; empty: all that some point has
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
