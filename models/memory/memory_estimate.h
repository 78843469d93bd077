// From bytes that the mathematics needs to bytes that a trainer's process takes.
//
//   static  = weights + gradients + optimizer + (facts of the trainer)·parameters
//   kept    = layer_factor·layers + norm copies + scores + gathered inputs + embedding + head + logits
//   peak    = static + (1 + fragmentation)·(kept + work) + tables + library
//   library = library_factor·(context + communicator·kinds of groups)
//
// memory_constants.h defines the constants and facts. Guarded by tests/models/memory_estimate_test.cpp.
#pragma once

#include "models/memory/memory_constants.h"
#include "models/memory/memory_parts.h"

namespace slipway::models {

// The inputs of a run that stayed gathered, where its peak shows it (scenarios/laboratory/tables/price.cpp). unknown:
// as the trainer's facts say.
enum class Gathered : std::uint8_t { unknown, all, half_on_many_stages, none };

// The memory of one pipeline rank before the trainer's habits. Numbers are of one micro-batch on a rank, in units of 2
// bytes.
struct StageTerms {
  MemoryParts parts;          // as counted by operators (schedules/memory/counted_memory.h)
  double parameters = 0;      // of the shard
  double gradient_bytes = 4;  // per parameter, as counted among the parts
  double replicas = 1;        // R
  int tensor = 1, pipeline = 1, context = 1, data = 1, zero = 0;
  bool sequence_parallel = false;
  bool has_libraries = true;  // of a GPU
  Gathered gathered = Gathered::unknown;
  Kernels kernels = Kernels::flash2_rmsnorm;
  double hidden = 0, hidden_cut = 0;           // token × h; as sequence parallelism cuts it
  double ffn = 0;                              // token × f/t, of each expert that a token goes through
  double logits = 0;                           // token × V/t
  double scores = 0;                           // of one layer; 0: kernels write none
  double layers_kept = 0;                      // layers times micro-batches held whole; 1 under full recompute
  double embeddings_held = 0, heads_held = 0;  // micro-batches
  // Bytes of the parts that a trainer may not have, by its facts.
  OptionalBytes optional;  // of the MLP
};
MemoryParts estimated(const StageTerms& terms, const MemoryConstants& constants);
// Those of the counted bytes that these facts exclude. A timeline of buffers contains them too.
double absent_bytes(const OptionalBytes& bytes, const MemoryFacts& facts);
// Sum of these.
double peak_bytes(const StageTerms& terms, const MemoryConstants& constants);
// Peak of what the allocator reserves: without libraries.
double reserved_bytes(const StageTerms& terms, const MemoryConstants& constants);

}  // namespace slipway::models
