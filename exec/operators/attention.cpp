#include <ATen/ATen.h>

#include <cmath>

#include "exec/operators/operators.h"

namespace slipway {

at::Tensor by_head(const at::Tensor& x, std::int64_t size) {
  return x.unflatten(-1, {-1, size}).permute({1, 2, 0, 3});
}

at::Tensor from_heads(const at::Tensor& x) { return x.permute({2, 0, 1, 3}).flatten(-2); }

namespace {

struct Heads {
  std::int64_t q, kv, size;  // of this tensor rank
};
Heads heads_of(const OperatorContext& c) {
  return {c.block.heads / c.tensor_degree, c.block.kv_heads / c.tensor_degree, c.block.head_dim};
}

// x: [s, b, heads, d]. Pairs are (i, i + d/2), as in Llama's published code.
at::Tensor rotate(const at::Tensor& x, const std::pair<at::Tensor, at::Tensor>& table) {
  const auto& [cosine, sine] = table;
  const std::vector<at::Tensor> half = x.chunk(2, -1);
  return at::cat({half[0] * cosine - half[1] * sine, half[1] * cosine + half[0] * sine}, -1);
}

// Attention of [b, heads, s, d]. The fused kernels want as many key as query heads.
// Causal with more keys than queries: the queries are the last of the sequence.
at::Tensor attend(const at::Tensor& q, at::Tensor k, at::Tensor v, bool causal) {
  const std::int64_t group = q.size(1) / k.size(1), before = k.size(2) - q.size(2);
  if (group > 1) k = k.repeat_interleave(group, 1), v = v.repeat_interleave(group, 1);
  if (before == 0 || !causal) return at::scaled_dot_product_attention(q, k, v, {}, 0.0, causal);
  const at::Tensor seen =
      at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool).requires_grad(false)).tril(before);
  return at::scaled_dot_product_attention(q, k, v, seen, 0.0, false);
}

// Keys and values on the context wire, rank after rank, in the order of the sequence.
at::Tensor in_sequence(const OperatorContext& c, const at::Tensor& gathered) {
  if (pieces_of(c.block.causal, c.context_degree) == c.context_degree) return gathered;
  const at::Tensor pieces = gathered.unflatten(0, {c.context_degree, 2, -1});
  return at::cat({pieces.select(1, 0), pieces.select(1, 1).flip(0)}).flatten(0, 1);
}

// This slice's keys and values, behind those of the slices before it.
at::Tensor with_cache(KeyValueCache& cache, const at::Tensor& own) {
  const auto layer = static_cast<std::int64_t>(cache.whole.size());
  cache.whole.push_back(cache.past.defined() ? at::cat({cache.past.select(0, layer), own}) : own);
  return cache.whole.back();
}

}  // namespace

const std::pair<at::Tensor, at::Tensor>& RotaryTables::get(std::int64_t sequence, const Block& block,
                                                           const at::TensorOptions& options) {
  auto& table = tables_[{sequence, block.head_dim, block.rope_theta}];
  if (table.first.defined()) return table;
  const std::int64_t half = block.head_dim / 2;
  const at::Tensor exponent = at::arange(half, at::kDouble) * (-2.0 / static_cast<double>(block.head_dim));
  const at::Tensor frequency = at::pow(at::Scalar(block.rope_theta), exponent);
  const at::Tensor angle =
      at::outer(at::arange(sequence, at::kDouble), frequency).view({sequence, 1, 1, half});
  table = {angle.cos().to(options), angle.sin().to(options)};
  return table;
}

namespace {

// The projection with its heads turned: [q | k | v].
at::Tensor projected(OperatorContext& c) {
  const at::Tensor packed =
      linear(c.wires[index_of(wire_branch)], parameter_named(c.parameters, "attention.qkv.weight"),
             find_parameter(c.parameters, "attention.qkv.bias"), c.region.weight_gradients);
  if (c.block.positions != Positions::rotary) return packed;
  const Heads heads = heads_of(c);
  const std::int64_t turned = (heads.q + heads.kv) * heads.size;
  const at::Tensor qk = packed.narrow(-1, 0, turned).unflatten(-1, {heads.q + heads.kv, heads.size});
  const std::int64_t end = c.tokens.back().first + c.tokens.back().count;  // ranges are in ascending order
  const auto& [cosine, sine] = c.rotary.get(end, c.block, packed.options().requires_grad(false));
  const at::Tensor rotated = rotate(qk, {rows_in(cosine, c.tokens), rows_in(sine, c.tokens)});
  return at::cat({rotated.flatten(-2), packed.narrow(-1, turned, heads.kv * heads.size)}, -1);
}

}  // namespace

void run_qkv(OperatorContext& c) {
  const at::Tensor packed = projected(c);
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  branch = packed;
  if ((c.op.writes & wire_kv) == 0) return;
  const Heads heads = heads_of(c);
  const std::int64_t q = heads.q * heads.size, kv = heads.kv * heads.size;
  branch = packed.narrow(-1, 0, q);
  c.wires[index_of(wire_kv)] = packed.narrow(-1, q, 2 * kv);
}

void run_attention(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  const Heads heads = heads_of(c);
  const std::int64_t q = heads.q * heads.size, kv = heads.kv * heads.size;
  const bool gathered = (c.op.reads & wire_kv) != 0;
  at::Tensor keys_values =
      gathered ? in_sequence(c, c.wires[index_of(wire_kv)]) : branch.narrow(-1, q, 2 * kv);
  if (c.cache != nullptr) keys_values = with_cache(*c.cache, keys_values);
  const at::Tensor queries = by_head(branch.narrow(-1, 0, q), heads.size),
                   keys = by_head(keys_values.narrow(-1, 0, kv), heads.size),
                   values = by_head(keys_values.narrow(-1, kv, kv), heads.size);
  std::vector<at::Tensor> out;
  std::int64_t first = 0;
  for (const TokenRange& range : c.tokens) {  // what lies behind the last query is of no use to a causal one
    const std::int64_t seen = gathered && c.block.causal ? range.first + range.count : keys.size(2);
    out.push_back(attend(queries.narrow(2, first, range.count), keys.narrow(2, 0, seen),
                         values.narrow(2, 0, seen), c.block.causal));
    first += range.count;
  }
  branch = from_heads(out.size() == 1 ? out.front() : at::cat(out, 2));
}

void run_out_projection(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  branch = linear(branch, parameter_named(c.parameters, "attention.out.weight"), nullptr,
                  c.region.weight_gradients);
}

}  // namespace slipway
