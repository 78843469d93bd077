#include "models/memory/printed_memory.h"

namespace slipway::models {

double workspace_bytes(const PrintedSettings& settings) {
  constexpr double mebibyte = 1048576, kibibyte = 1024;
  constexpr double large = 4096 * 8 * kibibyte;                      // :4096:8
  constexpr double usual = 4096 * 2 * kibibyte + 16 * 8 * kibibyte;  // :4096:2:16:8
  const bool hopper = settings.generation == Generation::hopper;
  const double cublas = settings.fixed_workspace || hopper ? large : usual;
  constexpr int handles = 2;
  double engine = 0;
  if (settings.transformer_engine)
    engine = hopper || settings.generation == Generation::blackwell ? 32 * mebibyte : 4 * mebibyte;
  return handles * cublas + engine;
}

PrintedMemory printed_memory(const StageTerms& terms, const PrintedSettings& settings) {
  MemoryParts parts = terms.parts;
  PrintedMemory printed;
  printed.allocated = parts[MemoryPart::weights] + parts[MemoryPart::gradients] + parts[MemoryPart::optimizer] +
                      settings.optimizer_more_bytes * terms.parameters + workspace_bytes(settings);
  for (const MemoryPart part : {MemoryPart::weights, MemoryPart::gradients, MemoryPart::optimizer, MemoryPart::logits})
    parts[part] = 0;
  const double logits = settings.logit_bytes * terms.heads_held * terms.logits;
  const double masks = settings.dropout ? 2 * terms.hidden_cut * terms.layers_kept : 0;
  printed.peak = printed.allocated + sum(parts) + masks + logits;
  return printed;
}

}  // namespace slipway::models
