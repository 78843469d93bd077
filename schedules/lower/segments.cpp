#include "schedules/lower/segments.h"

#include <algorithm>

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {
namespace {

// Rank of an operator as a segment's name: the heaviest kind wins, and the last of equals.
int naming_rank(OpKind kind) {
  switch (kind) {
    case OpKind::loss:
      return 9;
    case OpKind::logits:
      return 8;
    case OpKind::attention:
    case OpKind::ring_attention:
      return 7;
    case OpKind::qkv:
      return 6;
    case OpKind::up:
      return 5;
    case OpKind::down:
      return 4;
    case OpKind::embed:
      return 3;
    case OpKind::norm:
      return 2;
    default:
      return 1;
  }
}

std::string part_of(const Operator& op) {
  switch (op.kind) {
    case OpKind::attention:
      return "attn";
    case OpKind::ring_attention:
      return "attn" + std::to_string(op.round);
    case OpKind::route:
      return "router";
    case OpKind::up:
    case OpKind::activation:
    case OpKind::down:
      return (op.writes & wire_shared) != 0 ? "shared" : "mlp";
    default:
      return *op.part != '\0' ? op.part : name_of(op.kind);
  }
}

std::string segment_name(const std::vector<Operator>& operators, const std::vector<Block>& blocks,
                         const Segment& segment) {
  const auto op_at = [&](int i) -> const Operator& { return operators[i]; };
  int best = segment.first_op;
  for (int i = segment.first_op; i < segment.last_op; ++i) {
    if (naming_rank(op_at(i).kind) >= naming_rank(op_at(best).kind)) best = i;
  }
  const int block = op_at(best).block;
  // Whole: the segment holds all compute operators of the block, and of no other.
  bool whole = segment.first_block == block && segment.last_block == block + 1;
  const auto is_of_block = [&](int i) {
    return i >= 0 && i < static_cast<int>(operators.size()) && op_at(i).block == block;
  };
  for (int i = segment.first_op - 1; whole && is_of_block(i); --i) whole = op_at(i).kind == OpKind::communicate;
  for (int i = segment.last_op; whole && is_of_block(i); ++i) whole = op_at(i).kind == OpKind::communicate;
  return block_name(blocks, block) + (whole ? "" : "." + part_of(op_at(best)));
}

// Per place between two operators, from before the first to behind the last.
struct WiresAt {
  std::vector<Wires> live;     // some later operator reads them before one overwrites them
  std::vector<Wires> written;  // by an earlier one, or received
};

WiresAt wires_at(const std::vector<Operator>& operators, bool is_first_stage, bool is_last_stage) {
  const std::size_t count = operators.size();
  WiresAt at{std::vector<Wires>(count + 1), std::vector<Wires>(count + 1)};
  at.live[count] = is_last_stage ? wire_loss : wire_residual;
  for (std::size_t i = count; i-- > 0;) {
    const Operator& op = operators[i];
    const auto reads = static_cast<Wires>(op.kind == OpKind::communicate ? op.wire : op.reads);
    at.live[i] = static_cast<Wires>(reads | (at.live[i + 1] & ~op.writes));
  }
  at.written[0] = is_first_stage ? 0 : wire_residual;
  for (std::size_t i = 0; i < count; ++i) at.written[i + 1] = static_cast<Wires>(at.written[i] | operators[i].writes);
  return at;
}

void finish(const std::vector<Operator>& operators, const std::vector<Block>& blocks, const WiresAt& wires,
            bool recompute_blocks, Segment& segment) {
  Wires touched = 0;
  segment.first_block = operators[segment.first_op].block;
  segment.last_block = operators[segment.last_op - 1].block + 1;
  segment.recomputed = recompute_blocks;
  for (int i = segment.first_op; i < segment.last_op; ++i) {
    const Operator& op = operators[i];
    touched = static_cast<Wires>(touched | op.reads | op.writes);
    if (blocks[op.block].kind != BlockKind::transformer) segment.recomputed = false;
  }
  segment.in = static_cast<Wires>(touched & wires.live[static_cast<std::size_t>(segment.first_op)] &
                                  wires.written[static_cast<std::size_t>(segment.first_op)]);
  segment.out = static_cast<Wires>(touched & wires.live[static_cast<std::size_t>(segment.last_op)]);
  segment.name = segment_name(operators, blocks, segment);
}

// True if operator i, or the one before it in the segment that began at `first`, is a round of a ring.
bool beside_ring(const std::vector<Operator>& operators, int first, int i) {
  const auto is_round = [&](int op) { return operators[op].kind == OpKind::ring_attention; };
  return i > first && (is_round(i) || is_round(i - 1));
}

// A communicate operator has the bytes of the whole tensor. A member of a gather gives its share; a member of a scatter
// receives its share.
WireBytes around(const Operator& communicate, WireValue of, const Sharding& sharding) {
  const int degree = communicate.axis == Axis::context         ? sharding.context
                     : communicate.axis == Axis::expert        ? sharding.expert
                     : communicate.axis == Axis::expert_tensor ? expert_tensor_of(sharding)
                                                               : sharding.tensor;
  const double sent = of == WireValue::value ? communicate.forward_sent : communicate.backward_sent;
  const double whole = communicate.message_bytes * sent, part = whole / degree;
  switch (communicate.forward) {
    case Collective::all_gather:
      return {part, whole};
    case Collective::reduce_scatter:
      return {whole, part};
    default:
      return {whole, whole};
  }
}

}  // namespace

bool input_comes_again(std::span<const Operator> operators, int at, const Block& block, Recompute recompute) {
  const int gather = gather_before(operators, at);
  return gather >= 0 && gathers_input(operators[gather]) && !is_recomputed(recompute, block);
}

std::string block_name(const std::vector<Block>& blocks, int block) {
  switch (blocks[block].kind) {
    case BlockKind::embedding:
      return "emb";
    case BlockKind::head:
      return "head";
    case BlockKind::transformer:
      break;
  }
  return "L" + std::to_string(block - 1);
}

StageSegments segments_of_stage(const std::vector<Operator>& operators, const std::vector<Block>& blocks, bool by_block,
                                bool recompute_blocks, bool is_first_stage, bool is_last_stage) {
  StageSegments stage;
  const int count = static_cast<int>(operators.size());
  const WiresAt wires = wires_at(operators, is_first_stage, is_last_stage);
  int first = 0;
  for (int i = 0; i <= count; ++i) {
    const bool at_end = i == count;
    const bool is_communication = !at_end && operators[i].kind == OpKind::communicate;
    const bool new_block =
        !at_end && i > first && (by_block || recompute_blocks) && operators[i].block != operators[i - 1].block;
    if (!at_end && !is_communication && !new_block && !beside_ring(operators, first, i)) continue;
    if (i > first) {
      Segment segment;
      segment.first_op = first;
      segment.last_op = i;
      while (i + segment.communicates < count && operators[i + segment.communicates].kind == OpKind::communicate)
        ++segment.communicates;
      segment.gather = gather_before(operators, first);
      finish(operators, blocks, wires, recompute_blocks, segment);
      stage.segments.push_back(segment);
    }
    first = is_communication ? i + 1 : i;
  }
  if (stage.segments.size() == 1) stage.segments.front().name.clear();
  return stage;
}

WireBytes wire_bytes(std::span<const Operator> operators, int last_op, Wires wire, WireValue of,
                     const Sharding& sharding, double boundary_bytes) {
  if (wire == wire_loss) return {8, 8};
  const auto next = static_cast<std::size_t>(last_op);
  for (std::size_t i = next; i < operators.size() && operators[i].kind == OpKind::communicate; ++i)
    if (operators[i].wire == wire) return around(operators[i], of, sharding);
  if (wire == wire_kv && next + 1 < operators.size() && operators[next].kind == OpKind::ring_attention)
    return around(operators[next + 1], of, sharding);  // the shift after it: this rank's keys and values
  if (wire == wire_residual) return {boundary_bytes, boundary_bytes};
  for (int i = last_op - 1; i >= 0; --i) {
    const Operator& op = operators[i];
    if (op.kind == OpKind::communicate && op.wire == wire) {
      const double after = around(op, of, sharding).after;
      return {after, after};
    }
    if (wire == wire_statistics && op.kind == OpKind::route) {
      const double bytes = static_cast<double>(op.n) * bytes_of(Dtype::float32);
      return {bytes, bytes};
    }
    if (wire == wire_gates && op.kind == OpKind::route) {
      const double scores = (op.writes & wire_statistics) != 0 ? static_cast<double>(op.m * op.n) : 0;
      const double bytes = (op.rows + scores) * bytes_of(Dtype::float32);
      return {bytes, bytes};
    }
    if ((op.writes & wire) != 0 && op.kind != OpKind::communicate && op.m > 0) {
      const double bytes = static_cast<double>(op.m) * static_cast<double>(op.n) * bytes_of(op.dtype);
      return {bytes, bytes};
    }
  }
  return {boundary_bytes, boundary_bytes};
}

}  // namespace slipway::schedules
