// The verdict whether a scenario fits, shared by `memory`, `plan` and `simulate`, with the probability that it does.
//
//   operators ──counted_memory──► terms of each pipeline rank ──constants of the trainer──► odds (median, spread)
//   the simulated timeline, once there is one ──────────────────────────────────────────► raises the median where it
//                                                                                         holds more
//   P(fits) of the rank that is least likely to fit:   ≥ 1/2: fits      ≥ 99 %: fits cautiously, `plan` recommends it
//
// The timeline has the messages between tasks and bubble work, which no count before a graph knows.
// Guarded by tests/scenarios/verdict_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/memory/closed_form.h"
#include "models/memory/memory_odds.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Terms per pipeline rank, before any graph. Throws std::invalid_argument for an impossible split.
std::vector<StageTerms> counted_memory(const Scenario& scenario);
// The first pipeline rank as Fujii et al. 2024 print it; `why` is set where the formula does not describe the scenario.
std::optional<MemoryTerms> closed_form_of(const Scenario& scenario, std::string* why = nullptr);

enum class MemoryWay : std::uint8_t { estimate, timeline };

// Memory of a pipeline rank on a graph's timeline.
struct OnTimeline {
  double bytes = 0;
  double kept_for_bubble_work = 0;  // part of bytes; no count knows how long it lives
};

// The need of a pipeline rank, on its member with the smallest GPU.
struct StageNeed {
  int rank = 0;
  MemoryOdds odds;
  double capacity = 0;
  double probability = 0;               // that it fits
  MemoryWay way = MemoryWay::estimate;  // the source of the median
  bool fits() const { return is_likely(probability); }
  bool fits_cautious() const { return probability >= recommended_probability; }
};
// `timeline`: per pipeline rank; empty before any graph.
std::vector<StageNeed> stage_needs(const Scenario& scenario, const std::vector<OnTimeline>& timeline = {});

struct Verdict {
  bool fits = true;           // more likely than not
  bool fits_cautious = true;  // with recommended_probability
  double probability = 1;     // that it fits
  int fullest = 0;            // pipeline rank that is least likely to fit; of equals, that with the largest share
  int rank = 0;               // its member with the smallest GPU
  MemoryOdds odds;            // needed there
  double capacity = 0;        // memory of that GPU
  MemoryWay way = MemoryWay::estimate;
  double share() const { return odds.bytes / capacity; }
};
Verdict verdict_of(const std::vector<StageNeed>& needs);
Verdict verdict_of(const Scenario& scenario);  // before any graph

// "on the simulated timeline", "as nanotron takes it".
std::string way_text(const Scenario& scenario, MemoryWay way);
// "8.30 GiB (90 %: 7.50 to 9.20 GiB) of 80.0 GiB; it fits with a probability of 99.5 %"
std::string odds_text(const Verdict& verdict, const std::string& machine);
// "99.5 %", "> 99.9 %", "< 0.1 %"
std::string probability_text(double probability);

}  // namespace slipway::scenarios
