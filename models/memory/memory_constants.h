// The memory of a process beyond the bytes that the mathematics needs. It follows from facts of the trainer and from a
// few constants, each with a meaning and a unit, that all trainers share.
//
//   facts       models/trainers/<trainer>.yaml: memory:   the loss on whole logits, a second copy of gradients, ...
//   constants   models/memory/pooled.yaml                  bytes per logit, share lost to fragmentation, ...
//   deviations  the same file: a factor per trainer on fragmentation, per trainer and machine on libraries
//
// The constants are fitted to the published runs of all trainers at once (models/fit/memory_fit.h). Each has a prior
// with a source, and the fit leaves a covariance. So a need of memory is a distribution (memory_odds.h).
// Guarded by tests/models/memory_estimate_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model/names.h"
#include "models/namespaces.h"

namespace slipway::models {

// The way in which a trainer computes the loss. It decides the bytes that are kept per logit.
enum class LossMemory : std::uint8_t {
  vocabulary_parallel,  // fp32 logits of the rank's vocabulary shard, and their gradient
  plain,                // PyTorch's cross entropy; on logits gathered over the tensor group
  fused,                // a kernel that writes the gradient over the logits
};
inline constexpr std::array loss_memory_names{Named{LossMemory::vocabulary_parallel, "vocabulary-parallel"},
                                              Named{LossMemory::plain, "plain"}, Named{LossMemory::fused, "fused"}};

// When inputs of a layer's column-parallel projections stay gathered over the tensor group until the backward pass,
// although sequence parallelism could keep a shard of them.
enum class GatheredInputs : std::uint8_t {
  never,
  with_context,  // with context parallelism
  by_stages,     // on one pipeline stage all, on more than two one of the two
};
inline constexpr std::array gathered_inputs_names{Named{GatheredInputs::never, "never"},
                                                  Named{GatheredInputs::with_context, "with-context"},
                                                  Named{GatheredInputs::by_stages, "by-stages"}};

// Read off a trainer's code, its documents or what is allocated after a step. Bytes are those of 16-bit training.
struct MemoryFacts {
  LossMemory loss = LossMemory::vocabulary_parallel;
  GatheredInputs gathered = GatheredInputs::never;
  bool copies_gradient_shard = false;  // to fp32 at the update, with ZeRO
  bool fused_gate = false;             // silu(gate) is made again in the backward pass, not kept
  bool weighs_activation = false;      // a row's weight multiplies the experts' activation: their results are not kept
  // Per parameter of the shard; R: replicas, data × context.
  double gradient_bytes = 0;           // as accumulated; 0: as the scenario says
  double replica_parameter_bytes = 0;  // with R > 1: a second gradient for the reduction
  double zero_parameter_bytes = 0;     // with R > 1 and ZeRO, on every rank ...
  double zero_shard_bytes = 0;         // ... and divided by R
  double update_bytes = 0;             // with R > 1, at the end of the step, without ZeRO
  // Always there.
  double buffer_hidden_bytes = 0;         // per token and h, tensor > 1: buffers that outlive the step
  double table_bytes = 0;                 // tables of the model that are no parameters
  std::vector<std::string> sources = {};  // one per fact that the profile names
};

struct MemoryFact {
  std::string_view name, unit, meaning;
  double MemoryFacts::*number = nullptr;  // nullptr: the fact is a word or a flag
  bool MemoryFacts::*flag = nullptr;
};
// All of them; "loss" and "gathered_inputs" have words; those without bytes are true or false.
std::span<const MemoryFact> memory_facts();

// Bytes are those of 16-bit training; wider dtypes in proportion. As they stand here they are the count itself, without
// doubt; constants_of (pooled_memory.h) makes the fitted ones.
struct MemoryConstants {
  std::string trainer = "generic";
  std::string machine;  // where its libraries take what `library_factor` says; empty: nowhere known
  MemoryFacts facts;
  // Kept for the backward pass.
  double layer_factor = 1;          // norm and projection inputs, attention, mlp: times the count
  double norm_copy_bytes = 8;       // per token and h of a layer; norms without a fused kernel
  double score_bytes = 5;           // per score, softmax in single kernels (kernels: torch)
  double fused_score_bytes = 5;     // per score, fused softmax
  double gathered_bytes = 4;        // per token and h of a layer: inputs that stay gathered
  double embedding_bytes = 0;       // per token and h (as sequence parallelism cuts it), first stage
  double logit_bytes = 4;           // per logit of the vocabulary shard, vocabulary-parallel loss
  double plain_logit_bytes = 16;    // per logit, plain loss
  double gathered_logit_bytes = 0;  // per logit more where it is gathered
  double fused_logit_bytes = 4;     // per logit, fused loss
  // There once, during a backward pass or the update.
  double work_hidden_bytes = 0;   // per token and h
  double work_ffn_bytes = 0;      // per token and column of the MLP's shard
  double work_score_bytes = 0;    // per score of one layer
  double update_shard_bytes = 0;  // per parameter of the shard, divided by R
  // Around the tensors.
  double fragmentation_share = 0;  // of what is kept, where the hidden state has `fragmenting_bytes`
  double context_bytes = 0;        // CUDA context and kernels
  double communicator_bytes = 0;   // per kind of group: world, tensor, context, pipeline, data
  // Deviations of the trainer.
  double fragmentation_factor = 1;
  double library_factor = 1;  // on context and communicators
  // Standard deviations of z = ln(value / prior) / spread, for memory_parameters() in their order. Empty: nothing is
  // uncertain.
  std::vector<double> spreads;
  std::vector<double> covariance;  // row by row
  // Standard deviations of ln(peak) that no constant explains: of one run, and of all runs of one model or cluster.
  double row_spread = 0, table_spread = 0;
  double other_share = 0;  // of runs that end as no count of memory knows
};
// Hidden state of one micro-batch at which fragmentation is full; in proportion below.
constexpr double fragmenting_bytes = 134217728;

struct MemoryParameter {
  std::string_view name, unit, meaning;
  double MemoryConstants::*value;
};
// The shared constants and then the two deviations, in the order of the struct.
std::span<const MemoryParameter> memory_parameters();
constexpr std::size_t memory_deviations = 2;

}  // namespace slipway::models
