// What `slipway execute` is asked for and answers: refusals before anything starts, and the measured run as
// numbers, as a report and as JSON.
// Guarded by tests/scenarios/execute_command_test.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/answers/step_times.h"
#include "scenarios/compare/batch_report.h"
#include "scenarios/compare/comparison.h"
#include "scenarios/step/plan.h"

namespace slipway::scenarios {

// Throws UsageError with what the executor cannot run yet (exec/run/executable.h), if there is any.
void refuse_what_cannot_run(const Scenario& scenario);
// Throws UsageError where segments cannot be recorded as CUDA graphs.
void refuse_graphs(const Plan& plan);
// Throws UsageError with a table when a rank needs more memory than its machine has.
void refuse_what_does_not_fit(const Plan& plan);
// What makes the times of `program` here differ from the scenario's machine; empty: nothing that is known.
std::vector<std::string> execution_notes(const Scenario& scenario, const std::string& program);

// Of held-out data of which nothing would be told, with the remedy, where the run begins after `done`
// steps.
std::vector<std::string> evaluation_notes(const Plan& plan, int done);

struct Execution {
  Trace trace;
  StepTimes times;
  std::string trace_path, folder;
  std::vector<BatchMeasured> batches = {};               // where the batch grew
  std::map<std::int64_t, double> predicted_step_s = {};  // by batch, with --confirm
};

// Of the counted steps, whatever their batches.
double tokens_per_s(const Plan& plan, const Execution& run);

// "  step  samples    loss  learning rate" with at most about twelve rows; the CSV has all.
std::string loss_table(const std::vector<LossPoint>& losses);
std::string report_text(const Plan& plan, const Execution& run);
// With the comparison when the run was predicted before.
std::string json_text(const Plan& plan, const Execution& run, const std::optional<Comparison>& comparison);

}  // namespace slipway::scenarios
