// Explains the differences between a trace and its prediction. Tasks are compared one by one, under the hypothesis that
// one property of the machine differs from its profile.
//
//   trace      ──median of the counted steps──► measured seconds of (rank, task)  ─┐
//   simulation ────────────────────────────────► predicted seconds ──hypothesis────┴─► cost = Σ |measured − predicted|
//
//   hypotheses  a rate of all GPUs or links (rates.h)           all tasks that it prices
//               one GPU, one node, one pipeline rank            what runs there
//               one port, one pair of nodes                     the messages over it
//
// Each has one number, which is fitted. The hypothesis with the least cost is the cause, if it explains a good part of what
// it changes: noise does not. Waiting is no cause: work time alone is compared.
// Guarded by tests/scenarios/explain_trace_test.cpp: perturbed simulations, whose cause is known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/trace/trace.h"
#include "scenarios/predict/simulated_step.h"
#include "scenarios/search/rates.h"

namespace slipway::scenarios {

struct TraceCause {
  std::string name, id;   // "NVLink bandwidth", "node_bandwidth"; "GPU of rank 5", "gpu:5"
  double speed = 0;       // 1: as predicted
  double explained = 0;   // share of the difference that goes away, of all tasks
  double of_its_own = 0;  // the same of the tasks that it changes
  double deviation = 0;   // |ln speed| in spreads
};

struct TraceFindings {
  std::int64_t compared = 0;  // tasks in both; a message counts once
  std::int64_t missing = 0;   // records of the trace without a predicted task
  double predicted_s = 0;     // Σ predicted seconds of the compared tasks
  double difference_s = 0;    // Σ |measured − predicted|
  double predicted_step_s = 0, measured_step_s = 0;
  // Those that explain a good part of what they change, the most explained of all first. Where no task differs so but the
  // step does, the launches: they make ranks idle, not tasks longer.
  std::vector<TraceCause> causes;
  // The tasks take as long as predicted: nothing is to be explained.
  bool agrees() const;
};

// `predicted`: every micro-batch simulated. Throws std::invalid_argument when no task is in both.
TraceFindings trace_findings(const SimulatedStep& predicted, const Trace& measured);

}  // namespace slipway::scenarios
