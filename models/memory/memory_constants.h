// What a trainer takes beyond the bytes that the mathematics needs, as few constants with a meaning and a
// unit.
//
//   models/trainers/<trainer>.yaml:  memory:
//                                    a100-80gb:
//                                      layer_factor: {value: 1.28, prior: 1, spread: 0.1, source: "..."}
//
// The defaults are the book: Fujii et al. 2024 and Korthikanti et al. 2022 count each tensor that a layer
// keeps once, and nothing of an allocator or a library. A profile names those in which its trainer differs.
// memory_estimate.h defines them. Guarded by tests/models/memory_estimate_test.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "models/namespaces.h"

namespace slipway::models {

// Bytes are those of 16-bit training; wider dtypes in proportion. h: hidden units, t: tensor degree, R:
// replicas, data × context.
struct MemoryConstants {
  std::string name = "book";  // or the trainer's
  std::string machine;        // on which they were found; empty: none
  // Per parameter of the shard.
  double gradient_bytes = 0;           // as accumulated; 0: as the scenario says
  double replica_parameter_bytes = 0;  // with R > 1: a second gradient for the reduction
  double zero_parameter_bytes = 0;     // with R > 1 and ZeRO, on every rank ...
  double zero_shard_bytes = 0;         // ... and divided by R
  double update_bytes = 0;             // with R > 1, at the end of the step, without ZeRO ...
  double zero_update_bytes = 0;        // ... and with it
  double update_shard_bytes = 0;       // with ZeRO, at the end of the step, divided by R (which may be 1)
  // Kept for the backward pass.
  double layer_factor = 1;       // norm and projection inputs, attention, mlp: times the count
  double norm_copy_bytes = 8;    // per token and h of a layer; norms without a kernel of their own
  double score_bytes = 5;        // per score, softmax in single kernels (kernels: torch)
  double fused_score_bytes = 5;  // per score, fused softmax
  // Per token and h of a layer, t > 1: inputs of its projections as they are gathered over the tensor
  // group.
  double gathered_bytes = 0;             // where all stay gathered ...
  double gathered_many_stage_bytes = 0;  // ... or half of them, on more than two pipeline ranks
  double gathered_context_bytes = 0;     // besides with context parallelism
  double embedding_bytes = 0;            // per token and h (as sequence parallelism cuts it), first stage
  double logit_bytes = 4;                // per logit of the rank's vocabulary shard
  double gathered_logit_bytes = 0;       // per logit of the whole vocabulary, t > 1
  // There once.
  double work_hidden_bytes = 0;    // per token and h
  double work_ffn_bytes = 0;       // per token and column of the MLP's shard
  double tensor_hidden_bytes = 0;  // per token and h, t > 1: buffers of gathers
  // Always there.
  double buffer_hidden_bytes = 0;  // per token and h, t > 1: buffers that outlive the step
  double table_bytes = 0;          // tables of the model that are no parameters
  double library_bytes = 0;        // context, kernels, communication library
  // The allocator.
  double fragmentation_share = 0;        // of what is kept, where one MLP tensor has ...
  double fragmenting_bytes = 268435456;  // ... this many bytes; in proportion below
  // Shares of the GPU's memory.
  double usable_share = 1;      // the verdict
  double cautious_share = 0.8;  // where almost nothing that is called safe runs out of memory
};

struct MemoryParameter {
  std::string_view name, unit, meaning;
  double MemoryConstants::*value;
};
// All of them, in the order of the struct.
std::span<const MemoryParameter> memory_parameters();

}  // namespace slipway::models
