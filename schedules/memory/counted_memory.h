// The bytes that each pipeline rank of a step keeps, counted from its operators before any graph exists. It is the only
// count of kept bytes: scenarios and published runs are both priced from it, and a graph's buffers have the same
// operators.
//
//   operators ──saved bytes──► one micro-batch of each stage ┐
//   action list ──────────────► micro-batches held at the peak ┴─► StageTerms (models/memory/memory_estimate.h)
//
// Under full recompute the head and the layer at work are added up, although they are never needed together: an
// allocator keeps the first for a while, and the runs of Hagemann 2023 say so.
// Guarded by tests/schedules/counted_memory_test.cpp: Fujii's four cases and the graph's static bytes.
#pragma once

#include <vector>

#include "models/memory/memory_estimate.h"
#include "schedules/step/step.h"

namespace slipway::schedules {

struct CountedAs {
  // Slipway's own executor keeps gathered keys and values, and what it gathers when it recomputes a layer. A trainer
  // gathers them again.
  bool executor = true;
  // Layers of each stage, where a trainer deals them out in its own way; a stage may have none. Empty: the step's split.
  std::vector<int> layers = {};
};

// Terms per pipeline rank, for every model. Throws std::invalid_argument for an impossible split.
std::vector<StageTerms> counted_memory(const Step& step, const CountedAs& as = {});

}  // namespace slipway::schedules
