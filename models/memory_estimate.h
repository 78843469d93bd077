// From bytes that the mathematics needs to bytes that a trainer's process takes: the calibrated verdict.
//
//   peak = (1 + reserve) · [ parts, each times the trainer's factor
//                            + parameter_bytes · parameters + logits as the trainer keeps them ] + library
//
// A factor of 1 is the book: Fujii et al. 2024 and Korthikanti et al. 2022 count each tensor that a layer
// keeps once. What a trainer keeps besides, the allocator's reserve and the libraries' own memory are found
// by comparison with runs that fitted and runs that did not: models/stacks/*.yaml, each number with its
// source. Guarded by tests/memory_estimate_test.cpp.
#pragma once

#include <string>

#include "models/memory_parts.h"

namespace slipway {

struct MemoryConstants {
  std::string name = "book";
  double input_factor = 1;        // norms and projection_inputs: 8 bytes per token and hidden unit in bf16
  double norm_copy_factor = 1;    // norm_copies: 8 more where norms have no kernel of their own
  double linear_factor = 1;       // attention and mlp
  double score_factor = 1;        // scores: 5 bytes each in bf16
  double logit_bytes = 4;         // per logit, in 16-bit training (wider dtypes in proportion)
  bool logits_sharded = true;     // over the tensor group, by vocabulary
  double parameter_bytes = 0;     // per parameter of the shard, beside weight, gradient and optimizer
  double library_bytes = 0;       // context, communication library, workspaces
  double reserve_share = 0;       // of everything allocated: fragmentation and the allocator's rounding
  double usable_share = 1;        // of the GPU's memory that a process gets
};

// What one pipeline rank needs, before a trainer's own habits.
struct StageTerms {
  MemoryParts parts;
  MemoryParts at_work;     // full recompute: the layer whose forward is made again; else nothing
  double head_held = 0;    // micro-batches whose head and logits are among the parts
  double parameters = 0;  // of the shard
  int tensor = 1;
};
// The larger of two moments: the head's backward; and, under full recompute, a layer's, when one micro-batch's
// head and logits are gone.
MemoryParts estimated(const StageTerms& terms, const MemoryConstants& constants);
// Sum of these.
double peak_bytes(const StageTerms& terms, const MemoryConstants& constants);

}  // namespace slipway
