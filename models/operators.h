// A block as a straight list of operators on a few named wires.
//
//   residual ─┬─────────────────────────────(+)──►
//             └ norm ─ [ag] ─ qkv ─ attention ─ out ─ [rs] ┘        branch wire
//
// Operators read and write wires. A communication operator ([ag], [rs], ...) changes one wire and names
// two collectives: the one of the forward pass and its dual of the backward pass. The lowering
// (schedules/lowering) cuts an action at every communication operator; what lies between two cuts is a
// segment, the unit of compute in the task graph. The executor runs the same list with LibTorch, the
// cost model prices it, so the three cannot disagree about what a task does.
//
// All figures are per rank and per micro-batch, after sharding.
// Guarded by tests/operators_test.cpp: FLOPs against the Fujii formula, saved bytes against PAPERS S3.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/sharding.h"

namespace slipway {

// The values that cross an operator. A mask of these is what a segment takes in and gives out.
enum Wire : std::uint8_t {
  wire_residual = 1,   // b·s/(c[·t under sequence parallel]) × h
  wire_branch = 2,     // whatever the sub-layer is at: normed input, q, attention output, logits
  wire_kv = 4,         // keys and values, when context parallelism gathers them
  wire_statistics = 8, // per token (max logit, sum of exponentials, target logit) of a vocabulary shard
  wire_loss = 16,      // scalar: sum of token losses / global tokens
};
using Wires = std::uint8_t;
constexpr int wire_kinds = 5;

enum class OpKind : std::uint8_t {
  embed,        // tokens → residual (vocabulary shard: others contribute zero)
  add_positions,// learned positions and token types (+ BERT's embedding norm comes as `norm`)
  norm,         // RMSNorm or LayerNorm
  qkv,          // packed projection, rotary included
  attention,    // softmax(q·kᵀ)·v
  out_projection,
  add,          // residual += branch
  up,           // packed gate and up (SwiGLU) or up (GELU)
  activation,   // silu(gate)·up, or gelu
  down,
  head_transform, // BERT's masked-LM dense + gelu + norm
  logits,       // vocabulary projection; also makes the local statistics
  loss,         // cross entropy from logits and statistics
  communicate,  // see Collective below
};

enum class Collective : std::uint8_t { none, all_gather, reduce_scatter, all_reduce, broadcast, send };
enum class Axis : std::uint8_t { tensor, context, data, pipeline, embedding, world };

struct Operator {
  OpKind kind = OpKind::norm;
  int block = 0;                    // index in blocks_of(model)
  const char* part = "";            // short name for labels: "attn", "mlp", "norm1", "ag1", "head"
  Wires reads = 0, writes = 0;

  // communicate only: what happens to `wire` in each pass (none = the wire passes through), over which
  // group, and the bytes of the whole (gathered / reduced) tensor.
  Axis axis = Axis::tensor;
  Wires wire = 0;
  Collective forward = Collective::none, backward = Collective::none;
  double message_bytes = 0;

  // compute only.
  double forward_flops = 0, input_grad_flops = 0, weight_grad_flops = 0;  // matrix work
  double forward_bytes = 0, backward_bytes = 0;  // memory traffic that bounds element-wise work
  double saved_bytes = 0;                        // kept from forward to backward, input included
  std::int64_t m = 0, n = 0, k = 0;              // the GEMM's shape (0: no GEMM); attention: tokens, keys, head_dim
  int kernels = 1;                               // launches of one forward
  Dtype dtype = Dtype::bfloat16;
};

// The operators of blocks [first, last) of `model`, in forward order.
std::vector<Operator> operators_of(const Model& model, int first, int last, const WorkShape& shape);

// Bytes of one wire as it stands at a stage boundary (the message between pipeline stages) per rank.
double boundary_bytes(const Model& model, const WorkShape& shape);

const char* name_of(OpKind kind);
const char* name_of(Collective collective);
const char* name_of(Axis axis);

}  // namespace slipway
