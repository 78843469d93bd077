#include "models/memory_estimate.h"

namespace slipway {
namespace {

MemoryParts scaled(MemoryParts parts, const StageTerms& terms, const MemoryConstants& constants) {
  parts[MemoryPart::norms] *= constants.input_factor;
  parts[MemoryPart::projection_inputs] *= constants.input_factor;
  parts[MemoryPart::norm_copies] *= constants.norm_copy_factor;
  parts[MemoryPart::attention] *= constants.linear_factor;
  parts[MemoryPart::mlp] *= constants.linear_factor;
  parts[MemoryPart::scores] *= constants.score_factor;
  parts[MemoryPart::logits] *= constants.logit_bytes / 4 * (constants.logits_sharded ? 1 : terms.tensor);
  return parts;
}

}  // namespace

MemoryParts estimated(const StageTerms& terms, const MemoryConstants& constants) {
  MemoryParts parts = scaled(terms.parts, terms, constants);
  const MemoryParts layer =
      scaled(at_layer(terms.parts, terms.at_work, terms.head_held), terms, constants);
  if (sum(terms.at_work) > 0 && sum(layer) > sum(parts)) parts = layer;
  parts[MemoryPart::gradients] += constants.parameter_bytes * terms.parameters;
  parts[MemoryPart::fragmentation] = constants.reserve_share * sum(parts);
  parts[MemoryPart::library] = constants.library_bytes;
  return parts;
}

double peak_bytes(const StageTerms& terms, const MemoryConstants& constants) {
  return sum(estimated(terms, constants));
}

}  // namespace slipway
