// The models as plain functional code on whole tensors, differentiated by torch's own autograd: the truth for the
// executor. Deliberately written otherwise than exec/.
#pragma once

#include <ATen/ATen.h>
#include <torch/types.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "exec/files/data.h"
#include "exec/operators/parameters.h"
#include "models/model/model.h"

namespace slipway::test {

using Weights = std::map<std::string, at::Tensor>;

// Whole, undivided parameters with the run's initial values.
inline Weights whole_weights(const Model& model, std::uint64_t seed) {
  Weights weights;
  const int blocks = static_cast<int>(blocks_of(model).size());
  for (int block = 0; block < blocks; ++block)
    for (const Parameter& parameter : parameters_of(model, block))
      if (parameter.same_as.empty() && !parameter.balances)
        weights[parameter.name] = draw_shard(parameter, pieces_of(parameter, 0, 1), seed).requires_grad_(true);
  return weights;
}

// Batch-first reference model, with complex rotation, explicit masks and softmax, and norms by their formula.
class ReferenceModel {
 public:
  // A product with a matrix: its name without ".weight", x [..., in] and x·Wᵀ.
  using Projected = std::function<void(const std::string& name, const at::Tensor& x, const at::Tensor& product)>;

  // Rules of the router, and what came of them since the last call of take_...: the loss that balances experts (Fedus et
  // al. 2022, equation 4, with the share of k choices; of each call of loss()), the choices of each expert by layer.
  double balancing = 0, capacity = 0;
  std::vector<at::Tensor> routed_together;  // positions whose tokens compete for the capacity; empty: all
  Weights biases;                           // by layer's prefix
  at::Tensor take_balancing_loss() { return std::exchange(balancing_loss_, at::zeros({}, at::kDouble)); }
  Weights take_choices() { return std::exchange(choices_, {}); }

  ReferenceModel(const Model& model, Weights& weights, Projected projected = nullptr)
      : blocks_(blocks_of(model)), weights_(weights), projected_(std::move(projected)) {}

  at::Tensor loss(const TokenBatch& batch) {
    const Block& first = blocks_.front();
    const at::Tensor tokens = batch.tokens.t(), targets = batch.targets.t();
    at::Tensor x = w("embedding.weight").index({tokens});
    if (first.positions == Positions::learned) x = x + w("embedding.positions").slice(0, 0, tokens.size(1));
    if (first.token_types > 0) x = x + w("embedding.token_types")[0];
    if (first.post_norm) x = norm(first, "embedding.norm", x);
    for (std::size_t i = 1; i + 1 < blocks_.size(); ++i)
      x = layer(blocks_[i], "layers." + std::to_string(i - 1) + ".", x);
    const Block& head = blocks_.back();
    if (head.post_norm) x = at::gelu(project("head.transform", x));
    x = norm(head, "head.norm", x);
    at::Tensor logits = at::matmul(x, w(head.tied ? "embedding.weight" : "head.weight").t());
    if (head.bias) logits = logits + w("head.bias");
    const at::Tensor each = at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten(), {}, at::Reduction::None);
    return batch.counted.defined() ? each.masked_select(batch.counted.t().flatten()).mean() : each.mean();
  }

 private:
  const at::Tensor& w(const std::string& name) { return weights_.at(name); }

  at::Tensor project(const std::string& name, const at::Tensor& x) {
    const at::Tensor y = at::matmul(x, w(name + ".weight").t());
    if (projected_) projected_(name, x, y);
    const auto bias = weights_.find(name + ".bias");
    return bias == weights_.end() ? y : y + bias->second;
  }

  at::Tensor norm(const Block& block, const std::string& name, const at::Tensor& x) {
    const at::Tensor centred = block.norm == Norm::layer ? x - x.mean(-1, true) : x;
    const at::Tensor y = centred / (centred.square().mean(-1, true) + block.norm_epsilon).sqrt() * w(name + ".weight");
    return block.norm == Norm::layer ? y + w(name + ".bias") : y;
  }

  at::Tensor rotated(const Block& block, const at::Tensor& x) {  // [b, s, n, d]
    const std::int64_t half = block.head_dim / 2;
    const at::Tensor pairs = at::complex(x.slice(-1, 0, half), x.slice(-1, half));
    at::Tensor turn = at::empty({x.size(1), 1, half}, at::kComplexDouble);
    for (std::int64_t position = 0; position < x.size(1); ++position)
      for (std::int64_t i = 0; i < half; ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(block.head_dim);
        const double angle = static_cast<double>(position) * std::pow(block.rope_theta, exponent);
        turn[position][0][i] = c10::complex<double>(std::cos(angle), std::sin(angle));
      }
    const at::Tensor product = pairs * turn;
    return at::cat({at::real(product), at::imag(product)}, -1);
  }

  at::Tensor attention(const Block& block, const std::string& prefix, const at::Tensor& x) {
    const std::int64_t d = block.head_dim, q_rows = block.heads * d, kv_rows = block.kv_heads * d;
    const at::Tensor packed = project(prefix + "attention.qkv", x);
    at::Tensor q = packed.slice(-1, 0, q_rows).unflatten(-1, {block.heads, d});
    at::Tensor k = packed.slice(-1, q_rows, q_rows + kv_rows).unflatten(-1, {block.kv_heads, d});
    const at::Tensor v = packed.slice(-1, q_rows + kv_rows).unflatten(-1, {block.kv_heads, d});
    if (block.qk_norm) {
      q = norm(block, prefix + "attention.q_norm", q);
      k = norm(block, prefix + "attention.k_norm", k);
    }
    if (block.positions == Positions::rotary) q = rotated(block, q), k = rotated(block, k);
    std::vector<at::Tensor> heads;
    for (std::int64_t head = 0; head < block.heads; ++head) {
      const std::int64_t group = head / (block.heads / block.kv_heads);
      at::Tensor scores = at::matmul(q.select(2, head), k.select(2, group).transpose(1, 2)) / std::sqrt(double(d));
      if (block.causal) {
        const at::Tensor future = at::ones({x.size(1), x.size(1)}, at::kBool).triu(1);
        scores = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
      }
      heads.push_back(at::matmul(scores.softmax(-1), v.select(2, group)));
    }
    return project(prefix + "attention.out", at::cat(heads, -1));
  }

  // Every expert on every token; a token takes those among its k largest logits, by the softmax over them.
  at::Tensor experts(const Block& block, const std::string& prefix, const at::Tensor& x) {
    const std::int64_t k = block.experts_per_token;
    const at::Tensor logits = project(prefix + "mlp.router", x), scores = logits.softmax(-1);
    const at::Tensor ranked = biases.contains(prefix) ? scores.detach() + biases.at(prefix) : logits.detach();
    const at::Tensor taken = ranked >= std::get<0>(ranked.sort(-1, true)).slice(-1, k - 1, k);  // [b, s, E]
    at::Tensor share = logits.masked_fill(taken.logical_not(), -std::numeric_limits<double>::infinity()).softmax(-1);
    const at::Tensor chosen = taken.sum(at::IntArrayRef{0, 1});
    choices_[prefix] = choices_.contains(prefix) ? choices_.at(prefix) + chosen : chosen;
    const double tokens = static_cast<double>(x.size(0) * x.size(1)), e = static_cast<double>(block.experts);
    if (balancing > 0)
      balancing_loss_ =
          balancing_loss_ +
          balancing * e * (chosen / (static_cast<double>(k) * tokens) * scores.mean(at::IntArrayRef{0, 1})).sum();
    if (capacity > 0) {  // tokens in the order of their places, of all sequences
      at::Tensor dropped = at::zeros_like(taken);
      const at::Tensor all = at::arange(x.size(1));
      for (const at::Tensor& group : routed_together.empty() ? std::vector<at::Tensor>{all} : routed_together) {
        const at::Tensor own = taken.index_select(1, group);
        const at::Tensor place = own.transpose(0, 1).flatten(0, 1).cumsum(0).unflatten(0, {group.size(0), -1});
        const double room = std::ceil(capacity * static_cast<double>(k * x.size(0) * group.size(0)) / e);
        dropped.index_copy_(1, group, place.transpose(0, 1) > room);
      }
      share = share.masked_fill(dropped, 0);
    }
    at::Tensor sum = at::zeros_like(x);
    for (std::int64_t expert = 0; expert < block.experts; ++expert) {
      const at::Tensor up = w(prefix + "mlp.up.weight").slice(0, expert * 2 * block.ffn, (expert + 1) * 2 * block.ffn);
      const at::Tensor down =
          w(prefix + "mlp.down.weight").slice(0, expert * block.hidden, (expert + 1) * block.hidden);
      const at::Tensor both = at::matmul(x, up.t()), gate = both.slice(-1, 0, block.ffn);
      const at::Tensor inner = gate * gate.sigmoid() * both.slice(-1, block.ffn);
      sum = sum + share.slice(-1, expert, expert + 1) * at::matmul(inner, down.t());
    }
    return sum;
  }

  at::Tensor mlp(const Block& block, const std::string& prefix, const at::Tensor& x) {
    if (block.experts > 0) return experts(block, prefix, x);
    const at::Tensor up = project(prefix + "mlp.up", x);
    at::Tensor inner;
    if (block.mlp == Mlp::swiglu) {
      const at::Tensor gate = up.slice(-1, 0, block.ffn);
      inner = gate * gate.sigmoid() * up.slice(-1, block.ffn);
    } else if (block.post_norm) {
      inner = 0.5 * up * (1.0 + (up / std::sqrt(2.0)).erf());
    } else {
      inner = 0.5 * up * (1.0 + (std::sqrt(2.0 / M_PI) * (up + 0.044715 * up.pow(3))).tanh());
    }
    return project(prefix + "mlp.down", inner);
  }

  at::Tensor layer(const Block& block, const std::string& prefix, const at::Tensor& x) {
    if (block.post_norm) {
      const at::Tensor y = norm(block, prefix + "norm1", x + attention(block, prefix, x));
      return norm(block, prefix + "norm2", y + mlp(block, prefix, y));
    }
    const at::Tensor y = x + attention(block, prefix, norm(block, prefix + "norm1", x));
    return y + mlp(block, prefix, norm(block, prefix + "norm2", y));
  }

  std::vector<Block> blocks_;
  at::Tensor balancing_loss_ = at::zeros({}, at::kDouble);
  Weights choices_;
  Weights& weights_;
  Projected projected_;
};

// Scales gradients as torch.nn.utils.clip_grad_norm_ does, unless `limit` is 0; returns their norm before.
inline double clip(Weights& weights, double limit) {
  double squares = 0;
  for (auto& [name, weight] : weights) squares += weight.grad().square().sum().item<double>();
  const double norm = std::sqrt(squares);
  if (limit > 0)
    for (auto& [name, weight] : weights) weight.mutable_grad().mul_(std::min(1.0, limit / (norm + 1e-6)));
  return norm;
}

}  // namespace slipway::test
