// `slipway execute` as data: refusals before anything starts, and the measured run as numbers, as text and as JSON.
// Guarded by tests/scenarios/execute_command_test.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/commands/compare/batch_report.h"
#include "scenarios/commands/compare/comparison.h"
#include "scenarios/predict/answer_keys.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/step_times.h"

namespace slipway::scenarios {

// Throws UsageError with the features that the executor cannot run (exec/run/executable.h).
void refuse_what_cannot_run(const Scenario& scenario);
// Throws UsageError where segments cannot be recorded as CUDA graphs.
void refuse_graphs(const PreparedStep& prepared);
// Throws UsageError with a table when a rank needs more memory than its machine has.
void refuse_what_does_not_fit(const PreparedStep& prepared);
// Known reasons why the times of `program` here differ from the scenario's machine.
std::vector<std::string> execution_notes(const Scenario& scenario, const std::string& program);

// A note with a remedy where a run that starts after `done` steps would report nothing of its held-out data.
std::vector<std::string> evaluation_notes(const PreparedStep& prepared, int done);

struct Execution {
  Trace trace;
  StepTimes times;
  std::string trace_path, folder;
  std::string weights_path = {};                         // saved weights; empty: none
  std::vector<BatchMeasured> batches = {};               // set if the batch grew
  std::map<std::int64_t, double> predicted_step_s = {};  // by batch, with --confirm
};

// Over the counted steps of all batches.
double tokens_per_s(const PreparedStep& prepared, const Execution& run);

// "  step  samples    loss  learning rate" with at most about twelve rows; the CSV has all rows.
std::string loss_table(const std::vector<LossPoint>& losses);
std::string report_text(const PreparedStep& prepared, const Execution& run);
// With the comparison if the run was predicted before.
std::string json_text(const PreparedStep& prepared, const Execution& run, const std::optional<Comparison>& comparison);

// The keys of its --json.
std::vector<AnswerKeys> execute_answers();

}  // namespace slipway::scenarios
