// The forward of an action, and what both directions share: wire collectives and transfers.
#include <algorithm>

#include "models/memory_parts.h"
#include "schedules/graph/action_lowering.h"

namespace slipway {

int ActionLowering::segment_work(int i, Pass pass) {
  const Segment& s = segment(i);
  Work work;
  work.kind = WorkKind::segment;
  work.pass = pass;
  work.stage = action_.stage;
  work.slice = action_.slice;
  work.first_op = s.first_op;
  work.last_op = s.last_op;
  work.dtype = state_.graph.shape.dtype;
  work.suffix = label_tail(s.name);
  return state_.builder.work(work);
}

double ActionLowering::saved_bytes(const Segment& s) const {
  double bytes = 0;
  for (int i = s.first_op; i < s.last_op; ++i) bytes += operators_[static_cast<std::size_t>(i)].saved_bytes;
  if (s.gather < 0) return bytes;
  const Operator& gather = operators_[static_cast<std::size_t>(s.gather)];
  return bytes + bytes_beside_shard(gather, state_.blocks[static_cast<std::size_t>(gather.block)], state_.graph.shape.sharding,
                                    s.recomputed);
}

bool ActionLowering::has_attention(const Segment& s) const {
  return std::any_of(operators_.begin() + s.first_op, operators_.begin() + s.last_op,
                     [](const Operator& op) { return op.kind == OpKind::attention; });
}

void ActionLowering::forward_segment(int i, Pass pass, bool emits) {
  const Segment& s = segment(i);
  const bool saves = pass == Pass::recompute || !s.recomputed;
  const int pipeline = state_.pipeline_rank(action_.stage);
  const int work = segment_work(i, pass);
  const bool attends = has_attention(s);
  gather_weights(i, pass, weights_);
  std::vector<BufferId> inputs, outputs;
  for (std::size_t k = 0; k < members_; ++k) {
    const int rank = state_.groups.rank(pipeline, static_cast<int>(k));
    inputs.clear();
    outputs.clear();
    for_each_wire(s.in, [&](Wires wire) { inputs.push_back(at(wire, k)); });
    if (attends && action_.slice > 0)
      inputs.push_back(state_.passage(action_.stage, action_.micro_batch, action_.slice - 1).cache[slot(i, k)]);
    for (std::size_t b = static_cast<std::size_t>(s.first_block);
         !weights_.empty() && b < static_cast<std::size_t>(s.last_block); ++b) {
      inputs.push_back(weights_[b][k]);
    }
    if (emits) {
      for_each_wire(s.out, [&](Wires wire) {
        const WireBytes bytes =
            wire_bytes(operators_, s.last_op, wire, state_.graph.shape.sharding, state_.boundary);
        outputs.push_back(state_.builder.buffer(BufferKind::value, wire, rank, bytes.before));
        at(wire, k) = outputs.back();
      });
    }
    if (attends && action_.slice + 1 < state_.input.slices) {
      outputs.push_back(state_.builder.buffer(BufferKind::value, wire_kv, rank, 0));
      passage_.cache[slot(i, k)] = outputs.back();
    }
    if (saves) {
      outputs.push_back(state_.builder.buffer(BufferKind::saved, 0, rank, saved_bytes(s)));
      passage_.saved[slot(i, k)] = outputs.back();
    }
    state_.add_compute(action_, static_cast<int>(k), work, inputs, outputs);
  }
}

void ActionLowering::collective(int i, Pass pass) {
  const int at_op = segment(i).communicate;
  if (at_op < 0) return;
  const Operator& op = operators_[static_cast<std::size_t>(at_op)];
  const bool is_backward = pass == Pass::backward || pass == Pass::input_grad;
  const Collective kind = is_backward ? op.backward : op.forward;
  if (kind == Collective::none || at(op.wire, 0) == no_buffer) return;
  Work work;
  work.kind = WorkKind::wire_collective;
  work.pass = pass;
  work.stage = action_.stage;
  work.first_op = at_op;
  work.last_op = at_op + 1;
  work.collective = kind;
  work.wire = op.wire;
  work.dtype = op.dtype;
  work.bytes = op.message_bytes;
  work.suffix = "." + block_name(state_.blocks, op.block) + "." + op.part;
  const int id = state_.builder.work(work);
  const WireBytes bytes =
      wire_bytes(operators_, at_op, op.wire, state_.graph.shape.sharding, state_.boundary);
  const int pipeline = state_.pipeline_rank(action_.stage);
  std::vector<BufferId> inputs, outputs;
  for (const auto& group : state_.groups.groups(op.axis, pipeline)) {
    inputs.clear();
    outputs.clear();
    for (const int k : group.members) {
      BufferId& held = at(op.wire, static_cast<std::size_t>(k));
      inputs.push_back(held);
      held =
          state_.builder.buffer(is_backward ? BufferKind::gradient : BufferKind::value, op.wire,
                                state_.groups.rank(pipeline, k), is_backward ? bytes.before : bytes.after);
      outputs.push_back(held);
    }
    state_.add_collective(group.communicator, id, action_.micro_batch, action_.slice, inputs, outputs);
  }
}

void ActionLowering::transfer(int to_stage, std::vector<BufferId>& arrivals, BufferKind kind) {
  const int from = state_.pipeline_rank(action_.stage), to = state_.pipeline_rank(to_stage);
  arrivals.assign(members_, no_buffer);
  if (from == to) {  // both stages on one rank: the buffer is simply read there
    arrivals = wires_[wire_index(wire_residual)];
    return;
  }
  Work work;
  work.kind = WorkKind::transfer;
  work.pass = action_.pass;
  work.stage = action_.stage;
  work.collective = Collective::send;
  work.wire = wire_residual;
  work.dtype = state_.graph.shape.dtype;
  work.bytes = state_.boundary;
  work.suffix = ".send";
  const int id = state_.builder.work(work);
  for (std::size_t k = 0; k < members_; ++k) {
    const int sender = state_.groups.rank(from, static_cast<int>(k)),
              receiver = state_.groups.rank(to, static_cast<int>(k));
    arrivals[k] = state_.builder.buffer(kind, wire_residual, receiver, state_.boundary);
    state_.builder.task(
        {TaskKind::transfer, none, state_.groups.pipeline_pair(sender, receiver, kind == BufferKind::value),
         id, action_.micro_batch, action_.slice},
        std::span(&at(wire_residual, k), 1), std::span(&arrivals[k], 1));
  }
}

void ActionLowering::forward_segments(int first, int last, Pass pass) {
  for (int i = first; i < last; ++i) {
    if (in_ring(i)) {
      ring_forward(i, pass);
      i += rounds() - 1;
      continue;
    }
    const bool emits = pass == Pass::forward || i + 1 < last;
    if (pass == Pass::forward && segment(i).recomputed && starts_block(i)) {
      for (std::size_t k = 0; k < members_; ++k) passage_.block_entry[slot(i, k)] = at(wire_residual, k);
    }
    forward_segment(i, pass, emits);
    if (pass == Pass::forward && i + 1 < last && comes_again(i + 1)) keep_shards(i + 1);
    if (emits) collective(i, pass);
  }
}

void ActionLowering::forward() {
  const std::size_t slots = plan_.segments.size() * members_;
  passage_.saved.assign(slots, no_buffer);
  passage_.shard.assign(slots, no_buffer);
  passage_.block_entry.assign(slots, no_buffer);
  passage_.cache.assign(slots, no_buffer);
  passage_.cache_gradient.assign(slots, no_buffer);
  if (!state_.graph.placement.is_first(action_.stage)) wires_[wire_index(wire_residual)] = passage_.entry;
  forward_segments(0, segments(), Pass::forward);
  if (!state_.graph.placement.is_last(action_.stage)) {
    transfer(action_.stage + 1, state_.passage(action_.stage + 1, action_.micro_batch, action_.slice).entry,
             BufferKind::value);
  }
}

}  // namespace slipway
