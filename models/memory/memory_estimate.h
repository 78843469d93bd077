// From bytes that the mathematics needs to bytes that a trainer's process takes: the calibrated verdict.
//
//   static  = parts + [ replica + zero + zero_shard/R + update + update_shard/R ]·parameters     R = d·c
//   kept    = layer_factor·layers + norm copies + scores + gathered inputs + embedding + logits + work
//   peak    = static + (1 + fragmentation)·kept + tables + library   fits: peak ≤ usable_share · GPU memory
//
// What a trainer takes besides the book's bytes was found by comparison with runs that fitted and runs that
// did not: models/trainers/*.yaml, each number with its source (memory_constants.h). Under full recompute the
// head's logits and the layer at work are added up although they are never needed together: an allocator
// keeps the first for a while, and the runs of Hagemann 2023 say so (97.2 % of left-out verdicts right,
// against 96.3 % with the larger of the two). Guarded by tests/models/memory_estimate_test.cpp.
#pragma once

#include "models/memory/memory_constants.h"
#include "models/memory/memory_parts.h"

namespace slipway::models {

// Whether inputs of a layer's projections stay gathered over the tensor group until the backward pass.
// nanotron's runs fall into three kinds (models/trainers/nanotron.yaml); of a run of which nothing is known
// the kind is that of most runs with as many stages: all on one stage, half on more than two.
enum class Gathered : std::uint8_t { unknown, all, half_on_many_stages, none };

// What one pipeline rank needs, before a trainer's own habits. Numbers are of one micro-batch on a rank, in
// units of 2 bytes.
struct StageTerms {
  MemoryParts parts;
  double parameters = 0;      // of the shard
  double gradient_bytes = 4;  // per parameter, as counted among the parts
  double replicas = 1;        // R
  int tensor = 1, pipeline = 1, context = 1, zero = 0;
  Gathered gathered = Gathered::unknown;
  Kernels kernels = Kernels::flash2_rmsnorm;
  double hidden = 0, hidden_cut = 0;  // token × h; as sequence parallelism cuts it
  double ffn = 0;                     // token × f/t, of each expert that a token goes through
  double layers_kept = 0;             // layers times micro-batches held whole; 1 under full recompute
  double embeddings_held = 0;         // micro-batches
};
MemoryParts estimated(const StageTerms& terms, const MemoryConstants& constants);
// Sum of these.
double peak_bytes(const StageTerms& terms, const MemoryConstants& constants);

}  // namespace slipway::models
