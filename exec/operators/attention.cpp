#include "exec/operators/attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "exec/operators/norm.h"
#include "exec/operators/operator_context.h"
#include "exec/operators/operators.h"

namespace slipway::exec {

at::Tensor by_head(const at::Tensor& x, std::int64_t size) { return x.unflatten(-1, {-1, size}).permute({1, 2, 0, 3}); }

at::Tensor from_heads(const at::Tensor& x) { return x.permute({2, 0, 1, 3}).flatten(-2); }

namespace {

struct Heads {
  std::int64_t q, kv, size;  // heads of this tensor rank, and their size
};
Heads heads_of(const OperatorContext& c) {
  return {c.block.heads / c.tensor_degree, kv_heads_of_rank(c.block, c.tensor_degree), c.block.head_dim};
}

// FlashAttention on a GPU supports groups of queries with one key head. Other kernels need as many key as query heads.
bool kernel_knows_groups(const at::Tensor& q) {
  return q.is_cuda() && q.element_size() == 2 && q.size(-1) % 8 == 0 && q.size(-1) <= 256;
}

// Attention of [b, heads, s, d].
// If causal with more keys than queries, the queries are the last of the sequence.
at::Tensor attend(const at::Tensor& q, at::Tensor k, at::Tensor v, bool causal) {
  const std::int64_t group = q.size(1) / k.size(1), before = k.size(2) - q.size(2);
  const bool masked = before > 0 && causal, grouped = group > 1 && !masked && kernel_knows_groups(q);
  if (group > 1 && !grouped) k = k.repeat_interleave(group, 1), v = v.repeat_interleave(group, 1);
  if (!masked) return at::scaled_dot_product_attention(q, k, v, {}, 0.0, causal, std::nullopt, grouped);
  const at::Tensor seen =
      at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool).requires_grad(false)).tril(before);
  return at::scaled_dot_product_attention(q, k, v, seen, 0.0, false);
}

// Keys and values on the context wire, which come rank after rank, in the order of the sequence.
at::Tensor in_sequence(const OperatorContext& c, const at::Tensor& gathered) {
  if (pieces_of(c.block.causal, c.context_degree) == c.context_degree) return gathered;
  const at::Tensor pieces = gathered.unflatten(0, {c.context_degree, 2, -1});
  return at::cat({pieces.select(1, 0), pieces.select(1, 1).flip(0)}).flatten(0, 1);
}

// This slice's keys and values behind those of the earlier slices.
at::Tensor with_cache(KeyValueCache& cache, const at::Tensor& own) {
  const auto layer = static_cast<std::int64_t>(cache.whole.size());
  cache.whole.push_back(cache.past.defined() ? at::cat({cache.past.select(0, layer), own}) : own);
  return cache.whole.back();
}

// [q | k | v] with queries and keys normed per head.
at::Tensor with_head_norms(OperatorContext& c, const at::Tensor& packed, const Heads& heads) {
  const std::int64_t q = heads.q * heads.size, kv = heads.kv * heads.size;
  const std::vector<at::Tensor> parts = packed.split_with_sizes({q, kv, kv}, -1);
  const auto normed = [&](const at::Tensor& x, const char* name) {
    return norm_with(c, name, x.unflatten(-1, {-1, heads.size})).flatten(-2);
  };
  return at::cat({normed(parts[0], "attention.q_norm"), normed(parts[1], "attention.k_norm"), parts[2]}, -1);
}

// The projection with normed heads and rotary positions: [q | k | v].
at::Tensor projected(OperatorContext& c) {
  at::Tensor packed = linear(c.wires[index_of(wire_branch)], parameter_named(c.parameters, "attention.qkv.weight"),
                             find_parameter(c.parameters, "attention.qkv.bias"), c.region.weight_gradients);
  const Heads heads = heads_of(c);
  if (c.block.qk_norm) packed = with_head_norms(c, packed, heads);
  if (c.block.positions != Positions::rotary) return packed;
  const std::int64_t end = c.tokens.back().first + c.tokens.back().count;  // ranges are in ascending order
  const auto& [cosine, sine] = c.rotary.get(end, c.block, packed.options().requires_grad(false));
  return with_positions(packed, rows_in(cosine, c.tokens), rows_in(sine, c.tokens), heads.q + heads.kv, heads.size);
}

struct QueriesKeysValues {
  at::Tensor q, k, v;  // [s, b, features]
};

// Splits all at once: the backward of a split is one concatenation, that of a view a tensor of zeros and a sum.
QueriesKeysValues attention_inputs(OperatorContext& c, const Heads& heads) {
  const at::Tensor& branch = c.wires[index_of(wire_branch)];
  const std::int64_t q = heads.q * heads.size, kv = heads.kv * heads.size;
  const bool gathered = (c.op.reads & wire_kv) != 0;
  if (!gathered && c.cache == nullptr) {
    const std::vector<at::Tensor> parts = branch.split_with_sizes({q, kv, kv}, -1);
    return {parts[0], parts[1], parts[2]};
  }
  const std::vector<at::Tensor> own = gathered
                                          ? std::vector<at::Tensor>{branch, in_sequence(c, c.wires[index_of(wire_kv)])}
                                          : branch.split_with_sizes({q, 2 * kv}, -1);
  const at::Tensor keys_values = c.cache != nullptr ? with_cache(*c.cache, own[1]) : own[1];
  const std::vector<at::Tensor> parts = keys_values.split_with_sizes({kv, kv}, -1);
  return {own[0], parts[0], parts[1]};
}

at::Tensor rows(const at::Tensor& x, std::int64_t first, std::int64_t count) {
  return count == x.size(2) ? x : x.narrow(2, first, count);
}

}  // namespace

void run_qkv(OperatorContext& c) {
  const at::Tensor packed = projected(c);
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  branch = packed;
  if ((c.op.writes & wire_kv) == 0) return;
  const Heads heads = heads_of(c);
  const std::int64_t q = heads.q * heads.size, kv = heads.kv * heads.size;
  const std::vector<at::Tensor> parts = packed.split_with_sizes({q, 2 * kv}, -1);
  branch = parts[0];
  c.wires[index_of(wire_kv)] = parts[1];
}

void run_attention(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  const Heads heads = heads_of(c);
  const bool gathered = (c.op.reads & wire_kv) != 0;
  const QueriesKeysValues inputs = attention_inputs(c, heads);
  const at::Tensor queries = by_head(inputs.q, heads.size), keys = by_head(inputs.k, heads.size),
                   values = by_head(inputs.v, heads.size);
  std::vector<at::Tensor> out;
  std::int64_t first = 0;
  for (const TokenRange& range : c.tokens) {  // keys behind the last query are invisible to a causal one
    const std::int64_t seen = gathered && c.block.causal ? range.first + range.count : keys.size(2);
    out.push_back(
        attend(rows(queries, first, range.count), rows(keys, 0, seen), rows(values, 0, seen), c.block.causal));
    first += range.count;
  }
  branch = from_heads(out.size() == 1 ? out.front() : at::cat(out, 2));
}

void run_out_projection(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  branch = linear(branch, parameter_named(c.parameters, "attention.out.weight"), nullptr, c.region.weight_gradients);
}

}  // namespace slipway::exec
