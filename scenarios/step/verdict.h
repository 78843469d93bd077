// Memory of each pipeline rank from a scenario alone, before any graph: in closed form (Fujii et al. 2024,
// models/memory/closed_form.h), and counted operator by operator for every model family.
//
//   split of blocks ─► shares of a rank ┐
//   action list ─► micro-batches held ──┴─► closed form (Llama shapes)  ≈  counted parts ─► estimate
//
// Both use the micro-batches held on every rank, not only on the first.
// Guarded by tests/scenarios/memory_terms_test.cpp: the two agree term by term, and the closed form of rank 0 is the
// author's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/memory/closed_form.h"
#include "models/memory/memory_estimate.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Bytes per pipeline rank. Throws std::invalid_argument for a model family without a formula.
std::vector<MemoryParts> formula_memory(const Scenario& scenario);
// Terms per pipeline rank, for every model, without embedding input. Under full recompute, head and the layer at work
// are added up (memory_estimate.h). Throws std::invalid_argument for an impossible split.
std::vector<StageTerms> counted_memory(const Scenario& scenario);

// The verdict whether a scenario fits, shared by `memory`, `plan` and `simulate`.
//
//   closed form (Fujii et al. 2024; not with a trainer's own constants) ┐
//   parts counted × trainer's constants                                 ├─ largest ≤ usable_share · GPU: fits
//   the simulated timeline, once there is one                           ┘          ≤ cautious_share · GPU: cautiously
//
// The three differ a little: no buffer holds the author's embedding input, and no formula has the messages between
// tasks. The largest counts, to be safe. Guarded by tests/scenarios/verdict_test.cpp.

enum class MemoryWay : std::uint8_t { estimate, closed_form, timeline };

// Memory of a pipeline rank on a graph's timeline.
struct OnTimeline {
  double bytes = 0;
  double kept_for_bubble_work = 0;  // part of bytes; no formula knows how long it lives
};

// The need of a pipeline rank, on its member with the smallest GPU.
struct StageNeed {
  int rank = 0;
  double bytes = 0, capacity = 0;
  MemoryWay way = MemoryWay::estimate;  // the source of `bytes`
};
// `timeline`: per pipeline rank; empty before any graph.
std::vector<StageNeed> stage_needs(const Scenario& scenario, const std::vector<OnTimeline>& timeline = {});

struct Verdict {
  bool fits = true;
  bool fits_cautious = true;  // up to cautious_share of every GPU
  int fullest = 0;            // pipeline rank with the largest share of its GPU
  int rank = 0;               // its member with the smallest GPU
  double bytes = 0;           // needed there
  double usable = 0;          // memory of that GPU times usable_share
  MemoryWay way = MemoryWay::estimate;
  double share() const { return bytes / usable; }
};
Verdict verdict_of(const Scenario& scenario, const std::vector<StageNeed>& needs);
Verdict verdict_of(const Scenario& scenario);  // before any graph

// "by the closed form of Fujii et al. 2024", "on the simulated timeline", "as nanotron takes it".
std::string way_text(const Scenario& scenario, MemoryWay way);

}  // namespace slipway::scenarios
