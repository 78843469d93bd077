// Bytes as a PyTorch trainer prints them: torch.cuda.memory_allocated after a step and max_memory_allocated, which count
// tensors alone, without what the allocator reserves for them and without libraries.
//
//   allocated = weights + gradients + optimizer + workspaces
//   peak      = allocated + kept for the backward pass + dropout masks + logits while the loss is made
//
// Workspaces are tensors too. Sources:
//   cuBLAS   PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp: one for each handle and stream; of Hopper 32 MiB, of
//            others :4096:2:16:8, or what CUBLAS_WORKSPACE_CONFIG says. Forward and backward passes run in two threads
//            with a handle each. (Later versions of PyTorch give Blackwell 32 MiB too; the measured ones do not.)
//   TE       Transformer Engine, transformer_engine/pytorch/module/base.py: 32 MiB from Hopper on, 4 MiB before.
// Guarded by tests/models/printed_memory_test.cpp: golden values of Megatron-LM's own tests.
#pragma once

#include "models/machine/trainer_facts.h"
#include "models/memory/memory_estimate.h"

namespace slipway::models {

// The way a run allocates, beside what is counted.
struct PrintedSettings {
  Generation generation = Generation::other;
  bool fixed_workspace = false;    // CUBLAS_WORKSPACE_CONFIG=:4096:8, of deterministic runs
  bool transformer_engine = true;  // else it has no workspace
  bool dropout = false;            // masks of two hidden states a layer, a byte a number
  double logit_bytes = 6;          // of Megatron's vocabulary-parallel loss: bf16 logits, and fp32 ones turned in place
  double optimizer_more_bytes = 0;  // per parameter, beside master weights and two moments
};

double workspace_bytes(const PrintedSettings& settings);

struct PrintedMemory {
  double allocated = 0, peak = 0;
};
// The bytes that the rank with these terms prints.
PrintedMemory printed_memory(const StageTerms& terms, const PrintedSettings& settings);

}  // namespace slipway::models
