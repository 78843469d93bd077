#include "models/memory/memory_price.h"

#include <algorithm>
#include <stdexcept>

namespace slipway::models {
namespace {

// Everything but the bytes themselves, which is the same on all stages.
StageTerms common_terms(const MemoryInput& input) {
  const Sharding& cut = input.shape.sharding;
  const double width = bytes_of(input.shape.dtype) / 2.0;
  const double tokens = static_cast<double>(input.shape.sequence * input.shape.micro_batch) / cut.context * width;
  StageTerms terms;
  terms.gradient_bytes = bytes_of(input.gradient_dtype);
  terms.replicas = static_cast<double>(input.data) * cut.context;
  terms.tensor = cut.tensor;
  terms.pipeline = input.pipeline;
  terms.context = cut.context;
  terms.zero = input.zero;
  terms.kernels = input.shape.kernels;
  terms.hidden = tokens * static_cast<double>(input.hidden);
  terms.hidden_cut = terms.hidden / (cut.sequence_parallel ? cut.tensor : 1);
  terms.ffn = tokens * static_cast<double>(std::max<std::int64_t>(1, input.experts_per_token) * input.ffn) / cut.tensor;
  return terms;
}

}  // namespace

double stage_in_flight(const MemoryInput& input, std::size_t stage) {
  const double after = input.pipeline - 1 - static_cast<double>(stage);
  const double v = input.chunks;
  const double in_flight = v > 1 ? (2 * after + (v - 1) * input.pipeline + 1) / v : after + 1;
  return input.micro_batches > 0 ? std::min(in_flight, static_cast<double>(input.micro_batches)) : in_flight;
}

std::vector<StageTerms> closed_form_stages(const MemoryInput& input, std::span<const double> layers, std::size_t head) {
  if (layers.size() != static_cast<std::size_t>(input.pipeline) || head >= layers.size())
    throw std::invalid_argument("memory in closed form needs the layers of each of the pipeline's stages");
  const bool full = input.recompute == Recompute::full;
  const StageTerms common = common_terms(input);
  std::vector<StageTerms> stages;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    const double in_flight = stage_in_flight(input, stage);
    const StageShare share{layers[stage], stage == 0, stage == head, in_flight};
    StageTerms terms = common;
    terms.parts = stage_memory_together(input, std::span(&share, 1));
    terms.parameters = shard_parameters(input, std::span(&share, 1));
    terms.layers_kept = full ? 1 : layers[stage] * in_flight;
    terms.embeddings_held = stage == 0 ? in_flight : 0;
    stages.push_back(terms);
  }
  return stages;
}

namespace {

double first_stage_peak(const MemoryRun& run, Gathered gathered, const MemoryConstants& constants) {
  StageTerms first = run.stages.front();
  first.gathered = gathered;
  return peak_bytes(first, constants);
}

}  // namespace

double first_stage_peak(const MemoryRun& run, const MemoryConstants& constants) {
  return first_stage_peak(run, run.gathered, constants);
}

MemoryPrice price_memory(const MemoryRun& run, const MemoryConstants& constants) {
  const MemoryParts first = estimated(run.stages.front(), constants);
  MemoryPrice price;
  price.static_bytes = first[MemoryPart::weights] + first[MemoryPart::gradients] + first[MemoryPart::optimizer] +
                       first[MemoryPart::tables];
  price.first_bytes = first_stage_peak(run, run.usual, constants);
  price.peak_bytes = peak_bytes(run.stages, constants);
  price.capacity_bytes = run.capacity_bytes;
  price.fits = price.peak_bytes <= constants.usable_share * run.capacity_bytes;
  price.fits_cautious = price.peak_bytes <= constants.cautious_share * run.capacity_bytes;
  return price;
}

double peak_bytes(std::span<const StageTerms> stages, const MemoryConstants& constants) {
  double most = 0;
  for (const StageTerms& stage : stages) most = std::max(most, peak_bytes(stage, constants));
  return most;
}

}  // namespace slipway::models
