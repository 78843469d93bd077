#include "exec/optimizer.h"

#include <ATen/ATen.h>

#include <optional>
#include <stdexcept>

namespace slipway {

std::vector<DecayRange> decay_ranges(const BlockParameters& block, std::int64_t begin, std::int64_t end) {
  std::vector<DecayRange> ranges;
  for (const ShardedParameter& parameter : block.parameters) {
    const auto [from, to] = range_within(parameter, begin, end);
    if (from >= to) continue;
    if (!ranges.empty() && ranges.back().decays == parameter.meta.decays)
      ranges.back().end = to;
    else
      ranges.push_back({from, to, parameter.meta.decays});
  }
  return ranges;
}

AdamwShard::AdamwShard(const BlockParameters& block, std::int64_t begin, std::int64_t end, at::Tensor slice)
    : begin_(begin) {
  if (!slice.defined()) slice = block.weights.narrow(0, begin, end - begin);
  for (const DecayRange& range : decay_ranges(block, begin, end)) {
    Range mine;
    mine.weight = slice.narrow(0, range.begin - begin, range.end - range.begin);
    const bool wide = mine.weight.element_size() >= 4;
    mine.master = wide ? mine.weight : mine.weight.to(at::kFloat);
    mine.mean = at::zeros_like(mine.master);
    mine.square = at::zeros_like(mine.master);
    mine.steps = at::zeros({}, mine.master.options().dtype(at::kFloat));
    mine.begin = range.begin - begin;
    mine.decays = range.decays;
    ranges_.push_back(std::move(mine));
  }
}

const AdamwShard::Range& AdamwShard::range_of(std::int64_t from, std::int64_t to) const {
  for (const Range& range : ranges_)
    if (range.begin <= from - begin_ && to - begin_ <= range.begin + range.elements()) return range;
  throw std::logic_error("elements of a parameter are not in one range of the optimizer");
}

ParameterState AdamwShard::state(std::int64_t from, std::int64_t to) const {
  const Range& range = range_of(from, to);
  const auto part = [&](const at::Tensor& all) { return all.narrow(0, from - begin_ - range.begin, to - from); };
  return {part(range.master), part(range.mean), part(range.square),
          static_cast<std::int64_t>(range.steps.item<float>())};
}

void AdamwShard::restore(std::int64_t from, std::int64_t to, const ParameterState& stored) {
  at::NoGradGuard no_grad;
  const Range& range = range_of(from, to);
  const ParameterState mine = state(from, to);
  mine.master.copy_(stored.master);
  mine.mean.copy_(stored.mean);
  mine.square.copy_(stored.square);
  range.steps.fill_(static_cast<double>(stored.updates));
  if (!range.weight.is_same(range.master))
    range.weight.narrow(0, from - begin_ - range.begin, to - from).copy_(mine.master);
}

void AdamwShard::step(const at::Tensor& gradient, const Optimizer& optimizer, double rate, const at::Tensor& scale) {
  at::NoGradGuard no_grad;
  // AdamW's own pass takes a divisor, a float32 one: it saves a pass over the gradients.
  at::Tensor divisor;
  if (scale.defined()) divisor = scale.reciprocal().to(at::kFloat);
  for (Range& range : ranges_) {
    at::Tensor part = gradient.narrow(0, range.begin, range.master.size(0)).to(range.master.scalar_type());
    std::optional<at::Tensor> divides;
    if (scale.defined() && range.master.scalar_type() == at::kFloat) divides = divisor;
    if (scale.defined() && !divides) part = part * scale;
    range.steps.add_(1);
    at::_fused_adamw_({range.master}, {part}, {range.mean}, {range.square}, {}, {range.steps}, rate, optimizer.beta1,
                      optimizer.beta2, range.decays ? optimizer.weight_decay : 0.0,
                      optimizer.epsilon, /*amsgrad=*/false, /*maximize=*/false, divides);
    if (!range.weight.is_same(range.master)) range.weight.copy_(range.master);
  }
}

}  // namespace slipway
