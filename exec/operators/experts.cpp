#include "exec/operators/experts.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "exec/operators/wide.h"
#include "exec/transport/device.h"

namespace slipway::exec {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows in the order of tokens: [tokens, k, h]. A dropped one is 0.
at::Tensor by_token(const at::Tensor& rows, const at::Tensor& place, std::int64_t experts_per_token) {
  const bool all = rows.size(0) == place.size(0);
  const at::Tensor with_dropped = all ? rows : at::cat({rows, at::zeros({1, rows.size(1)}, rows.options())});
  return with_dropped.index_select(0, place).view({-1, experts_per_token, rows.size(1)});
}

// Autograd's own backward would add the rows in the varying order of a GPU's threads.
struct ToExperts : torch::autograd::Function<ToExperts> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& order,
                            const at::Tensor& place) {
    const std::int64_t k = place.size(0) / x.size(0);
    context->save_for_backward({place});
    context->saved_data["k"] = k;
    return x.index_select(0, order.floor_divide(k));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor place = context->get_saved_variables()[0];
    return {by_token(gradients[0], place, context->saved_data["k"].toInt()).sum(1), {}, {}};
  }
};

struct FromExperts : torch::autograd::Function<FromExperts> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y, const at::Tensor& weights,
                            const at::Tensor& order, const at::Tensor& place) {
    context->save_for_backward({y, weights, order, place});
    return by_token(y, place, weights.size(1)).mul_(weights.unsqueeze(-1)).sum(1);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &y = saved[0], &weights = saved[1], &order = saved[2], &place = saved[3];
    const at::Tensor dy = gradients[0].unsqueeze(1);  // [tokens, 1, h]
    const at::Tensor of_weights = by_token(y, place, weights.size(1)).mul_(dy).sum(-1);
    return {(weights.unsqueeze(-1) * dy).flatten(0, 1).index_select(0, order), of_weights, {}, {}};
  }
};

// Scores of experts outside a token's best groups become −∞.
at::Tensor within_groups(const at::Tensor& scores, const Block& block) {
  if (block.groups_per_token == block.expert_groups) return scores;
  const at::Tensor by_group = scores.unflatten(1, {block.expert_groups, -1});
  const std::int64_t counted = std::min<std::int64_t>(2, by_group.size(2));
  const at::Tensor of_group = std::get<0>(at::topk(by_group, counted, -1)).sum(-1);
  const at::Tensor best = std::get<1>(at::topk(of_group, block.groups_per_token, -1));
  const at::Tensor outside = at::ones_like(of_group, at::kBool).scatter_(1, best, false);
  return by_group.masked_fill(outside.unsqueeze(-1), -std::numeric_limits<double>::infinity()).flatten(1);
}

struct Choice {
  at::Tensor weights, expert;  // [tokens, k]; weights have a gradient
};

// The experts [tokens, k] of tokens [s', samples] that take turns.
at::Tensor experts_in_turn(const at::Tensor& logits, std::int64_t k, std::int64_t samples) {
  const auto index = logits.options().dtype(at::kLong);
  const at::Tensor position = at::arange(logits.size(0), index).floor_divide(samples);
  return (position.unsqueeze(1) * k + at::arange(k, index)).remainder(logits.size(1));
}

// In float32 at least. `turn` [tokens, k]: the experts, where the router does not choose them.
Choice choose_experts(const at::Tensor& logits, const Block& block, const at::Tensor& bias, const at::Tensor& turn) {
  const std::int64_t k = block.experts_per_token;
  const bool softmax = block.scores == RouterScores::softmax;
  if (!turn.defined() && softmax && block.normalises_scores && block.groups_per_token == block.expert_groups &&
      !bias.defined()) {
    const auto [best, expert] = at::topk(logits, k, -1);  // softmax keeps the order, and its sum cancels
    return {at::softmax(best, -1), expert};
  }
  const at::Tensor scores = softmax ? at::softmax(logits, -1) : at::sigmoid(logits);
  const at::Tensor ranked = bias.defined() ? scores.detach() + bias.to(scores.scalar_type()) : scores.detach();
  const at::Tensor expert = turn.defined() ? turn : std::get<1>(at::topk(within_groups(ranked, block), k, -1));
  const at::Tensor chosen = scores.gather(1, expert);
  return {block.normalises_scores ? chosen / chosen.sum(-1, true) : chosen, expert};
}

// Keeps the first `room` rows of each expert. `sorted`: the expert of each row.
void drop_rows(ExpertRows& rows, const at::Tensor& sorted, std::int64_t room) {
  const at::Tensor begins = rows.choices.cumsum(0) - rows.choices;
  const at::Tensor in_expert = at::arange(sorted.size(0), sorted.options()) - begins.index_select(0, sorted);
  rows.order = rows.order.masked_select(in_expert < room);
  rows.ends = rows.choices.clamp_max(room).cumsum(0).to(at::kInt);
}

// Rows of an expert of `tokens` that are routed together.
std::int64_t room_of(double capacity, std::int64_t tokens, const Block& block, std::int64_t experts) {
  return static_cast<std::int64_t>(
      std::ceil(capacity * static_cast<double>(tokens * block.experts_per_token) / static_cast<double>(experts)));
}

at::Tensor shares_of(const at::Tensor& logits, const Block& block) {
  if (block.scores == RouterScores::softmax) return at::softmax(logits, -1);
  const at::Tensor scores = at::sigmoid(logits);  // DeepSeek-V3, equation 19
  return scores / scores.sum(-1, true);
}

}  // namespace

ExpertRows rows_for_experts(const at::Tensor& logits, const Block& block, const Routing& routing,
                            const at::Tensor& bias, std::int64_t samples) {
  const at::Tensor wide = logits.element_size() < 4 ? logits.to(at::kFloat) : logits;
  const at::Tensor turn = routing.forced ? experts_in_turn(logits, block.experts_per_token, samples) : at::Tensor();
  auto [weights, expert] = choose_experts(wide, block, bias, turn);
  if (block.score_scale != 1) weights = weights * block.score_scale;
  ExpertRows rows;
  rows.samples = samples;
  rows.weights = weights.to(logits.scalar_type());
  if (routing.balancing_loss > 0) {
    rows.scores = shares_of(wide, block).to(logits.scalar_type());
    rows.expert = expert;
  }
  const auto [sorted, order] = at::sort(expert.flatten(), /*stable=*/true, 0, false);
  const auto index = sorted.options();
  rows.order = order;
  rows.ends = at::searchsorted(sorted, at::arange(logits.size(-1), index), /*out_int32=*/true, /*right=*/true);
  if (bias.defined() || routing.balancing_loss > 0 || routing.capacity > 0) {
    const at::Tensor ends = rows.ends.to(at::kLong);
    rows.choices = at::diff(ends, 1, 0, at::zeros({1}, ends.options()));
  }
  if (routing.capacity > 0) drop_rows(rows, sorted, room_of(routing.capacity, logits.size(0), block, logits.size(-1)));
  const std::int64_t kept = rows.order.size(0);
  rows.place = kept < order.size(0) ? at::full_like(order, kept) : at::empty_like(order);
  rows.place.scatter_(0, rows.order, at::arange(kept, index));
  return rows;
}

void sort_arrived(ArrivedRows& arrived, at::Device device) {
  const std::int64_t sources = arrived.counts.size(0), experts = arrived.counts.size(1);
  arrived.ends = arrived.counts.sum(0).cumsum(0).to(at::kInt).to(device);
  if (sources == 1) return;
  const at::Tensor expert = at::arange(experts, arrived.counts.options()).repeat({sources});
  const at::Tensor order =
      at::argsort(expert.repeat_interleave(arrived.counts.flatten()), /*stable=*/true, 0, /*descending=*/false);
  arrived.order = order.to(device);
  arrived.place = at::empty_like(order).scatter_(0, order, at::arange(order.size(0), order.options())).to(device);
}

at::Tensor to_experts(const at::Tensor& x, const ExpertRows& rows) {
  return ToExperts::apply(x, rows.order, rows.place);
}

at::Tensor from_experts(const at::Tensor& y, const ExpertRows& rows) {
  return FromExperts::apply(y, rows.weights, rows.order, rows.place);
}

}  // namespace slipway::exec
