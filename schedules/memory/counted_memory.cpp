#include "schedules/memory/counted_memory.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "models/model/operator_cost.h"
#include "models/model/parameters.h"
#include "schedules/lower/segments.h"
#include "schedules/lower/static_bytes.h"
#include "schedules/memory/in_flight.h"
#include "schedules/step/block_elements.h"
#include "schedules/step/placement.h"

namespace slipway::schedules {
namespace {

struct Stages {
  Stages(const Step& of, const CountedAs& how)
      : step(of),
        executor(how.executor),
        own_split(!how.layers.empty()),
        shape(work_shape(of)),
        blocks(blocks_of(of.model)),
        elements(elements_of_blocks(of)),
        actions(action_lists(of)),
        placement(placement_of(actions, schedule_shape(of))) {
    const std::vector<BlockRange> parts = own_split ? block_ranges(how.layers) : split_blocks(of.model, of.layout);
    for (int copy = 0; copy < placement.copies; ++copy) ranges.insert(ranges.end(), parts.begin(), parts.end());
  }

  bool on_rank(std::size_t stage, int pipeline) const { return placement.rank[stage] == pipeline; }
  bool has_embedding(std::size_t stage) const { return placement.is_first(static_cast<int>(stage)); }
  bool has_head(std::size_t stage) const { return placement.is_last(static_cast<int>(stage)); }
  double layers(std::size_t stage) const {
    return ranges[stage].last - ranges[stage].first - (has_embedding(stage) ? 1 : 0) - (has_head(stage) ? 1 : 0);
  }

  const Step& step;
  bool executor, own_split;
  WorkShape shape;  // of one micro-batch
  std::vector<Block> blocks;
  std::vector<BlockElements> elements;  // per block, of one rank
  ActionLists actions;
  Placement placement;
  std::vector<BlockRange> ranges;  // per stage
};

// Bytes that one micro-batch keeps on each stage; under full recompute without the layer at work.
struct KeptBytes {
  MemoryParts parts;
  OptionalBytes optional;
  KeptBytes& operator+=(const KeptBytes& other) {
    parts += other.parts, optional += other.optional;
    return *this;
  }
};
void keep_larger(const KeptBytes& other, KeptBytes& most) {
  if (sum(other.parts) > sum(most.parts)) most = other;
}

struct Kept {
  std::vector<KeptBytes> held;      // per stage
  std::vector<KeptBytes> at_work;   // per stage: its largest recomputed block
  std::vector<double> for_weights;  // per stage: bytes between split input and weight gradients
  std::vector<double> block;        // per stage: of its largest layer
};

void add_gathered(const Operator& gather, const Block& block, const Stages& stages, MemoryParts& parts) {
  if (!stages.executor) return;
  const bool recomputed = is_recomputed(stages.step.recompute, block);
  if (!gathers_keys_values(gather) && !(recomputed && gathers_input(gather))) return;
  parts[part_of_gathered(gather, block)] += bytes_beside_shard(gather, block, stages.shape.sharding, recomputed);
}

KeptBytes of_block(std::span<const Operator> operators, const Stages& stages) {
  KeptBytes bytes;
  for (const Operator& op : operators) {
    const Block& block = stages.blocks[op.block];
    add_kept(op, block, stages.shape, bytes.parts);
    add_gathered(op, block, stages, bytes.parts);
    bytes.optional += optional_kept(op, block);
  }
  return bytes;
}

// Bytes of a block that are there during its backward pass alone: what recomputed modules make again, and what comes back
// from the host's memory.
KeptBytes made_again(std::span<const Operator> operators, const Stages& stages) {
  KeptBytes bytes;
  constexpr int copies = 2;  // of a layer that is on its way, and of the one at work
  for (Operator op : operators) {
    bytes.optional += optional_at_work(op, stages.blocks[op.block], copies);
    op.saved_bytes = op.again_bytes + copies * op.offloaded_bytes;
    add_kept(op, stages.blocks[op.block], stages.shape, bytes.parts);
  }
  return bytes;
}

double left_for_weights(const std::vector<Operator>& operators, const Stages& stages) {
  double bytes = 0;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Block& block = stages.blocks[operators[i].block];
    const bool comes_again = input_comes_again(operators, static_cast<int>(i), block, stages.step.recompute);
    bytes += bytes_for_weight_grads(std::span(&operators[i], 1), comes_again);
    if (comes_again)
      bytes += operators[i - 1].message_bytes * operators[i - 1].forward_sent / stages.step.layout.tensor;
  }
  return bytes;
}

// The operators from `first` on that belong to the same block.
std::span<const Operator> block_at(const std::vector<Operator>& operators, std::size_t first) {
  std::size_t last = first;
  while (last < operators.size() && operators[last].block == operators[first].block) ++last;
  return std::span(operators).subspan(first, last - first);
}

Kept kept_of(const Stages& of) {
  Kept kept;
  Stages stages = of;  // unfused scores of a slice: the mean over all slices, which live at the peak
  stages.shape.before = (stages.step.slices - 1) * stages.step.model->sequence / 2;
  const bool full = stages.step.recompute == Recompute::full;
  const double residual = boundary_bytes(stages.step.model, stages.shape);
  for (const BlockRange& range : stages.ranges) {
    KeptBytes held, at_work;
    double largest = 0;
    const auto operators = operators_of(stages.step.model, range.first, range.last, stages.shape);
    for (std::size_t at = 0; at < operators.size();) {
      const std::span<const Operator> block = block_at(operators, at);
      at += block.size();
      const KeptBytes own = of_block(block, stages);
      keep_larger(made_again(block, stages), at_work);
      if (!full || stages.blocks[block.front().block].kind != BlockKind::transformer) {
        held += own;
        if (stages.blocks[block.front().block].kind == BlockKind::transformer)
          largest = std::max(largest, sum(own.parts));
        continue;
      }
      const bool on_host = stages.step.levers.offloaded.has(OffloadedInput::layer_inputs);
      held.parts[MemoryPart::layer_inputs] += on_host ? 0 : residual;
      keep_larger(own, at_work);
    }
    kept.held.push_back(held);
    kept.block.push_back(largest);
    kept.for_weights.push_back(left_for_weights(operators, stages));
    kept.at_work.push_back(at_work);
  }
  return kept;
}

std::vector<BlockElements> block_elements(const Stages& stages, int pipeline) {
  std::vector<BlockElements> elements;
  for (std::size_t stage = 0; stage < stages.ranges.size(); ++stage) {
    if (!stages.on_rank(stage, pipeline)) continue;
    for (int block = stages.ranges[stage].first; block < stages.ranges[stage].last; ++block)
      elements.push_back(stages.elements[block]);
  }
  return elements;
}

BlockElements elements_of(const Stages& stages, int pipeline) {
  BlockElements elements;
  for (const BlockElements& each : block_elements(stages, pipeline)) elements += each;
  return elements;
}

// Elements of the two largest blocks that follow each other in a rank's backward passes; the last is followed by the
// next micro-batch's first. So many are gathered at a time (ZeRO 3), or keep an unreduced gradient (ZeRO 2, 3), as the
// lowering allows it (schedules/lower/passes.cpp).
double most_of_two(const std::vector<double>& each) {
  double most = each.size() == 1 ? each[0] : 0;
  for (std::size_t i = 0; i < each.size() && each.size() > 1; ++i)
    most = std::max(most, each[i] + each[(i + 1) % each.size()]);
  return most;
}

// Parameters that several ranks share. Experts that no other rank has are never sharded.
struct SharedParameters {
  bool dense = false, experts = false;
};
SharedParameters shared_parameters(const Step& step) {
  const bool dense = step.layout.data * step.layout.context > 1;
  return {dense, dispatches_tokens(step) ? expert_data_of(step.layout) > 1 : dense};
}

double trained_of_two_blocks(const Stages& stages, int pipeline) {
  const SharedParameters shared = shared_parameters(stages.step);
  std::vector<double> elements;
  for (const BlockElements& each : block_elements(stages, pipeline))
    elements.push_back(
        static_cast<double>((shared.dense ? each.trained() : 0) + (shared.experts ? each.trained_experts() : 0)));
  return most_of_two(elements);
}

double bytes_of_two_gathers(const Stages& stages, int pipeline) {
  const SharedParameters shared = shared_parameters(stages.step);
  std::vector<double> bytes;
  for (const BlockElements& each : block_elements(stages, pipeline)) {
    const std::int64_t dense = shared.dense ? each.dense : 0, experts = shared.experts ? each.experts : 0;
    const std::int64_t linears = shared.dense ? each.linears : 0;
    bytes.push_back(
        gathered_bytes(stages.step, static_cast<double>(dense + experts), static_cast<double>(linears + experts)));
  }
  return most_of_two(bytes);
}

void add_sharded(const Stages& stages, int pipeline, MemoryParts& parts) {
  const Layout& layout = stages.step.layout;
  if (layout.zero < 2) return;
  parts[MemoryPart::gradient_buckets] = trained_of_two_blocks(stages, pipeline) * bytes_of(stages.step.gradient_dtype);
  if (layout.zero == 3) parts[MemoryPart::gathered_weights] = bytes_of_two_gathers(stages, pipeline);
}

// A tied head's table is another copy where the embedding is elsewhere.
std::int64_t tied_elements(const Stages& stages, int pipeline) {
  const std::size_t last = stages.ranges.size() - 1;
  if (!reads_table(stages.blocks.back()) || !stages.on_rank(0, pipeline) || !stages.on_rank(last, pipeline)) return 0;
  const int head = static_cast<int>(stages.blocks.size()) - 1;
  const Sharding& cut = stages.shape.sharding;
  return block_shard_elements(stages.step.model, head, cut).sum() -
         block_shard_elements(stages.step.model, head, cut, true).sum();
}

// All terms except the bytes by part.
StageTerms without_parts(const Stages& stages, int pipeline) {
  const Step& step = stages.step;
  const auto width_of_rows = [](const Block& block) {
    return block.kind == BlockKind::transformer ? std::max<std::int64_t>(1, block.experts_per_token) * block.ffn : 0;
  };
  const Block& layer =
      *std::max_element(stages.blocks.begin(), stages.blocks.end(),
                        [&](const Block& a, const Block& b) { return width_of_rows(a) < width_of_rows(b); });
  const Tokens tokens = tokens_of(stages.shape);
  const double width = bytes_of(step.dtype) / 2.0;
  StageTerms terms;
  const BlockElements elements = elements_of(stages, pipeline);
  terms.parameters = static_cast<double>(elements.trained() + elements.trained_experts() -
                                         (stages.step.levers.lora.rank > 0 ? 0 : tied_elements(stages, pipeline)));
  terms.gradient_bytes = bytes_of(step.gradient_dtype);
  terms.replicas = shards_of(step.layout);
  terms.tensor = step.layout.tensor;
  terms.pipeline = step.layout.pipeline;
  terms.context = step.layout.context;
  terms.data = step.layout.data;
  terms.sequence_parallel = step.layout.sequence_parallel;
  terms.zero = step.layout.zero;
  terms.kernels = step.kernels;
  terms.hidden = width * static_cast<double>(tokens.whole * layer.hidden);
  terms.hidden_cut = width * static_cast<double>(tokens.sharded * layer.hidden);
  terms.ffn = width * static_cast<double>(tokens.whole * std::max<std::int64_t>(1, layer.experts_per_token) *
                                          layer.ffn / step.layout.tensor);
  terms.logits = width * static_cast<double>(tokens.whole * stages.blocks.back().vocab / step.layout.tensor);
  if (writes_scores(step.kernels))
    terms.scores = width * static_cast<double>(tokens.whole * (layer.heads / step.layout.tensor)) *
                   static_cast<double>(stages.shape.before + stages.shape.sequence);
  return terms;
}

// Per stage: micro-batches held on its rank at the rank's peak.
std::vector<double> held(const Stages& stages, const Kept& kept) {
  std::vector<double> count(stages.ranges.size());
  std::vector<HeldBytes> bytes;
  const bool melts = dispatches(stages.shape.sharding);  // else a pair is a forward and then a backward (pairs.h)
  for (std::size_t stage = 0; stage < count.size(); ++stage)
    bytes.push_back({sum(kept.held[stage].parts), kept.for_weights[stage], melts ? kept.block[stage] : 0});
  for (const auto& list : stages.actions) {
    const std::vector<double> at_peak = held_at_peak(list, bytes);
    for (const Action& action : list) count[action.stage] = at_peak[action.stage];
  }
  return count;
}

std::vector<StaticBytes> fixed_bytes(const Stages& stages) {
  if (!stages.own_split) return static_bytes_of(stages.step);
  std::vector<StaticBytes> bytes;
  for (int pipeline = 0; pipeline < stages.step.layout.pipeline; ++pipeline) {
    BlockElements elements = elements_of(stages, pipeline);
    const std::int64_t tied = tied_elements(stages, pipeline);
    elements.dense -= tied;
    if (stages.step.levers.lora.rank > 0) elements.frozen -= tied;
    bytes.push_back(static_bytes_of(elements, stages.step));
  }
  return bytes;
}

}  // namespace

std::vector<StageTerms> counted_memory(const Step& step, const CountedAs& as) {
  const Stages stages(step, as);
  const Kept kept = kept_of(stages);
  const std::vector<double> in_flight = held(stages, kept);
  const std::vector<StaticBytes> fixed = fixed_bytes(stages);
  std::vector<StageTerms> memory;
  for (int pipeline = 0; pipeline < step.layout.pipeline; ++pipeline) {
    StageTerms terms = without_parts(stages, pipeline);
    KeptBytes bytes, at_work;
    for (std::size_t stage = 0; stage < stages.ranges.size(); ++stage) {
      if (!stages.on_rank(stage, pipeline)) continue;
      bytes += {in_flight[stage] * kept.held[stage].parts, in_flight[stage] * kept.held[stage].optional};
      terms.layers_kept += stages.layers(stage) * in_flight[stage];
      if (stages.has_embedding(stage)) terms.embeddings_held = in_flight[stage];
      if (stages.has_head(stage)) terms.heads_held = in_flight[stage];
      keep_larger(kept.at_work[stage], at_work);
    }
    bytes += at_work;
    terms.optional = bytes.optional;
    MemoryParts& parts = terms.parts = bytes.parts;
    if (step.recompute == Recompute::full) terms.layers_kept = 1;
    const StaticBytes& of_rank = fixed[pipeline];
    parts[MemoryPart::weights] = of_rank.weights;
    parts[MemoryPart::gradients] = of_rank.gradients;
    parts[MemoryPart::optimizer] = of_rank.optimizer;
    add_sharded(stages, pipeline, parts);
    memory.push_back(terms);
  }
  return memory;
}

}  // namespace slipway::schedules
