// A block as a straight list of operators on a few named wires.
//
//   residual ─┬────────────────────────────────────────────(+)──►
//             └ norm ─ [ag1] ─ qkv ─ attention ─ out ─ [rs1] ┘        branch wire
//
// BERT (post_norm) has `fork` in place of the norm and a norm on the residual after the (+). Tensor parallelism without
// sequence parallelism has other communication (Megatron-LM's f and g). [ag1] is [ar1]: nothing forward, all-reduce of
// the gradient backward. [rs1] is [ar2]: all-reduce forward, nothing backward.
// The bias of a row-parallel projection (out, down) is replicated and added once, by `add`.
//
// With context parallelism keys and values are gathered ([ag_kv] before attention), or attention goes around a ring of
// c rounds:
//
//   qkv ─ attn0 ─ [ring_kv] ─ attn1 ─ [ring_kv] ─ ... ─ attn(c−1) ─ out
//
// With experts the MLP is route ─ up ─ activation ─ down ─ combine, over rows: each token has a row for each of its
// experts, and rows are sorted by expert. A tensor rank holds its columns of every expert, as of an MLP, and the whole
// router. Shared experts are an MLP beside that, on a separate wire (-s). Where experts are divided among ranks
// (dispatches), rows travel, and each rank routes the tokens that sequence parallelism leaves it:
//
//   norm2 ─┬ route ─ [dispatch] ┄ [ag_experts] ─ up ─ activation ─ down ─ [rs_experts] ─ [combine] ─┬ combine ─ add2
//          └ share ─ [ag_s] ─ up_s ─ act_s ─ down_s ─ [rs_s] ────────────────────────────────────────┘
//
// The shared experts stand behind the dispatch in the list, so that they run while rows travel.
//
// Latent attention has five projections. Its latents are made of the tokens that sequence parallelism leaves a rank, by
// replicated matrices, and gathered instead of the tokens:
//
//   norm1 ─ q_down ─ kv_down ─ [ag1] ─ kv_up ─ q_up ─ attention ─ out
//
// Where attention and MLP stand side by side, the MLP is on wire_shared, and both results are added before the sum over
// tensor ranks:
//
//   norm1 ─┬ qkv ─ attention ─ out ───┬ join ─ [rs1] ─ add1
//          └ share ─ up ─ act ─ down ─┘
//
// Operators read and write wires. A communication operator ([ag], [rs], ...) changes one wire and names two
// collectives: that of the forward pass and its dual of the backward pass. The lowering (schedules/lower) cuts an
// action at every communication operator. What lies between two cuts is a segment, the unit of compute in the task
// graph. The executor runs the list with LibTorch and the cost model prices it, so they cannot disagree about what a
// task does.
//
// Operator cost is per rank and per micro-batch, after sharding; models/model/operator_cost.cpp has its sources.
// Guarded by tests/models/operators_test.cpp: FLOPs and saved bytes against the formulas of Fujii 2024 and
// Korthikanti 2022.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/model/model.h"
#include "models/model/names.h"
#include "models/model/sharding.h"

namespace slipway::models {

// The values that cross an operator. A mask of them lists what a segment reads and writes.
enum Wire : std::uint8_t {
  wire_residual = 1,    // b·s/(c[·t under sequence parallel]) × h
  wire_branch = 2,      // the sub-layer's present value: normed input, q, attention output, logits
  wire_kv = 4,          // keys and values, when context parallelism gathers them
  wire_statistics = 8,  // per token (max logit, sum of exponentials, target logit) of a vocabulary shard; in a layer
                        // whose experts a loss balances, the choices of each
  wire_loss = 16,       // scalar: sum of token losses / global tokens
  wire_attended = 32,   // between rounds of a ring: output and log-sum-exp so far; backwards, gradient of q
  wire_gates = 64,    // the weight of each token's experts, fp32: b·s/(c[·t]) × k; with that loss, all scores beside
  wire_shared = 128,  // the present value of the shared experts, or of an MLP beside attention
};
using Wires = std::uint8_t;
constexpr int wire_kinds = 8;

enum class OpKind : std::uint8_t {
  embed,           // tokens → residual (vocabulary shard: others contribute zero)
  add_positions,   // learned positions and token types (+ BERT's embedding norm comes as `norm`)
  norm,            // RMSNorm or LayerNorm
  fork,            // branch = residual; post-norm blocks start a sub-layer with it
  qkv,             // packed projection, norms of heads and rotary included
  compress,        // latent attention: queries, or keys and values, to their latent, its norm included
  expand,          // latent attention: from a latent to heads, rotary included
  attention,       // softmax(q·kᵀ)·v
  ring_attention,  // one round: this rank's queries on the present block of keys and values
  out_projection,
  route,       // experts: router's projection, top-k, and a row for each token and expert of its, sorted by expert
  add,         // residual += branch (+ bias of the projection before it)
  up,          // packed gate and up (SwiGLU) or up (GELU); of all experts at once
  activation,  // silu(gate)·up, or gelu
  down,
  share,           // wire_shared = branch: the input of the shared experts, or of an MLP beside attention
  join,            // branch += wire_shared: attention's result and that of the MLP beside it
  project,         // multi-token prediction: norms of the residual and the next token's embedding, and 2h → h
  combine,         // experts: the weighted sum of a token's rows, and of the shared experts' result
  head_transform,  // BERT's masked-LM dense + gelu + norm
  logits,          // vocabulary projection; also makes the local statistics
  loss,            // cross entropy from logits and statistics
  communicate,     // see Collective below
};

enum class Collective : std::uint8_t {
  none,
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  send,
  all_to_all,
  shift
};
inline constexpr std::array collective_names{Named{Collective::none, "none"},
                                             Named{Collective::all_gather, "all-gather"},
                                             Named{Collective::reduce_scatter, "reduce-scatter"},
                                             Named{Collective::all_reduce, "all-reduce"},
                                             Named{Collective::broadcast, "broadcast"},
                                             Named{Collective::send, "send"},
                                             Named{Collective::all_to_all, "all-to-all"},
                                             Named{Collective::shift, "shift"}};
constexpr const char* name_of(Collective collective) { return name_in(collective_names, collective); }

// expert...: ranks that divide experts, that cut each of them, that hold the same ones. host: a GPU and its host.
enum class Axis : std::uint8_t {
  tensor,
  context,
  data,
  pipeline,
  embedding,
  world,
  expert,
  expert_tensor,
  expert_data,
  host
};

struct Operator {
  OpKind kind = OpKind::norm;
  int block = 0;          // index in blocks_of(model)
  const char* part = "";  // name for labels, unique in its block: "attn", "mlp", "norm1", "ag1"
  Wires reads = 0, writes = 0;

  // communicate only: the collective on `wire` in each pass (none = the wire passes through), its group, and the bytes
  // of the whole (gathered / reduced) tensor.
  Axis axis = Axis::tensor;
  Wires wire = 0;
  Collective forward = Collective::none, backward = Collective::none;
  double message_bytes = 0;
  double forward_sent = 1, backward_sent = 1;  // share of message_bytes that travels: less in a narrow format
  int backward_messages = 1;                   // 2 around a ring, where keys and values and their gradients travel

  // compute only.
  double forward_flops = 0, input_grad_flops = 0, weight_grad_flops = 0;  // matrix work
  // Memory traffic of the matrix kernel (a floor under its time), or of the whole operator if it has no matrix work. A
  // weight gradient causes half of a GEMM's backward bytes.
  double forward_bytes = 0, backward_bytes = 0;
  // Traffic of the element-wise kernels that run beside a matrix kernel, one after the other: rotary, unfused softmax,
  // statistics. Their time is added.
  double elementwise_forward_bytes = 0, elementwise_backward_bytes = 0;
  double saved_bytes = 0;  // kept from forward to backward, input included
  std::int64_t
      m = 0,
      n = 0,
      k = 0;        // the GEMM's shape (0: no GEMM), of all experts' rows if grouped; attention: tokens, keys, head_dim
  int kernels = 1;  // launches of one forward
  std::int64_t v = 0;  // attention: width of a head's values
  double heads = 0;    // attention: of queries, of this rank and all sequences of the micro-batch
  Kernels attention = Kernels::flash2_rmsnorm;  // attention: its kernel
  double logits = 0;                            // loss: numbers of this rank's vocabulary shard
  double rows = 0;                              // route: of this rank's tokens, one for each expert of theirs
  int experts = 0;                              // up, down: grouped products of so many experts of this rank
  int round = 0;                                // ring_attention, and the shift that brings its block
  Dtype dtype = Dtype::bfloat16;                // of the work, or of the message
  std::optional<Format> narrow;                 // of a product's operands, where it is narrower than the dtype

  // What levers change (models/model/levers.h).
  bool again = false;              // the backward pass runs the forward pass (or sends its message) once more before it
  bool begins_checkpoint = false;  // with it, a recomputed module begins
  double again_bytes = 0;          // what that makes, held until the module's backward is done
  double offloaded_bytes = 0;      // kept in the host's memory instead of saved_bytes
  double in_graph = 0;             // share of its launches that are those of a CUDA graph
  bool begins_graph = false;       // with it, such a graph is launched
  int more_backward_kernels = 0;   // launches of one backward beside those of a forward and a weight gradient
};

// The operators of blocks [first, last) of `model`, in forward order. Throws std::invalid_argument with the numbers
// when the sharding is impossible: heads, KV heads, ffn or vocabulary not divisible by the tensor degree, tokens not
// divisible by the context (and tensor, under sequence parallelism) degree.
std::vector<Operator> operators_of(const Model& model, int first, int last, const WorkShape& shape);

// Bytes per rank of the residual wire at a stage boundary: the message between pipeline stages.
double boundary_bytes(const Model& model, const WorkShape& shape);

// True if it gathers the input of a column-parallel projection, which sequence parallelism keeps sharded. That input is
// gathered once more for the weight gradient (Korthikanti 2022).
constexpr bool gathers_input(const Operator& op) {
  return op.kind == OpKind::communicate && op.axis == Axis::tensor && (op.wire & (wire_branch | wire_shared)) != 0 &&
         op.forward == Collective::all_gather;
}

// True if it gathers keys and values over a context group; they are kept until the backward pass.
constexpr bool gathers_keys_values(const Operator& op) {
  return op.kind == OpKind::communicate && op.axis == Axis::context && op.forward == Collective::all_gather;
}

// The communicate operator right before a segment that begins with operator `first`, if it gathers the segment's input
// (gathers_input, gathers_keys_values); else -1.
int gather_before(std::span<const Operator> operators, int first);

constexpr bool is_attention(OpKind kind) { return kind == OpKind::attention || kind == OpKind::ring_attention; }

const char* name_of(OpKind kind);
const char* name_of(Axis axis);

}  // namespace slipway::models
