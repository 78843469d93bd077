// Memory of each pipeline rank from a scenario alone, before any graph: in closed form (Fujii et al. 2024,
// models/memory.h) and counted operator by operator for every model family.
//
//   split of blocks ─► shares of a rank ┐
//   action list ─► micro-batches held ──┴─► closed form (Llama shapes)  ≈  counted parts ─► estimate
//
// Both see what the schedule holds on every rank, not only on the first.
// Guarded by tests/memory_terms_test.cpp: the two agree term by term, and the closed form of rank 0 is the
// author's.
#pragma once

#include <vector>

#include "models/memory.h"
#include "models/memory_estimate.h"
#include "scenarios/scenario.h"

namespace slipway {

// Per pipeline rank. Throws std::invalid_argument where the formula says nothing (another model family).
std::vector<MemoryParts> formula_memory(const Scenario& scenario);
// Per pipeline rank, for every model, without embedding input; under full recompute head and the layer at work
// are added up (memory_estimate.h). Throws std::invalid_argument for an
// impossible split.
std::vector<StageTerms> counted_memory(const Scenario& scenario);

}  // namespace slipway
