#include "models/memory/memory_estimate.h"

#include <algorithm>

namespace slipway::models {
namespace {

void add_static(MemoryParts& parts, const StageTerms& terms, const MemoryConstants& c) {
  if (c.gradient_bytes > 0) parts[MemoryPart::gradients] *= c.gradient_bytes / terms.gradient_bytes;
  if (terms.zero >= 1) parts[MemoryPart::update] += c.update_shard_bytes / terms.replicas * terms.parameters;
  if (terms.replicas <= 1) return;
  parts[MemoryPart::gradients] += c.replica_parameter_bytes * terms.parameters;
  const bool zero = terms.zero >= 1;
  if (zero)
    parts[MemoryPart::optimizer] += (c.zero_parameter_bytes + c.zero_shard_bytes / terms.replicas) * terms.parameters;
  parts[MemoryPart::update] += (zero ? c.zero_update_bytes : c.update_bytes) * terms.parameters;
}

double gathered_bytes(const StageTerms& terms, const MemoryConstants& c) {
  if (terms.tensor == 1) return 0;
  double bytes = terms.context > 1 ? c.gathered_context_bytes : 0;
  const bool unknown = terms.gathered == Gathered::unknown;
  if (terms.gathered == Gathered::all || (unknown && terms.pipeline == 1)) bytes += c.gathered_bytes;
  if ((terms.gathered == Gathered::half_on_many_stages || unknown) && terms.pipeline > 2)
    bytes += c.gathered_many_stage_bytes;
  return bytes;
}

void scale_layers(MemoryParts& parts, const StageTerms& terms, const MemoryConstants& c) {
  for (const MemoryPart part :
       {MemoryPart::norms, MemoryPart::projection_inputs, MemoryPart::attention, MemoryPart::mlp})
    parts[part] *= c.layer_factor;
  parts[MemoryPart::norm_copies] *= c.norm_copy_bytes / 8;
  parts[MemoryPart::scores] *= (terms.kernels == Kernels::fused_softmax ? c.fused_score_bytes : c.score_bytes) / 5;
  parts[MemoryPart::projection_inputs] += gathered_bytes(terms, c) * terms.hidden * terms.layers_kept;
}

}  // namespace

MemoryParts estimated(const StageTerms& terms, const MemoryConstants& constants) {
  const MemoryConstants& c = constants;
  const bool tensor = terms.tensor > 1;
  MemoryParts parts = terms.parts;
  add_static(parts, terms, c);
  scale_layers(parts, terms, c);
  parts[MemoryPart::embedding_input] = c.embedding_bytes * terms.hidden_cut * terms.embeddings_held;
  parts[MemoryPart::logits] *= (c.logit_bytes + (tensor ? c.gathered_logit_bytes * terms.tensor : 0)) / 4;
  parts[MemoryPart::messages] = c.work_hidden_bytes * terms.hidden + c.work_ffn_bytes * terms.ffn +
                                (tensor ? c.tensor_hidden_bytes * terms.hidden : 0);
  parts[MemoryPart::fragmentation] = c.fragmentation_share * std::min(1.0, 2 * terms.ffn / c.fragmenting_bytes) *
                                     (activation_bytes(parts) + parts[MemoryPart::messages]);
  parts[MemoryPart::tables] = c.table_bytes + (tensor ? c.buffer_hidden_bytes * terms.hidden : 0);
  parts[MemoryPart::library] = c.library_bytes;
  return parts;
}

double peak_bytes(const StageTerms& terms, const MemoryConstants& constants) {
  return sum(estimated(terms, constants));
}

}  // namespace slipway::models
