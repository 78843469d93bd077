#include "exec/rank/optimizer.h"

#include <ATen/ATen.h>

#include <stdexcept>

namespace slipway::exec {

std::vector<UpdateRange> update_ranges(const BlockParameters& block, std::int64_t begin, std::int64_t end) {
  std::vector<UpdateRange> ranges;
  for (const ShardedParameter& parameter : block.parameters) {
    const auto [from, to] = range_within(parameter, begin, end);
    if (from >= to) continue;
    const UpdateRange next{from, to, parameter.meta.decays, parameter.natural, parameter.meta.balances};
    const UpdateRange* const last = ranges.empty() ? nullptr : &ranges.back();
    if (last && last->decays == next.decays && last->natural == next.natural && last->balances == next.balances)
      ranges.back().end = to;
    else
      ranges.push_back(next);
  }
  return ranges;
}

OptimizerShard::OptimizerShard(const BlockParameters& block, std::int64_t begin, std::int64_t end, at::Tensor slice)
    : begin_(begin) {
  if (!slice.defined()) slice = block.weights.narrow(0, begin, end - begin);
  for (const UpdateRange& range : update_ranges(block, begin, end)) {
    Range mine;
    mine.weight = slice.narrow(0, range.begin - begin, range.end - range.begin);
    const bool wide = mine.weight.element_size() >= 4;
    mine.master = wide ? mine.weight : mine.weight.to(at::kFloat);
    mine.begin = range.begin - begin;
    mine.decays = range.decays;
    mine.natural = range.natural;
    mine.balances = range.balances;
    if (mine.has_moments()) {
      mine.mean = at::zeros_like(mine.master);
      mine.square = at::zeros_like(mine.master);
      mine.steps = at::zeros({}, mine.master.options().dtype(at::kFloat));
    }
    ranges_.push_back(std::move(mine));
  }
}

const OptimizerShard::Range& OptimizerShard::range_of(std::int64_t from, std::int64_t to) const {
  for (const Range& range : ranges_)
    if (range.begin <= from - begin_ && to - begin_ <= range.begin + range.elements()) return range;
  throw std::logic_error("elements of a parameter are not in one range of the optimizer");
}

ParameterState OptimizerShard::state(std::int64_t from, std::int64_t to) const {
  const Range& range = range_of(from, to);
  const auto part = [&](const at::Tensor& all) { return all.narrow(0, from - begin_ - range.begin, to - from); };
  if (!range.has_moments())
    return {part(range.master), at::zeros_like(part(range.master)), at::zeros_like(part(range.master)), 0};
  return {part(range.master), part(range.mean), part(range.square),
          static_cast<std::int64_t>(range.steps.item<float>())};
}

void OptimizerShard::restore(std::int64_t from, std::int64_t to, const ParameterState& stored) {
  at::NoGradGuard no_grad;
  const Range& range = range_of(from, to);
  const ParameterState mine = state(from, to);
  mine.master.copy_(stored.master);
  if (range.has_moments()) {
    mine.mean.copy_(stored.mean);
    mine.square.copy_(stored.square);
    range.steps.fill_(static_cast<double>(stored.updates));
  }
  if (!range.weight.is_same(range.master))
    range.weight.narrow(0, from - begin_ - range.begin, to - from).copy_(mine.master);
}

void OptimizerShard::step_adamw(Range& range, const at::Tensor& gradient, const Optimizer& optimizer, double rate,
                                const std::optional<at::Tensor>& divisor) {
  range.steps.add_(1);
  at::_fused_adamw_({range.master}, {gradient}, {range.mean}, {range.square}, {}, {range.steps}, rate, optimizer.beta1,
                    optimizer.beta2, range.decays ? optimizer.weight_decay : 0.0, optimizer.epsilon, /*amsgrad=*/false,
                    /*maximize=*/false, divisor);
}

void OptimizerShard::step(const at::Tensor& gradient, const Optimizer& optimizer, double rate,
                          const at::Tensor& scale) {
  at::NoGradGuard no_grad;
  // AdamW's own pass takes a float32 divisor, which saves a pass over the gradients.
  at::Tensor divisor;
  if (scale.defined()) divisor = scale.reciprocal().to(at::kFloat);
  for (Range& range : ranges_) {
    if (range.balances) {  // its gradient is the load beyond the mean
      range.master.sub_(gradient.narrow(0, range.begin, range.elements()).sign(), optimizer.router_bias_speed);
      if (!range.weight.is_same(range.master)) range.weight.copy_(range.master);
      continue;
    }
    at::Tensor part = gradient.narrow(0, range.begin, range.master.size(0)).to(range.master.scalar_type());
    std::optional<at::Tensor> divides;
    if (scale.defined() && !range.natural && range.master.scalar_type() == at::kFloat) divides = divisor;
    if (scale.defined() && !divides) part = part * scale;
    if (range.natural)
      range.master.mul_(1 - rate * (range.decays ? optimizer.weight_decay : 0.0)).sub_(part, rate);
    else
      step_adamw(range, part, optimizer, rate, divides);
    if (!range.weight.is_same(range.master)) range.weight.copy_(range.master);
  }
}

}  // namespace slipway::exec
