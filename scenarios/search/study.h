// Many variations of scenarios, each simulated: the work of `slipway study`.
//
//   --vary schedule.name=gpipe,1f1b --vary layout.pipeline=4,8       2 × 2 points, the last varies fastest
//   --vary "layout.pipeline=4,8 model.layers=4,8"                    keys that move together: 2 points
//
// Points run in forked workers, one per core. An impossible point (a refused scenario, this machine out of memory) is a
// row with its reason and stops no other. Rows are in the order of the points, so the same study gives the same bytes.
// Guarded by tests/scenarios/study_command_test.cpp.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/predict/basis.h"

namespace slipway::scenarios {

// Keys that move together, with one value of each per point.
struct Variation {
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> values;
};
// Throws UsageError: no such key, a missing value, keys of different lengths.
Variation variation_from(const std::string& option);

struct StudyPoint {
  std::string path;                    // the scenario's
  std::vector<std::string> overrides;  // the common ones, then the varied ones
  std::vector<std::string> values;     // values of the varied keys, in order
};
// All combinations, the last variation fastest.
std::vector<StudyPoint> points_of(const std::vector<std::string>& scenarios, const std::vector<std::string>& overrides,
                                  const std::vector<Variation>& variations);

// The numbers of a point; NaN where one does not apply.
struct StudyMetrics {
  double step_time_s;
  double step_time_low_s, step_time_high_s;  // 90 % interval, as in simulate
  double tokens_per_s, sequences_per_s, mfu, bubble_share, exposed_comm_share;
  double needed_memory_bytes;  // at the pipeline rank nearest to its capacity, by the verdict
  double peak_memory_bytes;    // on the timeline, of the pipeline rank nearest to its capacity there
  double fits;                 // 1 if needed_memory_bytes fit, otherwise 0
  double refresh_steps, utilization_before, utilization, utilization_ceiling, utilization_own_cycles;
  double closed_form_step_time_s, closed_form_memory_bytes;  // Osawa et al. 2022
};
struct StudyRow {
  StudyPoint point;
  std::string error;  // why there are no numbers; empty: there are
  StudyMetrics metrics{};
  Basis basis;  // basis of the numbers
};

// `done` is called after each point with the share done. Once `interrupted` returns true, points under way are dropped.
// Their rows, and those of the points after them, state that they were not simulated.
std::vector<StudyRow> run_study(const std::vector<StudyPoint>& points, int workers,
                                const std::function<void(double)>& done, const std::function<bool()>& interrupted);

// The basis of a point's numbers; empty where its scenario cannot be read any more.
Basis basis_of_point(const StudyPoint& point);

}  // namespace slipway::scenarios
