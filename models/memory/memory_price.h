// Peak and verdict of a layout from plain numbers, as published tables give it: no scenario, no graph.
//
//   MemoryInput + layers of each stage ──closed form──► StageTerms of each stage ──constants──► MemoryPrice
//                                      once per layout                          once per step of a fit
//
// Stages in the order of the pipeline, one per rank: on stage i 1F1B holds min(p − i, m) micro-batches, and
// interleaved 1F1B min((2(p − 1 − i) + (v − 1)p + 1)/v, m), which on stage 0 is the author's p·(1 + (p −
// 1)/(pv)). Guarded by tests/models/memory_estimate_test.cpp.
#pragma once

#include <span>
#include <vector>

#include "models/memory/closed_form.h"
#include "models/memory/memory_estimate.h"

namespace slipway::models {

// `layers`: of each stage, as the trainer splits them; the embedding is on stage 0, the head on stage
// `head`. Throws std::invalid_argument for impossible degrees, or when there is not one number per stage.
std::vector<StageTerms> closed_form_stages(const MemoryInput& input, std::span<const double> layers, std::size_t head);

// Micro-batches whose activations stage i of the pipeline holds when it is fullest.
double stage_in_flight(const MemoryInput& input, std::size_t stage);

// A layout that somebody ran.
struct MemoryRun {
  std::vector<StageTerms> stages;
  double capacity_bytes = 0;
  bool fitted = false;
  double reserved_bytes = 0;              // measured peak of stage 0; 0: not measured
  Gathered gathered = Gathered::unknown;  // for a fit to that peak; no prediction knows it
  Gathered usual = Gathered::unknown;     // of the trainer's version: for the predicted peak of stage 0
};

struct MemoryPrice {
  double static_bytes = 0;  // stage 0: weights, gradients, optimizer, tables: what is there between two steps
  double first_bytes = 0;   // stage 0: peak, as is usual of the trainer's version
  double peak_bytes = 0;    // of the fullest stage
  double capacity_bytes = 0;
  bool fits = false, fits_cautious = false;
};
MemoryPrice price_memory(const MemoryRun& run, const MemoryConstants& constants);
// Peak of stage 0, with what is known of the run, for a fit.
double first_stage_peak(const MemoryRun& run, const MemoryConstants& constants);
// Peak of the fullest stage.
double peak_bytes(std::span<const StageTerms> stages, const MemoryConstants& constants);

}  // namespace slipway::models
