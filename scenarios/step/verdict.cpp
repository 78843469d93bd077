#include "scenarios/step/verdict.h"

#include <algorithm>
#include <stdexcept>

#include "models/model/operator_cost.h"
#include "models/model/parameters.h"
#include "scenarios/step/prepared_step.h"
#include "schedules/lower/segments.h"
#include "schedules/memory/in_flight.h"

namespace slipway::scenarios {

namespace {

struct Stages {
  explicit Stages(const Scenario& of)
      : scenario(of),
        step(of.step),
        shape(work_shape(of.step)),
        blocks(blocks_of(of.step.model)),
        actions(action_lists(of.step)),
        placement(placement_of(actions, schedule_shape(of.step))) {
    for (int copy = 0; copy < placement.copies; ++copy)
      for (const BlockRange& range : split_blocks(of.step.model, of.step.layout)) ranges.push_back(range);
  }

  bool on_rank(std::size_t stage, int pipeline) const { return placement.rank[stage] == pipeline; }
  bool has_embedding(std::size_t stage) const { return placement.is_first(static_cast<int>(stage)); }
  bool has_head(std::size_t stage) const { return placement.is_last(static_cast<int>(stage)); }
  double layers(std::size_t stage) const {
    return ranges[stage].last - ranges[stage].first - (has_embedding(stage) ? 1 : 0) - (has_head(stage) ? 1 : 0);
  }

  const Scenario& scenario;
  const Step& step;
  WorkShape shape;  // of one micro-batch
  std::vector<Block> blocks;
  ActionLists actions;
  Placement placement;
  std::vector<BlockRange> ranges;  // per stage
};

// Bytes that one micro-batch keeps on each stage; under full recompute without the layer at work.
struct Kept {
  std::vector<MemoryParts> parts;    // per stage
  std::vector<MemoryParts> at_work;  // per stage: its largest recomputed block
  std::vector<double> for_weights;   // per stage: bytes between split input and weight gradients
};

// The executor keeps gathered keys and values, and what it gathers when it recomputes a layer. A trainer does not: its
// constants come from its own runs (memory_constants.h).
void add_gathered(const Operator& gather, const Block& block, const Stages& stages, MemoryParts& parts) {
  if (!stages.scenario.trainer.machine.empty()) return;
  const bool recomputed = is_recomputed(stages.step.recompute, block);
  if (!gathers_keys_values(gather) && !(recomputed && gathers_input(gather))) return;
  parts[part_of_gathered(gather, block)] += bytes_beside_shard(gather, block, stages.shape.sharding, recomputed);
}

MemoryParts of_block(const std::vector<Operator>& operators, const Stages& stages, int index) {
  MemoryParts parts;
  const Block& block = stages.blocks[index];
  for (const Operator& op : operators) {
    if (op.block != index) continue;
    add_kept(op, block, stages.shape, parts);
    add_gathered(op, block, stages, parts);
  }
  return parts;
}

double left_for_weights(const std::vector<Operator>& operators, const Stages& stages) {
  double bytes = 0;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Block& block = stages.blocks[operators[i].block];
    const bool comes_again = input_comes_again(operators, static_cast<int>(i), block, stages.step.recompute);
    bytes += bytes_for_weight_grads(std::span(&operators[i], 1), comes_again);
    if (comes_again) bytes += operators[i - 1].message_bytes / stages.step.layout.tensor;
  }
  return bytes;
}

Kept kept_of(const Stages& of) {
  Kept kept;
  Stages stages = of;  // unfused scores of a slice: the mean over all slices, which live at the peak
  stages.shape.before = (stages.step.slices - 1) * stages.step.model->sequence / 2;
  const bool full = stages.step.recompute == Recompute::full;
  const double residual = boundary_bytes(stages.scenario.step.model, stages.shape);
  for (const BlockRange& range : stages.ranges) {
    MemoryParts parts, at_work;
    const auto operators = operators_of(stages.scenario.step.model, range.first, range.last, stages.shape);
    for (int block = range.first; block < range.last; ++block) {
      const MemoryParts own = of_block(operators, stages, block);
      if (!full || stages.blocks[block].kind != BlockKind::transformer) {
        parts += own;
        continue;
      }
      parts[MemoryPart::layer_inputs] += residual;
      if (sum(own) > sum(at_work)) at_work = own;
    }
    kept.parts.push_back(parts);
    kept.for_weights.push_back(left_for_weights(operators, stages));
    kept.at_work.push_back(at_work);
  }
  return kept;
}

double elements_of(const Stages& stages, int pipeline) {
  double elements = 0;
  for (std::size_t stage = 0; stage < stages.ranges.size(); ++stage) {
    if (!stages.on_rank(stage, pipeline)) continue;
    for (int block = stages.ranges[stage].first; block < stages.ranges[stage].last; ++block)
      elements += static_cast<double>(
          block_shard_elements(stages.scenario.step.model, block, stages.scenario.step.layout.tensor));
  }
  return elements;
}

// Elements of the two largest blocks that follow each other in a rank's backward passes; the last is followed by the
// next micro-batch's first. So many are gathered at a time (ZeRO 3), or keep an unreduced gradient (ZeRO 2, 3), as the
// lowering allows it (schedules/lower/passes.cpp).
double elements_of_two_blocks(const Stages& stages, int pipeline) {
  std::vector<double> elements;
  for (std::size_t stage = 0; stage < stages.ranges.size(); ++stage) {
    if (!stages.on_rank(stage, pipeline)) continue;
    for (int block = stages.ranges[stage].first; block < stages.ranges[stage].last; ++block)
      elements.push_back(static_cast<double>(
          block_shard_elements(stages.scenario.step.model, block, stages.scenario.step.layout.tensor)));
  }
  double most = elements.size() == 1 ? elements[0] : 0;
  for (std::size_t i = 0; i < elements.size() && elements.size() > 1; ++i)
    most = std::max(most, elements[i] + elements[(i + 1) % elements.size()]);
  return most;
}

// Counts book bytes only; no trainer's constants cover these parts.
void add_sharded(const Stages& stages, int pipeline, MemoryParts& parts) {
  const Layout& layout = stages.scenario.step.layout;
  if (layout.zero < 2 || layout.data * layout.context == 1) return;
  const double elements = elements_of_two_blocks(stages, pipeline);
  parts[MemoryPart::gradient_buckets] = elements * bytes_of(stages.step.gradient_dtype);
  if (layout.zero == 3) parts[MemoryPart::gathered_weights] = elements * bytes_of(stages.scenario.step.dtype);
}

// All terms except the bytes by part.
StageTerms without_parts(const Stages& stages, int pipeline) {
  const Scenario& s = stages.scenario;
  const Block& layer = stages.blocks[1];
  const Tokens tokens = tokens_of(stages.shape);
  const double width = bytes_of(s.step.dtype) / 2.0;
  StageTerms terms;
  terms.parameters = elements_of(stages, pipeline);
  terms.gradient_bytes = bytes_of(stages.step.gradient_dtype);
  terms.replicas = static_cast<double>(s.step.layout.data) * s.step.layout.context;
  terms.tensor = s.step.layout.tensor;
  terms.pipeline = s.step.layout.pipeline;
  terms.context = s.step.layout.context;
  terms.zero = s.step.layout.zero;
  terms.kernels = s.step.kernels;
  terms.hidden = width * static_cast<double>(tokens.whole * layer.hidden);
  terms.hidden_cut = width * static_cast<double>(tokens.sharded * layer.hidden);
  terms.ffn = width * static_cast<double>(tokens.whole * std::max<std::int64_t>(1, layer.experts_per_token) *
                                          layer.ffn / s.step.layout.tensor);
  return terms;
}

// Per stage: micro-batches held on its rank at the rank's peak.
std::vector<double> held(const Stages& stages, const Kept& kept) {
  std::vector<double> count(stages.ranges.size());
  std::vector<HeldBytes> bytes;
  for (std::size_t stage = 0; stage < count.size(); ++stage)
    bytes.push_back({sum(kept.parts[stage]), kept.for_weights[stage]});
  for (const auto& list : stages.actions) {
    const std::vector<double> at_peak = held_at_peak(list, bytes);
    for (const Action& action : list) count[action.stage] = at_peak[action.stage];
  }
  return count;
}

}  // namespace

std::vector<MemoryParts> formula_memory(const Scenario& scenario) {
  const Stages stages(scenario);
  MemoryInput input = memory_input(scenario.step.model, stages.shape);
  input.pipeline = scenario.step.layout.pipeline;
  input.data = scenario.step.layout.data * stages.placement.copies;  // copies share the optimizer too
  input.zero = scenario.step.layout.zero;
  input.gradient_dtype = stages.step.gradient_dtype;
  input.recompute = stages.step.recompute;
  const std::vector<double> in_flight = held(stages, kept_of(stages));
  std::vector<MemoryParts> memory;
  for (int pipeline = 0; pipeline < scenario.step.layout.pipeline; ++pipeline) {
    std::vector<StageShare> shares;
    for (std::size_t stage = 0; stage < stages.ranges.size(); ++stage) {
      if (stages.on_rank(stage, pipeline))
        shares.push_back({stages.layers(stage), stages.has_embedding(stage), stages.has_head(stage), in_flight[stage]});
    }
    memory.push_back(stage_memory(input, shares));
  }
  return memory;
}

std::vector<StageTerms> counted_memory(const Scenario& scenario) {
  const Stages stages(scenario);
  const Kept kept = kept_of(stages);
  const std::vector<double> in_flight = held(stages, kept);
  const std::vector<StaticBytes> fixed = static_bytes_of(stages.step);
  std::vector<StageTerms> memory;
  for (int pipeline = 0; pipeline < scenario.step.layout.pipeline; ++pipeline) {
    StageTerms terms = without_parts(stages, pipeline);
    MemoryParts& parts = terms.parts;
    MemoryParts at_work;
    for (std::size_t stage = 0; stage < stages.ranges.size(); ++stage) {
      if (!stages.on_rank(stage, pipeline)) continue;
      parts += in_flight[stage] * kept.parts[stage];
      terms.layers_kept += stages.layers(stage) * in_flight[stage];
      if (stages.has_embedding(stage)) terms.embeddings_held = in_flight[stage];
      if (sum(kept.at_work[stage]) > sum(at_work)) at_work = kept.at_work[stage];
    }
    parts += at_work;
    if (stages.step.recompute == Recompute::full) terms.layers_kept = 1;
    const StaticBytes& of_rank = fixed[pipeline];
    parts[MemoryPart::weights] = of_rank.weights;
    parts[MemoryPart::gradients] = of_rank.gradients;
    parts[MemoryPart::optimizer] = of_rank.optimizer;
    add_sharded(stages, pipeline, parts);
    memory.push_back(terms);
  }
  return memory;
}

namespace {

bool has_constants(const Scenario& scenario) { return !scenario.trainer.machine.empty(); }

// Empty without a closed form, and where a trainer's own constants replace it.
std::vector<MemoryParts> closed_form(const Scenario& scenario) {
  if (has_constants(scenario)) return {};
  try {
    return formula_memory(scenario);
  } catch (const std::invalid_argument&) {
    return {};  // another model family, without a formula
  }
}

void raise(StageNeed& need, double bytes, MemoryWay way) {
  if (bytes <= need.bytes) return;
  need.bytes = bytes;
  need.way = way;
}

}  // namespace

std::vector<StageNeed> stage_needs(const Scenario& scenario, const std::vector<OnTimeline>& timeline) {
  const std::vector<StageTerms> terms = counted_memory(scenario);
  const std::vector<MemoryParts> formula = closed_form(scenario);
  const std::vector<double> capacities = memory_capacities(scenario);
  const std::size_t per_stage = capacities.size() / terms.size();
  std::vector<StageNeed> needs;
  for (std::size_t stage = 0; stage < terms.size(); ++stage) {
    const auto first = capacities.begin() + static_cast<std::ptrdiff_t>(stage * per_stage);
    const auto least = std::min_element(first, first + static_cast<std::ptrdiff_t>(per_stage));
    const OnTimeline seen = timeline.empty() ? OnTimeline{} : timeline[stage];
    StageNeed& need = needs.emplace_back();
    need.rank = static_cast<int>(least - capacities.begin());
    need.capacity = *least;
    need.bytes = peak_bytes(terms[stage], scenario.trainer) + seen.kept_for_bubble_work;
    if (!formula.empty()) raise(need, sum(formula[stage]), MemoryWay::closed_form);
    raise(need, seen.bytes, MemoryWay::timeline);
  }
  return needs;
}

Verdict verdict_of(const Scenario& scenario, const std::vector<StageNeed>& needs) {
  Verdict verdict;
  for (std::size_t stage = 0; stage < needs.size(); ++stage) {
    const StageNeed& need = needs[stage];
    const double usable = need.capacity * scenario.trainer.usable_share;
    verdict.fits &= need.bytes <= usable;
    verdict.fits_cautious &= need.bytes <= need.capacity * scenario.trainer.cautious_share;
    if (stage > 0 && need.bytes * verdict.usable <= verdict.bytes * usable) continue;
    verdict.fullest = static_cast<int>(stage);
    verdict.rank = need.rank;
    verdict.bytes = need.bytes;
    verdict.usable = usable;
    verdict.way = need.way;
  }
  return verdict;
}

Verdict verdict_of(const Scenario& scenario) { return verdict_of(scenario, stage_needs(scenario)); }

std::string way_text(const Scenario& scenario, MemoryWay way) {
  if (way == MemoryWay::timeline) return "on the simulated timeline";
  if (way == MemoryWay::closed_form) return "by the closed form of Fujii et al. 2024";
  const MemoryConstants& trainer = scenario.trainer;
  if (!has_constants(scenario)) return "counted tensor by tensor, without a trainer's own buffers (cluster.stack)";
  const std::string& machine = scenario.cluster.groups[0].machine.name;
  return "as " + trainer.name +
         (trainer.machine == machine ? "" : " on " + trainer.machine + " (not measured on " + machine + ")") +
         " takes it";
}

}  // namespace slipway::scenarios
