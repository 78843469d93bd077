// A predicted and a measured trace, joined task by task on (rank, label).
//
// One step stands for each side. Predicted steps are few, alike once periodic; measured ones are many and all differ.
//   predicted   the last step with a successor; in a trace with windows, the last such window
//   measured    per task, the medians of work and waiting over the counted steps (step_times.h: step 0 is warm-up);
//               step time and idle time: the medians over the same steps
// Work time (without waiting for other members) is compared, with waiting beside it. Tasks on one side only are listed,
// never dropped. Memory is compared rank by rank. Guarded by tests/scenarios/compare_command_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/trace/trace.h"
#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

struct TaskPair {
  int rank = 0;
  std::string label, kind;
  double predicted_s = 0, measured_s = 0;  // work
  double predicted_wait_s = 0, measured_wait_s = 0;
};

struct KindComparison {
  std::string kind;
  std::int64_t count = 0;
  double predicted_s = 0, measured_s = 0, predicted_wait_s = 0, measured_wait_s = 0;  // sums
  double error() const { return predicted_s / measured_s - 1; }
};

// The peak memory of a rank's tensors: simulated, and measured in the counted steps.
struct RankPeak {
  int rank = 0;
  double predicted_bytes = 0, measured_bytes = 0;
  std::string predicted_task, measured_task;  // compute task during which it is; empty where the trace does not say
  double error() const { return predicted_bytes / measured_bytes - 1; }
};

struct Comparison {
  double predicted_step_s = 0, measured_step_s = 0;
  double low_s = 0, high_s = 0;  // the prediction's 90 % interval; 0: it has none
  double predicted_idle_s = 0, measured_idle_s = 0;
  int window = 1;  // steps that the predicted tasks span: bubble work occurs once, other tasks in each step
  int predicted_step = 0, first_measured = 0, last_measured = 0;  // the steps that stand for each side
  int measured_before = 0;            // steps of the training before the measured ones (step_times.h)
  std::vector<KindComparison> kinds;  // largest measured time first
  std::vector<TaskPair> worst;        // the five with the largest |measured − predicted|, largest first
  std::vector<RankPeak> memory;       // all ranks; empty where a trace has no memory
  std::int64_t joined = 0;
  std::vector<std::string> only_predicted, only_measured;  // "rank 0: 2F0", in order of rank and label
  double step_error() const { return predicted_step_s / measured_step_s - 1; }
  bool is_inside() const { return low_s <= measured_step_s && measured_step_s <= high_s; }
};

// The peak of each rank in steps [first, last]; empty where it was not measured.
std::vector<double> peak_memory(const Trace& measured, int first, int last);

// Throws std::invalid_argument when the traces have no task in common.
Comparison compare_traces(const Trace& predicted, const Trace& measured);

std::string report_text(const Comparison& comparison);
// Cells of its tables, headings first: work per kind of task, the tasks with the largest difference, peaks of memory.
std::vector<std::vector<std::string>> kind_rows(const Comparison& comparison);
std::vector<std::vector<std::string>> worst_rows(const Comparison& comparison);
std::vector<std::vector<std::string>> peak_rows(const Comparison& comparison);
// The description of --json (scenarios/predict/description.h).
const Description<Comparison>& comparison_description();

}  // namespace slipway::scenarios
