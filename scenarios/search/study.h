// Many variations of scenarios, each simulated: two varied keys of two values are 2 × 2 points, of which the last varies
// fastest, and two keys that move together are 2 points.
//
// Points run in forked workers, one per core. An impossible point (a refused scenario, this machine out of memory) is a
// row with its reason and stops no other. Rows are in the order of the points, so the same study gives the same bytes.
// Guarded by tests/scenarios/study_command_test.cpp.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/predict/basis.h"

namespace slipway::scenarios {

// Keys that move together, with one value of each per point.
struct VariedKeys {
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> values;
};

struct StudyPoint {
  std::string path;                    // the scenario's
  std::vector<std::string> overrides;  // the common ones, then the varied ones
  std::vector<std::string> values;     // values of the varied keys, in order
};
// All combinations, the last variation fastest.
std::vector<StudyPoint> points_of(const std::vector<std::string>& scenarios, const std::vector<std::string>& overrides,
                                  const std::vector<VariedKeys>& variations);

struct StudyRow {
  StudyPoint point;
  std::string error;  // why there are no numbers; empty: there are
  // By the names of study --json (scenarios/commands/study/study_report.cpp says what they mean); true is 1. What does not
  // apply to a point is not there.
  std::map<std::string, double, std::less<>> numbers;
  Basis basis;                                 // basis of the numbers
  double number(std::string_view name) const;  // NaN: it is not there
};

// `done` is called after each point with the share done. Once `interrupted` returns true, points under way are dropped.
// Their rows, and those of the points after them, state that they were not simulated.
std::vector<StudyRow> run_study(const std::vector<StudyPoint>& points, int workers,
                                const std::function<void(double)>& done, const std::function<bool()>& interrupted);

// The basis of a point's numbers; empty where its scenario cannot be read any more.
Basis basis_of_point(const StudyPoint& point);

}  // namespace slipway::scenarios
