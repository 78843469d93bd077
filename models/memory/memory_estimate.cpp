#include "models/memory/memory_estimate.h"

#include <algorithm>

namespace slipway::models {
namespace {

void add_static(MemoryParts& parts, const StageTerms& terms, const MemoryConstants& c) {
  const MemoryFacts& facts = c.facts;
  if (facts.gradient_bytes > 0) parts[MemoryPart::gradients] *= facts.gradient_bytes / terms.gradient_bytes;
  const bool zero = terms.zero >= 1;
  if (zero && facts.copies_gradient_shard)
    parts[MemoryPart::update] += c.update_shard_bytes / terms.replicas * terms.parameters;
  if (terms.replicas <= 1) return;
  parts[MemoryPart::gradients] += facts.replica_parameter_bytes * terms.parameters;
  if (zero)
    parts[MemoryPart::optimizer] +=
        (facts.zero_parameter_bytes + facts.zero_shard_bytes / terms.replicas) * terms.parameters;
  else
    parts[MemoryPart::update] += facts.update_bytes * terms.parameters;
}

// The share of a layer's two gathered inputs (that of qkv, and that of gate and up) that stays gathered.
double share_gathered(const StageTerms& terms, GatheredInputs habit) {
  switch (terms.gathered) {
    case Gathered::all:
      return 1;
    case Gathered::half_on_many_stages:
      return terms.pipeline > 2 ? 0.5 : 0;
    case Gathered::none:
      return 0;
    case Gathered::unknown:
      break;
  }
  if (habit == GatheredInputs::with_context) return terms.context > 1 ? 1 : 0;
  if (habit == GatheredInputs::never) return 0;
  return terms.pipeline == 1 ? 1 : terms.pipeline > 2 ? 0.5 : 0;
}

// Bytes beside the shard that is counted.
double gathered_bytes(const StageTerms& terms, const MemoryConstants& c) {
  if (terms.tensor == 1 || !terms.sequence_parallel) return 0;
  return c.gathered_bytes * share_gathered(terms, c.facts.gathered) * (1 - 1.0 / terms.tensor) * terms.hidden *
         terms.layers_kept;
}

void scale_layers(MemoryParts& parts, const StageTerms& terms, const MemoryConstants& c) {
  parts[MemoryPart::mlp] -= absent_bytes(terms.optional, c.facts);
  for (const MemoryPart part :
       {MemoryPart::norms, MemoryPart::projection_inputs, MemoryPart::attention, MemoryPart::mlp})
    parts[part] *= c.layer_factor;
  parts[MemoryPart::norm_copies] *= c.norm_copy_bytes / 8;
  parts[MemoryPart::scores] *= (terms.kernels == Kernels::fused_softmax ? c.fused_score_bytes : c.score_bytes) / 5;
  parts[MemoryPart::projection_inputs] += gathered_bytes(terms, c);
}

double logits_kept(const StageTerms& terms, const MemoryConstants& c) {
  const double held = terms.heads_held * terms.logits;
  switch (c.facts.loss) {
    case LossMemory::fused:
      return c.fused_logit_bytes * held;
    case LossMemory::plain:
      return terms.tensor > 1 ? (c.plain_logit_bytes + c.gathered_logit_bytes) * held * terms.tensor
                              : c.plain_logit_bytes * held;
    case LossMemory::vocabulary_parallel:
      break;
  }
  return c.logit_bytes * held;
}

double library_bytes(const StageTerms& terms, const MemoryConstants& c) {
  if (!terms.has_libraries) return 0;
  int kinds = 1;  // the world
  for (const int degree : {terms.tensor, terms.context, terms.pipeline, terms.data}) kinds += degree > 1 ? 1 : 0;
  return c.library_factor * (c.context_bytes + kinds * c.communicator_bytes);
}

}  // namespace

MemoryParts estimated(const StageTerms& terms, const MemoryConstants& constants) {
  const MemoryConstants& c = constants;
  MemoryParts parts = terms.parts;
  add_static(parts, terms, c);
  scale_layers(parts, terms, c);
  parts[MemoryPart::embedding_input] = c.embedding_bytes * terms.hidden_cut * terms.embeddings_held;
  if (terms.heads_held > 0) parts[MemoryPart::logits] = logits_kept(terms, c);
  parts[MemoryPart::messages] =
      c.work_hidden_bytes * terms.hidden + c.work_ffn_bytes * terms.ffn + c.work_score_bytes * terms.scores;
  parts[MemoryPart::fragmentation] = c.fragmentation_share * c.fragmentation_factor *
                                     std::min(1.0, 2 * terms.hidden / fragmenting_bytes) *
                                     (activation_bytes(parts) + parts[MemoryPart::messages]);
  parts[MemoryPart::tables] = c.facts.table_bytes + (terms.tensor > 1 ? c.facts.buffer_hidden_bytes * terms.hidden : 0);
  parts[MemoryPart::library] = library_bytes(terms, c);
  return parts;
}

double absent_bytes(const OptionalBytes& bytes, const MemoryFacts& facts) {
  return (facts.fused_gate ? bytes.gates : 0) + (facts.weighs_activation ? bytes.expert_results : 0);
}

double peak_bytes(const StageTerms& terms, const MemoryConstants& constants) {
  return sum(estimated(terms, constants));
}

double reserved_bytes(const StageTerms& terms, const MemoryConstants& constants) {
  const MemoryParts parts = estimated(terms, constants);
  return sum(parts) - parts[MemoryPart::library];
}

}  // namespace slipway::models
