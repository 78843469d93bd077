// The answer of `slipway memory`: each pipeline rank's memory by part, in closed form, on the simulated timeline and by
// its trainer's constants; the verdict; and the cheapest change that fits.
//
//   scenario ─┬─► closed form                      (Fujii et al. 2024)      ┐
//             ├─► counted parts × trainer's constants                       ├─ the largest: one verdict
//             └─► graph ─► timeline                (the task that peaks)    ┘  (scenarios/step/verdict.h)
//
// Guarded by tests/scenarios/memory_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/memory/closed_form.h"
#include "scenarios/memory/changes.h"
#include "scenarios/simulate/prediction.h"

namespace slipway::scenarios {

// The fullest rank of one pipeline rank.
struct StageReport {
  int stage = 0;  // pipeline rank
  int rank = 0;
  double capacity = 0;                 // bytes of its machine
  std::string on;                      // its machine, where there are several (prepared_step.h: on_machine)
  std::optional<MemoryParts> formula;  // closed form; unset for models without one
  MemoryParts timeline;
  MemoryParts estimate;
  std::string peak_task;
  double needs = 0;  // the largest of them (scenarios/step/verdict.h)
  bool fits = true, fits_cautious = true;
  bool is_safe() const { return formula && sum(*formula) <= safe_share * capacity; }
};

struct MemoryReport {
  std::vector<StageReport> stages;  // per pipeline rank
  std::string no_formula;           // why there is no closed form; empty: there is one
  Verdict verdict;
  double step_time_s = 0;              // replayed, as changes are priced
  std::optional<ChangeSearch> search;  // only after a search
  bool is_safe() const;
};

// `timeline`: simulated or replayed; for a step with periodic micro-batches also its `periodic` timeline.
MemoryReport memory_report(const PreparedStep& prepared, const Timeline& timeline,
                           const PeriodicTimeline* periodic = nullptr);

std::string report_text(const PreparedStep& prepared, const MemoryReport& report);
std::string json_text(const PreparedStep& prepared, const MemoryReport& report);

}  // namespace slipway::scenarios
