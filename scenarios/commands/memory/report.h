// The answer of `slipway memory`: each pipeline rank's memory by part, as its trainer takes it and on the simulated
// timeline; the probability that it fits; and the cheapest change that fits. The first rank in closed form stands beside.
//
//   scenario ─┬─► counted parts × constants                                 ┐
//             └─► graph ─► timeline                (the task that peaks)    ┴─ one verdict (scenarios/predict/verdict.h)
//
// Guarded by tests/scenarios/memory_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/memory/closed_form.h"
#include "scenarios/predict/answer_keys.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/predict/step_interval.h"
#include "scenarios/search/memory_changes.h"
#include "schedules/time/replay.h"

namespace slipway::scenarios {

// The fullest rank of one pipeline rank.
struct StageReport {
  int stage = 0;  // pipeline rank
  int rank = 0;
  double capacity = 0;  // bytes of its machine
  std::string on;       // its machine, where there are several (prepared_step.h: on_machine)
  MemoryParts timeline;
  MemoryParts estimate;
  std::string peak_task;
  StageNeed need;  // the larger of them, with its odds (scenarios/predict/verdict.h)
};

struct MemoryReport {
  std::vector<StageReport> stages;         // per pipeline rank
  std::optional<MemoryTerms> closed_form;  // of the first pipeline rank (Fujii et al. 2024)
  std::string no_closed_form;              // why there is none
  Verdict verdict;
  double step_time_s = 0;                // replayed, as changes are priced
  std::optional<StepInterval> interval;  // of the step time
  std::optional<ChangeSearch> search;    // only after a search
};

// `timeline`: simulated or replayed; for a step with periodic micro-batches also its `periodic` timeline.
MemoryReport memory_report(const PreparedStep& prepared, const Timeline& timeline,
                           const PeriodicTimeline* periodic = nullptr);

// Cells of its tables, headings first: a row per pipeline rank; the changes that are possible.
std::vector<std::vector<std::string>> stage_table(const MemoryReport& report);
std::vector<std::vector<std::string>> change_table(const MemoryReport& report);
std::string report_text(const PreparedStep& prepared, const MemoryReport& report);
std::string json_text(const PreparedStep& prepared, const MemoryReport& report);

// The keys of its --json.
std::vector<AnswerKeys> memory_answers();

}  // namespace slipway::scenarios
