// Operator cost: FLOPs, bytes moved, bytes kept. models/model/operators.cpp decides which operators a block has and
// calls one function of this file for each.
//
// M = b·s/c tokens per rank; M' = tokens of the wires that sequence parallelism shards (M/t with it, M without). B =
// bytes of the dtype, F = max(4, B) = bytes of the format in which sums are formed. Element-wise traffic is counted
// kernel by kernel, with each tensor read or written once a kernel. The kernel sequence of unfused norm and softmax is
// that of the first Llama release (convert to fp32, compute, convert back). The slow rows of Hagemann 2023 ran the
// same.
// Linears of layers may have operands in a narrow format (models/model/format.h).
// Guarded by tests/models/operators_test.cpp.
#pragma once

#include "models/model/operators.h"

namespace slipway::models {

struct Tokens {
  std::int64_t whole = 0;    // M
  std::int64_t sharded = 0;  // M'
};
// Throws std::invalid_argument when the sequence cannot be cut evenly.
Tokens tokens_of(const WorkShape& shape);

struct CostInput {
  const Block& block;
  const WorkShape& shape;
  Tokens tokens;
  double load = 1;  // of the rank with the most rows for its experts (routing.h)
};

// True if inputs of column-parallel and gradients of row-parallel Linears are gathered in the narrow format.
bool gathers_narrow(const CostInput& in);
// True if tokens travel to experts in 8 bits.
bool dispatches_narrow(const CostInput& in);

// True if a sub-layer begins with the residual itself, and a norm comes later.
constexpr bool forks(const Block& block) { return block.post_norm || block.norms == NormPlace::result; }

// Rows of the MLP, M; of the experts, M·k with k experts per token; where they are dispatched, those of this rank's own
// experts: M'·k times the ranks that cut each expert, times its load.
std::int64_t mlp_rows(const CostInput& in);
// Rows that this rank sends to experts, wherever they are: M'·k.
std::int64_t dispatched_rows(const CostInput& in);

// Each function sets the operator cost. Kind, block, part and wires are set already.
void set_embed(Operator& op, const CostInput& in);
void set_add_positions(Operator& op, const CostInput& in);
void set_norm(Operator& op, const CostInput& in);
void set_fork(Operator& op, const CostInput& in);
void set_qkv(Operator& op, const CostInput& in);
void set_query_latent(Operator& op, const CostInput& in);
void set_key_value_latent(Operator& op, const CostInput& in);
void set_queries(Operator& op, const CostInput& in);
void set_keys_values(Operator& op, const CostInput& in);
void set_attention(Operator& op, const CostInput& in);
void set_ring_attention(Operator& op, const CostInput& in);  // of round op.round
void set_out_projection(Operator& op, const CostInput& in);
void set_add(Operator& op, const CostInput& in);
void set_route(Operator& op, const CostInput& in);
void set_up(Operator& op, const CostInput& in);
void set_activation(Operator& op, const CostInput& in);
void set_down(Operator& op, const CostInput& in);
void set_expert_up(Operator& op, const CostInput& in);
void set_expert_down(Operator& op, const CostInput& in);
void set_share(Operator& op, const CostInput& in);
void set_combine(Operator& op, const CostInput& in);
void set_join(Operator& op, const CostInput& in);
void set_project(Operator& op, const CostInput& in);
void set_head_transform(Operator& op, const CostInput& in);
void set_logits(Operator& op, const CostInput& in);
void set_loss(Operator& op, const CostInput& in);

}  // namespace slipway::models
