#include "exec/rank/buckets.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "exec/operators/gathered_weights.h"
#include "exec/rank/gradient_dump.h"
#include "exec/rank/parameter_state.h"
#include "models/training/kfac.h"
#include "schedules/step/placement.h"

namespace slipway::exec {

namespace {

// Gradients are summed in the requested dtype, but never in less than the weights'.
at::ScalarType gradient_dtype(const TaskGraph& graph) {
  const at::ScalarType weight = torch_dtype(graph.step.dtype), asked = torch_dtype(graph.step.gradient_dtype);
  return c10::elementSize(asked) >= c10::elementSize(weight) ? asked : weight;
}

// [1] float64. All parts are read once together, and summed in float64 without a copy in it.
at::Tensor squares_of(const std::vector<at::Tensor>& parts, at::Device device) {
  if (parts.empty()) return at::zeros({1}, at::TensorOptions().dtype(at::kDouble).device(device));
  return at::stack(at::_foreach_norm(parts, 2, at::kDouble)).square().sum().reshape({1});
}

}  // namespace

Buckets::Buckets(const Bundle& bundle, int rank, at::Device device)
    : bundle_(bundle), at_(coordinates_of(bundle.graph.step.layout, rank)), device_(device) {
  const TaskGraph& graph = bundle.graph;
  const Layout& layout = graph.step.layout;
  if (layout.zero >= 1) slice_count_ = layout.data * layout.context * graph.placement.copies;
  if (dispatches_tokens(graph.step)) experts_ = expert_place_of(layout, rank);
  ParameterPlacement placement;
  placement.tensor_rank = at_.tensor;
  placement.tensor_degree = layout.tensor;
  placement.sequence_parallel = layout.sequence_parallel;
  placement.experts_apart = experts_;
  placement.weight_dtype = torch_dtype(graph.step.dtype);
  placement.gradient_dtype = gradient_dtype(graph);
  placement.device = device;
  const bool one_table = shares_table(graph.step.model, layout, graph.placement);
  for (int stage = 0; stage < graph.placement.stages(); ++stage) {
    if (graph.placement.rank[stage] != at_.pipeline) continue;
    const BlockRange& range = graph.stages[stage];
    for (int block = range.first; block < range.last; ++block) {
      const auto made = buckets_.emplace(Key{block, false}, make_bucket(stage, {block, false}, placement)).first;
      if (block == 0 && one_table) placement.table = &made->second.parameters;
      if (!experts_ || blocks_of(graph.step.model)[block].experts == 0) continue;
      const auto apart = buckets_.emplace(Key{block, true}, make_bucket(stage, {block, true}, placement)).first;
      const std::vector<ShardedParameter>& experts = apart->second.parameters.parameters;
      std::vector<ShardedParameter>& elsewhere = made->second.parameters.elsewhere;
      elsewhere.insert(elsewhere.end(), experts.begin(), experts.end());
    }
  }
}

// In the order of the data groups' communicators (schedules/lower/groups.cpp).
Buckets::Holders Buckets::holders_of(int stage, bool experts) const {
  const Layout& layout = bundle_.graph.step.layout;
  const std::vector<std::int32_t> holders = bundle_.graph.placement.holders(bundle_.graph.placement.part_of(stage));
  const auto copy = static_cast<int>(std::find(holders.begin(), holders.end(), at_.pipeline) - holders.begin());
  const int each = experts ? expert_data_of(layout) : layout.data * layout.context;
  const int own = experts ? experts_->replica : at_.data * layout.context + at_.context;
  return {copy * each + own, layout.zero >= 1 ? each * bundle_.graph.placement.copies : 1};
}

Buckets::Bucket Buckets::make_bucket(int stage, Key key, ParameterPlacement placement) const {
  const Holders holders = holders_of(stage, key.experts);
  placement.slices = holders.slices;
  placement.experts = key.experts;
  BlockParameters parameters = make_parameters(bundle_.graph.step.model, key.block, bundle_.run.seed, placement);
  if (uses_kfac(bundle_.graph.step))
    for (const KfacLinear& linear : kfac_linears(blocks_of(bundle_.graph.step.model)[key.block]))
      for (ShardedParameter& parameter : parameters.parameters)
        parameter.natural |= parameter.meta.name.ends_with(linear.parameter);
  const std::int64_t slice = parameters.weights.size(0) / holders.slices;
  const std::int64_t begin = holders.slices > 1 ? holders.replica * slice : 0, end = begin + slice;
  // Under ZeRO 1 it is reduced in place; later stages give the bucket's memory away.
  const bool shards_gradient = shards_gradients(holders);
  const at::Tensor gradient = shards_gradient ? at::zeros({slice}, parameters.gradients.options())
                                              : parameters.gradients.narrow(0, begin, slice);
  const bool shards_weights = holders.slices > 1 && bundle_.graph.step.layout.zero >= 3;
  const at::Tensor weights = shards_weights ? parameters.weights.narrow(0, begin, slice).clone() : at::Tensor();
  OptimizerShard optimizer(parameters, begin, end, weights);
  if (shards_gradient) free_memory(parameters.gradients);
  auto gathered = shards_weights ? std::make_shared<GatheredWeights>(parameters.weights) : nullptr;
  return {
      stage, holders, std::move(parameters), begin, end, gradient, std::move(optimizer), weights, std::move(gathered)};
}

const Buckets::Bucket& Buckets::bucket(Key key) const {
  const auto found = buckets_.find(key);
  if (found == buckets_.end())
    throw std::runtime_error(std::string(key.experts ? "experts of " : "") + "block " + std::to_string(key.block) +
                             " are not on pipeline rank " + std::to_string(at_.pipeline));
  return found->second;
}

const BlockParameters& Buckets::block(int index) const { return bucket(index).parameters; }

std::vector<int> Buckets::blocks() const {
  std::vector<int> held;
  for (const auto& [key, bucket] : buckets_)
    if (!key.experts) held.push_back(key.block);
  return held;
}

template <typename Visit>
void Buckets::for_each(int stage, Visit visit) const {
  for (const auto& [key, bucket] : buckets_)
    if (stage == none || bucket.stage == stage) visit(bucket);
}

at::Tensor Buckets::tied_gradient(int stage) const {
  const Placement& placement = bundle_.graph.placement;
  const int first = (stage == none ? 0 : placement.copy_of(stage)) * placement.parts();
  const bool embedding = placement.rank[first] == at_.pipeline;
  const Bucket& holder = embedding ? buckets_.begin()->second : buckets_.rbegin()->second;
  const char* name = embedding ? "embedding.weight" : "head.weight";
  return parameter_named(holder.parameters, name).gradient.flatten();
}

Message Buckets::message(const Work& work) const {
  switch (work.kind) {
    case WorkKind::norm_grad_reduce: {
      const BlockParameters& parameters = block(work.block);
      const Bucket& mine = bucket(work.block);
      const std::int64_t end = std::min(mine.end, parameters.tensor_sum);
      // All tensor ranks of a replica have the same part of it in their slices, which may be empty.
      if (shards_dense_gradients() && end <= mine.begin) {
        const at::Tensor nothing = at::zeros({1}, mine.slice_gradient.options());
        return {nothing, nothing};
      }
      const at::Tensor summed = shards_dense_gradients() ? mine.slice_gradient.narrow(0, 0, end - mine.begin)
                                                         : parameters.gradients.narrow(0, 0, parameters.tensor_sum);
      return {summed, summed};
    }
    case WorkKind::kv_grad_reduce: {
      const std::vector<at::Tensor> parts = copied_gradients(work.block);
      // Its ranks have the same part of it in their slices, which may be empty.
      const at::Tensor sum =
          parts.empty() ? at::zeros({1}, bucket(work.block).slice_gradient.options()) : at::cat(parts);
      return {sum, sum};
    }
    case WorkKind::tied_grad_reduce: {
      const at::Tensor copy = shards_dense_gradients() ? tied_of_slices() : tied_gradient(work.stage);
      return {copy, copy};
    }
    case WorkKind::grad_reduce: {  // in place, or this rank's slice of the reduced bucket
      const Bucket& mine = bucket(work);
      return {mine.parameters.gradients, mine.slice_gradient};
    }
    case WorkKind::parameter_gather: {
      const Bucket& mine = bucket(work);
      return {mine.parameters.weights.narrow(0, mine.begin, mine.end - mine.begin), mine.parameters.weights};
    }
    default:
      throw std::runtime_error("this kind of work moves no bucket");
  }
}

void Buckets::prepare(Key key) {
  const Bucket& mine = bucket(key);
  const at::Tensor& gradients = mine.parameters.gradients;
  if (!shards_gradients(mine.holders) || has_memory(gradients)) return;
  allocate_memory(gradients);
  gradients.zero_();
  std::erase_if(waiting_, [&](const WaitingGradient& small) {
    if (!small.into.is_alias_of(gradients)) return false;
    small.add();
    return true;
  });
}

void Buckets::add_when_prepared(std::vector<WaitingGradient> small) {
  for (WaitingGradient& one : small) waiting_.push_back(std::move(one));
}

at::Tensor Buckets::take(Key key) { return take_memory(bucket(key).parameters.gradients); }

at::Tensor Buckets::empty_slice(Key key) const { return at::empty_like(bucket(key).slice_gradient); }

void Buckets::add_to_slice(Key key, const at::Tensor& reduced) { bucket(key).slice_gradient.add_(reduced); }

at::Tensor Buckets::gathered_weights(Key key) const {
  const Bucket& mine = bucket(key);
  return mine.gathered ? mine.parameters.weights : at::Tensor();
}

template <typename Visit>
void Buckets::for_tied_parts(const at::Tensor& whole, Visit visit) const {
  for (const auto& [key, mine] : buckets_) {
    for (const char* name : {"embedding.weight", "head.weight"}) {
      const ShardedParameter* copy = find_parameter(mine.parameters, name);
      if (copy == nullptr) continue;
      const FlatRange range = range_within(*copy, mine.begin, mine.end);
      if (range.empty()) continue;
      visit(whole.narrow(0, range.from - copy->offset, range.elements()),
            mine.slice_gradient.narrow(0, range.from - mine.begin, range.elements()));
    }
  }
}

at::Tensor Buckets::tied_of_slices() const {
  at::Tensor whole = at::zeros_like(tied_gradient(none));
  for_tied_parts(whole, [](at::Tensor part, const at::Tensor& mine) { part.add_(mine); });
  return whole;
}

void Buckets::keep_tied(const at::Tensor& whole) {
  for_tied_parts(whole, [](const at::Tensor& part, at::Tensor mine) { mine.copy_(part); });
}

std::vector<at::Tensor> Buckets::copied_gradients(int block) const {
  const Bucket& mine = bucket(block);
  const bool in_slice = shards_dense_gradients();
  const at::Tensor& flat = in_slice ? mine.slice_gradient : mine.parameters.gradients;
  const std::int64_t begin = in_slice ? mine.begin : 0, end = in_slice ? mine.end : mine.parameters.elements;
  std::vector<at::Tensor> parts;
  for (const ShardedParameter& parameter : mine.parameters.parameters) {
    const std::int64_t last = parameter.offset + parameter.elements;
    const FlatRange copied{std::max(begin, last - copied_elements(parameter.meta, bundle_.graph.step.layout.tensor)),
                           std::min(end, last)};
    if (!copied.empty()) parts.push_back(flat.narrow(0, copied.from - begin, copied.elements()));
  }
  return parts;
}

void Buckets::keep_copied(int block, const at::Tensor& sum) {
  std::int64_t at = 0;
  for (at::Tensor part : copied_gradients(block)) {
    part.copy_(sum.narrow(0, at, part.size(0)));
    at += part.size(0);
  }
}

std::vector<Piece> Buckets::own_pieces(const ShardedParameter& parameter) const {
  const int degree = bundle_.graph.step.layout.tensor;
  if (copies_of(parameter.meta, degree) == 1) return parameter.pieces;
  return own_pieces_of(parameter.meta, at_.tensor, degree);
}

FlatRange Buckets::own_range(const ShardedParameter& parameter, std::int64_t begin, std::int64_t end) const {
  const std::int64_t copied = copied_elements(parameter.meta, bundle_.graph.step.layout.tensor);
  const bool has_all = own_pieces(parameter).size() == parameter.pieces.size();
  FlatRange range = range_within(parameter, begin, end);
  range.to = std::min(range.to, parameter.offset + parameter.elements - (has_all ? 0 : copied));
  return range;
}

Message Buckets::gather(Key key, std::shared_ptr<void>& hold) {
  const Bucket& mine = bucket(key);
  GatheredWeights::Use use = mine.gathered->use();
  hold = std::move(use.hold);
  // Weights that another pass still uses are complete already; they are not written again.
  return {mine.slice_weights,
          use.is_new ? mine.gathered->target()
                     : at::empty({mine.slice_weights.size(0) * mine.holders.slices}, mine.slice_weights.options())};
}

at::Tensor Buckets::square_sum(int stage) const {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for_each(stage, [&](const Bucket& mine) {
    if (mine.holders.slices == 1 && mine.holders.replica > 0) return;  // counted on the first replica
    for (const ShardedParameter& parameter : mine.parameters.parameters) {
      const FlatRange range = own_range(parameter, mine.begin, mine.end);
      if (!counts(parameter) || range.empty()) continue;
      parts.push_back(mine.slice_gradient.narrow(0, range.from - mine.begin, range.elements()));
    }
  });
  return squares_of(parts, device_);
}

at::Tensor Buckets::whole_square_sum(int block, const at::Tensor& flat) const {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const ShardedParameter& parameter : bucket(block).parameters.parameters)
    if (counts(parameter))
      parts.push_back(flat.narrow(0, parameter.offset, own_range(parameter, 0, flat.size(0)).elements()));
  return squares_of(parts, flat.device());
}

void Buckets::step(int stage, double rate, const at::Tensor& scale) {
  for (auto& [key, mine] : buckets_) {
    if (stage != none && mine.stage != stage) continue;
    mine.optimizer.step(mine.slice_gradient, bundle_.graph.step.optimizer, rate, scale);
    (shards_gradients(mine.holders) ? mine.slice_gradient : mine.parameters.gradients).zero_();
  }
}

void Buckets::dump(int stage, std::ostream& out) const {
  for_each(stage, [&](const Bucket& mine) {
    write_gradients(out, mine.parameters, mine.slice_gradient, mine.begin, mine.end);
  });
}

// Saving and restoring the buckets' state for checkpoints.

void Buckets::save(ShardWriter& out) const {
  for (const auto& [key, mine] : buckets_) {
    if (mine.holders.slices == 1 && mine.holders.replica > 0) continue;
    for (const ShardedParameter& parameter : mine.parameters.parameters) {
      const FlatRange range = own_range(parameter, mine.begin, mine.end);
      if (range.empty() || (parameter.meta.shard_dim < 0 && at_.tensor > 0)) continue;
      add_entry(out, parameter.meta, {own_pieces(parameter), parameter.across}, range.from - parameter.offset,
                range.to - parameter.offset, mine.optimizer.state(range.from, range.to));
    }
  }
}

void Buckets::load(const std::function<ParameterState(const Parameter&)>& whole) {
  at::NoGradGuard no_grad;
  for (auto& [key, mine] : buckets_) {
    for (ShardedParameter& parameter : mine.parameters.parameters) {
      const ParameterState shard =
          shard_of(whole(parameter.meta), parameter.meta, {parameter.pieces, parameter.across});
      if (has_memory(mine.parameters.weights))  // under ZeRO 3 they are gathered from the slices
        mine.parameters.weights.narrow(0, parameter.offset, parameter.elements).copy_(shard.master);
      const FlatRange range = range_within(parameter, mine.begin, mine.end);
      if (range.empty()) continue;
      const auto part = [&](const at::Tensor& all) {
        return all.narrow(0, range.from - parameter.offset, range.elements());
      };
      mine.optimizer.restore(range.from, range.to,
                             {part(shard.master), part(shard.mean), part(shard.square), shard.updates});
    }
  }
}

}  // namespace slipway::exec
