// The backward of an action, whole or split in input and weight gradients, with recomputation.
#include <algorithm>

#include "models/memory_parts.h"
#include "schedules/graph/action_lowering.h"

namespace slipway {

bool ActionLowering::has_weight_grad(const Segment& s) const {
  return std::any_of(operators_.begin() + s.first_op, operators_.begin() + s.last_op,
                     [](const Operator& op) { return op.weight_grad_flops > 0; });
}

double ActionLowering::bytes_of_cache(const Segment& s) const {
  const WorkShape& shape = state_.graph.shape;
  double numbers = 0;
  for (int i = s.first_op; i < s.last_op; ++i) {
    const Operator& op = operators_[static_cast<std::size_t>(i)];
    if (op.kind != OpKind::attention) continue;
    const Block& block = state_.blocks[static_cast<std::size_t>(op.block)];
    numbers += 2.0 * static_cast<double>(shape.micro_batch * action_.slice * shape.sequence *
                                         (block.kv_heads / shape.sharding.tensor) * block.head_dim);
  }
  return numbers * bytes_of(shape.dtype);
}

void ActionLowering::recompute_block_ending_at(int last) {
  int first = last;
  while (!starts_block(first)) --first;
  ActionLowering again(state_, action_);
  for (std::size_t k = 0; k < members_; ++k)
    again.at(wire_residual, k) = passage_.block_entry[slot(first, k)];
  again.weights_ = weights_;
  again.forward_segments(first, last + 1, Pass::recompute);
  weights_ = std::move(again.weights_);  // gathered once for both passes
  if (last + 1 == segments()) begin_when_gradient_arrives(first);
}

void ActionLowering::begin_when_gradient_arrives(int recomputed) {
  if (state_.graph.placement.is_last(action_.stage)) return;
  for (std::size_t k = 0; k < members_; ++k) {
    const auto writer_of = [&](BufferId id) {
      return static_cast<TaskId>(state_.graph.buffers[id].writer);
    };
    state_.builder.control(writer_of(passage_.exit_gradient[k]),
                           writer_of(passage_.saved[slot(recomputed, k)]));
  }
}

double ActionLowering::bytes_left_by(int i) const {
  const Segment& s = segment(i);
  const auto operators = operators_.subspan(static_cast<std::size_t>(s.first_op), static_cast<std::size_t>(s.last_op - s.first_op));
  return bytes_for_weight_grads(operators, comes_again(i));
}

void ActionLowering::backward_segment(int i) {
  const Segment& s = segment(i);
  const int pipeline = state_.pipeline_rank(action_.stage);
  const int work = segment_work(i, action_.pass);
  const bool leaves_weights = action_.pass == Pass::input_grad && has_weight_grad(s);
  const bool attends = has_attention(s);
  gather_weights(i, action_.pass, weights_);
  if (!leaves_weights) gather_again(i);
  std::vector<BufferId> inputs, outputs;
  for (std::size_t k = 0; k < members_; ++k) {
    const int rank = state_.groups.rank(pipeline, static_cast<int>(k));
    inputs.assign(1, passage_.saved[slot(i, k)]);
    if (!again_.empty()) inputs.push_back(again_[k]);
    outputs.clear();
    for_each_wire(static_cast<Wires>(s.out & wires_with_gradient), [&](Wires wire) {
      if (at(wire, k) != no_buffer) inputs.push_back(at(wire, k));
      if (wire == wire_kv && !came_home_.empty()) inputs.push_back(came_home_[k]);
    });
    for (std::size_t b = static_cast<std::size_t>(s.first_block);
         !weights_.empty() && b < static_cast<std::size_t>(s.last_block); ++b) {
      inputs.push_back(weights_[b][k]);
    }
    for_each_wire(wires_with_gradient, [&](Wires wire) {
      if ((s.out & wire) != 0) at(wire, k) = no_buffer;  // consumed
      if ((s.in & wire) == 0) return;
      const double bytes =
          wire_bytes(operators_, s.first_op - 1, wire, state_.graph.shape.sharding, state_.boundary).after;
      outputs.push_back(state_.builder.buffer(BufferKind::gradient, wire, rank, bytes));
      at(wire, k) = outputs.back();
    });
    if (attends && action_.slice + 1 < state_.input.slices)
      inputs.push_back(passage_.cache_gradient[slot(i, k)]);
    if (attends && action_.slice > 0) {
      outputs.push_back(state_.builder.buffer(BufferKind::gradient, wire_kv, rank, bytes_of_cache(s)));
      state_.passage(action_.stage, action_.micro_batch, action_.slice - 1).cache_gradient[slot(i, k)] =
          outputs.back();
    }
    if (leaves_weights) {
      outputs.push_back(state_.builder.buffer(BufferKind::saved, 0, rank, bytes_left_by(i)));
      passage_.saved_weight[slot(i, k)] = outputs.back();
    }
    const TaskId id = state_.add_compute(action_, static_cast<int>(k), work, inputs, outputs);
    if (k + 1 == members_) reduce_finished_blocks(i, id + 1 - static_cast<TaskId>(members_));
  }
  came_home_.clear();
  again_.clear();
}

void ActionLowering::backward() {
  passage_.saved_weight.assign(passage_.saved.size(), no_buffer);
  if (!state_.graph.placement.is_last(action_.stage))
    wires_[wire_index(wire_residual)] = passage_.exit_gradient;
  for (int i = segments() - 1; i >= 0; --i) {
    const bool ends_block = i + 1 == segments() || starts_block(i + 1);
    collective(i, action_.pass);
    if (segment(i).recomputed && ends_block) recompute_block_ending_at(i);
    if (in_ring(i)) {
      i -= rounds() - 1;
      ring_backward(i);
      continue;
    }
    backward_segment(i);
  }
  if (!state_.graph.placement.is_first(action_.stage)) {
    transfer(action_.stage - 1,
             state_.passage(action_.stage - 1, action_.micro_batch, action_.slice).exit_gradient,
             BufferKind::gradient);
  }
}

void ActionLowering::weight_grad() {
  for (int i = segments() - 1; i >= 0; --i) {
    if (!has_weight_grad(segment(i))) continue;
    const int work = segment_work(i, Pass::weight_grad);
    gather_again(i);
    std::vector<BufferId> inputs;
    for (std::size_t k = 0; k < members_; ++k) {
      inputs.assign(1, passage_.saved_weight[slot(i, k)]);
      if (!again_.empty()) inputs.push_back(again_[k]);
      const TaskId id = state_.add_compute(action_, static_cast<int>(k), work, inputs, {});
      if (k + 1 == members_) reduce_finished_blocks(i, id + 1 - static_cast<TaskId>(members_));
    }
    again_.clear();
  }
}

}  // namespace slipway
