// A rank's memory, part by part: one table of parts that the count (schedules/memory/counted_memory.h), the timeline
// of buffers (schedules/memory/memory_timeline.h) and the estimate of a trainer (memory_estimate.h) all fill, so that
// they can be set side by side.
//
//   weights │ gradients │ optimizer │ norms … logits │ messages … │ library │ fragmentation
//   held throughout the step          saved for backward  on their way    a trainer's own
//
// Invariant: what `add_kept` adds sums to Operator::saved_bytes.
// Guarded by tests/schedules/counted_memory_test.cpp and tests/schedules/memory_timeline_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "models/model/operators.h"

namespace slipway::models {

enum class MemoryPart : std::uint8_t {
  weights,
  gradients,
  optimizer,
  norms,              // inputs of a layer's norms, of those of heads too
  norm_copies,        // further fp32 copies of norms without a fused kernel
  projection_inputs,  // inputs of qkv and of the MLP's first projection, as sequence parallelism cuts them
  attention,          // q, k, v and attention's output
  scores,             // s × s, of attention kernels that write them to memory
  mlp,                // between the MLP's projections
  layer_inputs,       // full recompute: all that a layer keeps
  embedding_input,    // the author's term (Fujii 2024); no buffer stands for it
  head,               // inputs of the final norm and of the head
  logits,
  messages,              // values and gradients between segments: transfers, collectives, residual
  gathered_weights,      // ZeRO 3: a block's whole weights around its use
  gradient_buckets,      // ZeRO 2, 3: a block's whole gradient until it is reduced
  kept_for_bubble_work,  // inputs and errors that it still reads after their pass (K-FAC), and what it holds itself
  update,                // buffers of the reduction and the update, at the end of a step
  tables,                // tables and buffers of the trainer that outlive the step
  library,               // CUDA context, kernels, communication library, workspaces
  fragmentation,         // what the allocator reserves above what is allocated
};
constexpr std::size_t memory_parts = 21;
// "weights", "norm_copies", ...: keys of --json. And in words, for people.
const char* name_of(MemoryPart part);
const char* words_for(MemoryPart part);

// Bytes of each part.
class MemoryParts {
 public:
  double& operator[](MemoryPart part) { return bytes_[static_cast<std::size_t>(part)]; }
  double operator[](MemoryPart part) const { return bytes_[static_cast<std::size_t>(part)]; }
  MemoryParts& operator+=(const MemoryParts& other);
  friend MemoryParts operator*(double factor, MemoryParts parts);

 private:
  std::array<double, memory_parts> bytes_{};
};
double sum(const MemoryParts& parts);
double activation_bytes(const MemoryParts& parts);  // norms .. logits

// Kept bytes that a trainer with other kernels does not keep (facts fused_gate and weighs_activation of
// memory_constants.h). All of them are in the part `mlp`.
struct OptionalBytes {
  double gates = 0;           // silu(gate) of gated MLPs
  double expert_results = 0;  // of experts, for the gradients of their weights
  OptionalBytes& operator+=(const OptionalBytes& other);
  friend OptionalBytes operator*(double factor, OptionalBytes bytes);
};
// The optional bytes among those that `op` keeps.
OptionalBytes optional_kept(const Operator& op, const Block& block);
// The optional bytes among those that `op` holds only during its block's backward pass: what is made again, and
// `copies` times what comes from the host.
OptionalBytes optional_at_work(const Operator& op, const Block& block, int copies);

// Adds what `op`, an operator of `block`, keeps from forward to backward.
void add_kept(const Operator& op, const Block& block, const WorkShape& shape, MemoryParts& parts);

// Bytes that a split backward pass keeps between its input gradients and its weight gradients (Qi et al. 2024): for
// every product its input and its output's gradient. `first_input_comes_again`: sequence parallelism gathers that of
// the first operator then.
double bytes_for_weight_grads(std::span<const Operator> operators, bool first_input_comes_again);
// Adds the same, of operators of `block`.
void add_kept_for_weights(std::span<const Operator> operators, bool first_input_comes_again, const Block& block,
                          MemoryParts& parts);

// Bytes that a segment of the executor keeps because of `gather`, the communicate operator of `block` before it, beside
// those that Operator::saved_bytes counts. A projection's input: the other ranks' shards where the block is recomputed;
// else nothing, and this rank's shard lies before the gather: less that. Keys and values: those of the other ranks; and
// where a causal sequence's two pieces on a rank attend one by one, their joined output beside what the kernel keeps of
// each.
double bytes_beside_shard(const Operator& gather, const Block& block, const Sharding& sharding, bool recomputed);
// The part that these bytes belong to.
MemoryPart part_of_gathered(const Operator& gather, const Block& block);

}  // namespace slipway::models
