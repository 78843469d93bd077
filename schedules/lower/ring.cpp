// Attention around a ring of context ranks (Liu et al. 2023). Each rank computes on the block of keys and values that
// it has, while it sends that block to the next rank and receives another one. Three ranks, one layer:
//
//   forward   compute  qkv │attn0│attn1│attn2│ out      attn0: own block
//             cp           │kv1 │kv2 │                   kv1: every rank sends its own, kv2: what kv1 brought
//   backward  compute  out │attn1│attn2 │attn0│ qkv
//             cp       │kv1│kv2 │dkv1│dkv2 │             dkv2 brings each block's gradient home
//
// In the backward the blocks go around again, so that a rank keeps only its own. dkv1 is attn1's gradient of the
// present block, dkv2 the sum of attn2's and what dkv1 brought. Gradients travel in the blocks' own direction and are
// home after c−1 steps. A block is received while the one before it is in use and the one before that is freed: the
// shift of round r waits for round r−2. Guarded by tests/schedules/ring_test.cpp (times, memory, order) and
// tests/exec/execute_ring_test.cpp (results).
#include "schedules/lower/ring.h"

#include "schedules/lower/passes.h"

namespace slipway::schedules {

// The message of every member of a context group to the next one: the sum of its buffers.
struct ActionLowering::RingMessage {
  int op = 0;  // the communicate operator
  Pass pass = Pass::forward;
  BufferKind kind = BufferKind::value;
  const char* name = "";
  std::vector<std::vector<BufferId>> sends = {};  // lists of [k]
  TaskId waits_for = none_to_wait_for;            // the first of the members' tasks

  static constexpr TaskId none_to_wait_for = std::numeric_limits<TaskId>::max();
};

void ActionLowering::shift(const RingMessage& message, std::vector<BufferId>& arrives) {
  const Operator& op = operators_[message.op];
  Work work;
  work.kind = WorkKind::wire_collective;
  work.pass = message.pass;
  work.stage = action_.stage;
  work.first_op = message.op;
  work.last_op = message.op + 1;
  work.collective = Collective::shift;
  work.wire = wire_kv;
  work.dtype = op.dtype;
  work.bytes = op.message_bytes;
  if (message.sends.size() > 1) work.elements = op.message_bytes / bytes_of(op.dtype);
  work.suffix = "." + block_name(state_.blocks, op.block) + "." + message.name + std::to_string(op.round);
  const int id = state_.builder.work(work), pipeline = state_.pipeline_rank(action_.stage);
  arrives.resize(members_);
  std::vector<BufferId> inputs, outputs;
  for (const auto& group : state_.groups.groups(Axis::context, pipeline)) {
    inputs.clear();
    outputs.clear();
    for (const int k : group.members) {
      for (const auto& list : message.sends) inputs.push_back(list[k]);
      outputs.push_back(state_.builder.buffer(message.kind, wire_kv, state_.groups.rank(pipeline, k), work.bytes));
      arrives[k] = outputs.back();
    }
    const TaskId task =
        state_.add_collective(group.communicator, id, action_.micro_batch, action_.slice, inputs, outputs);
    if (message.waits_for == RingMessage::none_to_wait_for) continue;
    for (const int k : group.members) state_.builder.control(message.waits_for + static_cast<TaskId>(k), task);
  }
}

namespace {

// `width`: of a head.
double numbers_of_heads(const TaskGraph& graph, const Operator& op, const Block& block, std::int64_t width) {
  return static_cast<double>(op.m) * static_cast<double>(block.heads / graph.shape().sharding.tensor * width);
}

// Bytes of the output so far, or of the queries' gradient so far, in the format of sums.
double running_bytes(const TaskGraph& graph, const Operator& op, const Block& block, std::int64_t width) {
  return std::max(4, bytes_of(op.dtype)) * numbers_of_heads(graph, op, block, width);
}

}  // namespace

TaskId ActionLowering::round_forward(int i, Pass pass, std::span<const BufferId> keys_values,
                                     std::vector<BufferId>& attended) {
  const Segment& s = segment(i);
  const Operator& op = operators_[s.first_op];
  const Block& block = state_.blocks[op.block];
  const bool is_first = op.round == 0, is_last = op.round + 1 == rounds();
  const bool saves = pass == Pass::recompute || !s.recomputed;
  const int pipeline = state_.pipeline_rank(action_.stage), work = segment_work(i, pass);
  const double out_bytes = is_last ? bytes_of(op.dtype) * numbers_of_heads(state_.graph, op, block, value_dim(block))
                                   : running_bytes(state_.graph, op, block, value_dim(block));
  std::vector<BufferId> inputs, outputs;
  TaskId task = 0;
  for (std::size_t k = 0; k < members_; ++k) {
    const int rank = state_.groups.rank(pipeline, static_cast<int>(k));
    // The first round keeps the queries; the others read them from there.
    inputs.assign({is_first || !saves ? at(wire_branch, k) : passage_.saved[slot(i - op.round, k)], keys_values[k]});
    if (!is_first) inputs.push_back(attended[k]);
    outputs.assign(1, state_.builder.buffer(BufferKind::value, is_last ? wire_branch : wire_attended, rank, out_bytes));
    attended[k] = outputs.front();
    if (saves && (is_first || is_last)) {
      outputs.push_back(state_.builder.buffer(BufferKind::saved, 0, rank, saved_bytes(s)));
      passage_.saved[slot(i, k)] = outputs.back();
    }
    task = state_.add_compute(action_, static_cast<int>(k), work, inputs, outputs);
  }
  return task + 1 - static_cast<TaskId>(members_);
}

void ActionLowering::ring_forward(int first, Pass pass) {
  std::vector<BufferId> here = wires_[wire_index(wire_kv)], attended(members_, no_buffer), next;
  RingMessage message{.pass = pass, .name = "ring_kv"};
  for (int round = 0; round < rounds(); ++round) {
    if (round + 1 < rounds()) {
      message.op = segment(first + round).last_op;
      message.sends = {here};
      shift(message, next);
    }
    const TaskId done = round_forward(first + round, pass, here, attended);
    if (round > 0) message.waits_for = done;
    here = next;
  }
  wires_[wire_index(wire_branch)] = attended;
  wires_[wire_index(wire_kv)].assign(members_, no_buffer);
}

TaskId ActionLowering::round_backward(int i, std::span<const BufferId> keys_values,
                                      std::span<const BufferId> out_gradient, std::vector<BufferId>& query_gradient) {
  const Operator& op = operators_[segment(i).first_op];
  const Block& block = state_.blocks[op.block];
  const int first = i - op.round, pipeline = state_.pipeline_rank(action_.stage);
  const int work = segment_work(i, action_.pass);
  const bool is_last = op.round == 0;
  const double query_bytes = is_last ? bytes_of(op.dtype) * numbers_of_heads(state_.graph, op, block, block.head_dim)
                                     : running_bytes(state_.graph, op, block, block.head_dim);
  const double block_bytes = operators_[segment(first).last_op].message_bytes;
  std::vector<BufferId> inputs, outputs;
  TaskId task = 0;
  for (std::size_t k = 0; k < members_; ++k) {
    const int rank = state_.groups.rank(pipeline, static_cast<int>(k));
    inputs.assign({passage_.saved[slot(first, k)], passage_.saved[slot(first + rounds() - 1, k)], out_gradient[k]});
    if (!is_last) inputs.push_back(keys_values[k]);
    if (op.round != 1) inputs.push_back(query_gradient[k]);
    const Wires query = is_last ? wire_branch : wire_attended;
    outputs.assign({state_.builder.buffer(BufferKind::gradient, wire_kv, rank, block_bytes),
                    state_.builder.buffer(BufferKind::gradient, query, rank, query_bytes)});
    at(wire_kv, k) = outputs[0], query_gradient[k] = outputs[1];
    task = state_.add_compute(action_, static_cast<int>(k), work, inputs, outputs);
  }
  return task + 1 - static_cast<TaskId>(members_);
}

void ActionLowering::ring_backward(int first) {
  const std::vector<BufferId> out_gradient = wires_[wire_index(wire_branch)];
  std::vector<BufferId> here(members_), next, query_gradient(members_, no_buffer);
  for (std::size_t k = 0; k < members_; ++k) here[k] = passage_.saved[slot(first, k)];
  RingMessage values{.pass = action_.pass, .name = "ring_kv"};
  RingMessage gradients{.pass = action_.pass, .kind = BufferKind::gradient, .name = "ring_dkv"};
  const auto send_values = [&](int round) {
    values.op = segment(first + round - 1).last_op;
    values.sends = {here};
    shift(values, next);
  };
  send_values(1);
  for (int round = 1; round < rounds(); ++round) {
    here = next;
    if (round + 1 < rounds()) send_values(round + 1);
    values.waits_for = round_backward(first + round, here, out_gradient, query_gradient);
    gradients.op = segment(first + round - 1).last_op;
    gradients.sends = {wires_[wire_index(wire_kv)]};
    if (round > 1) gradients.sends.push_back(came_home_);
    shift(gradients, came_home_);
  }
  round_backward(first, here, out_gradient, query_gradient);
  wires_[wire_index(wire_branch)] = query_gradient;
}

// The first block of a backward ring exists since the forward pass. It leaves when the compute task two before the
// first round is done, so it travels while the gradient of the layer's output is still being made.
void limit_ring_prefetch(LoweringState& state) {
  if (state.graph.shape().sharding.context == 1 || state.graph.shape().sharding.exchange != ContextExchange::ring)
    return;
  const auto is_kept = [&](BufferId b) { return state.graph.buffers[b].kind == BufferKind::saved; };
  for (const auto& list : state.placed) {
    for (std::size_t i = 2; i < list.size(); ++i) {
      for (const BufferId in : state.graph.inputs[list[i].second]) {
        const Buffer& buffer = state.graph.buffers[in];
        if (buffer.kind != BufferKind::value || buffer.wire != wire_kv) continue;
        const auto writer = state.graph.writer(buffer);
        if (writer && state.graph.tasks[*writer].communicator != none && is_kept(state.graph.inputs[*writer][0]))
          state.builder.control(list[i - 2].second, *writer);
      }
    }
  }
}

}  // namespace slipway::schedules
