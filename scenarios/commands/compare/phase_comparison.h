// A prediction beside a trace of PyTorch's profiler, phase by phase (scenarios/commands/kineto/step_phases.h). The profiler knows
// kernels, not tasks, so nothing is joined by label.
// Guarded by tests/scenarios/kineto_phases_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/trace/trace.h"
#include "scenarios/commands/kineto/kineto_trace.h"
#include "scenarios/predict/answer_keys.h"
#include "scenarios/report/report.h"

namespace slipway::scenarios {

struct PhasePair {
  std::string phase;
  double predicted_s = 0, measured_s = 0;
};

struct PhaseComparison {
  double predicted_step_s = 0, measured_step_s = 0;
  double low_s = 0, high_s = 0;  // the prediction's 90 % interval; 0: it has none
  int rank = 0, steps = 1;       // steps: measured ones
  std::vector<PhasePair> phases;
  double step_error() const { return predicted_step_s / measured_step_s - 1; }
  bool is_inside() const { return low_s <= measured_step_s && measured_step_s <= high_s; }
};

// Compares the rank that the profiler's trace names, or rank 0 where the prediction has no such rank. Throws
// std::invalid_argument for a trace without a step.
PhaseComparison compare_phases(const Trace& predicted, const KinetoTrace& measured);

std::string report_text(const PhaseComparison& comparison);
// The page of --report. `scenario`: the prediction's name.
Report report_of(const PhaseComparison& comparison, const std::string& scenario);
const Description<PhaseComparison>& phase_description();

}  // namespace slipway::scenarios
