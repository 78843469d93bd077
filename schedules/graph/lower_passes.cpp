// Actions → segments, wire collectives and transfers.
//
//   2F0:  entry ─ seg ─ ag ─ seg ─ rs ─ seg ─► 2F0.send ─► entry of 3F0
//   2B0:  the same segments backwards, on gradients, with the dual collectives
//
// With full recomputation a backward action is, per transformer block from last to first, the block's
// forward again (pass R, which keeps what the backward needs) and then its backward.
#include <algorithm>
#include <bit>

#include "models/parameters.h"
#include "schedules/graph/lowering_state.h"

namespace slipway {
namespace {

constexpr Wires wires_with_gradient = wire_residual | wire_branch | wire_kv;
std::size_t wire_index(Wires wire) { return static_cast<std::size_t>(std::countr_zero(wire)); }

template <typename Visit>
void for_each_wire(Wires wires, Visit visit) {
  for (Wires rest = wires; rest != 0; rest = static_cast<Wires>(rest & (rest - 1))) {
    visit(static_cast<Wires>(rest & -rest));
  }
}

// One action of one stage being lowered, for all members.
class ActionLowering {
 public:
  ActionLowering(LoweringState& state, const Action& action)
      : state_(state),
        action_(action),
        plan_(state.plan_of(action.stage, action.micro_batch)),
        operators_(state.graph.stage_operators[static_cast<std::size_t>(action.stage)]),
        passage_(state.passage(action.stage, action.micro_batch, action.slice)),
        members_(static_cast<std::size_t>(state.members())) {
    for (auto& wire : wires_) wire.assign(members_, no_buffer);
  }

  void forward();
  void backward();
  void weight_grad();

 private:
  int segments() const { return static_cast<int>(plan_.segments.size()); }
  const Segment& segment(int i) const { return plan_.segments[static_cast<std::size_t>(i)]; }
  std::size_t slot(int i, std::size_t k) const { return static_cast<std::size_t>(i) * members_ + k; }
  BufferId& at(Wires wire, std::size_t k) { return wires_[wire_index(wire)][k]; }
  bool starts_block(int i) const {
    return i == 0 || segment(i - 1).first_block != segment(i).first_block;
  }

  void forward_segments(int first, int last, Pass pass);
  void forward_segment(int i, Pass pass, bool emits);
  void backward_segment(int i);
  void recompute_block_ending_at(int last);
  void collective(int i, Pass pass);
  void transfer(int to_stage, std::vector<BufferId>& arrivals, BufferKind kind);
  void gather_weights(int i, Pass pass, std::vector<std::vector<BufferId>>& gathered);
  void reduce_finished_blocks(int i, TaskId first_writer);
  int segment_work(int i, Pass pass);
  double saved_bytes(const Segment& segment) const;
  bool has_weight_grad(const Segment& segment) const;
  std::string label_tail(const std::string& name) const { return name.empty() ? "" : "." + name; }

  LoweringState& state_;
  Action action_;
  const StagePlan& plan_;
  const std::vector<Operator>& operators_;
  Passage& passage_;
  std::size_t members_;
  WireBuffers wires_;  // values in a forward, gradients in a backward
  std::vector<std::vector<BufferId>> weights_;  // ZeRO 3: gathered parameters per [block], per member
};

int ActionLowering::segment_work(int i, Pass pass) {
  const Segment& s = segment(i);
  Work work;
  work.kind = WorkKind::segment;
  work.pass = pass;
  work.stage = action_.stage;
  work.first_op = s.first_op;
  work.last_op = s.last_op;
  work.dtype = state_.graph.shape.dtype;
  work.suffix = label_tail(s.name);
  return state_.builder.work(work);
}

double ActionLowering::saved_bytes(const Segment& s) const {
  double bytes = 0;
  for (int i = s.first_op; i < s.last_op; ++i) bytes += operators_[static_cast<std::size_t>(i)].saved_bytes;
  return bytes;
}

bool ActionLowering::has_weight_grad(const Segment& s) const {
  return std::any_of(operators_.begin() + s.first_op, operators_.begin() + s.last_op,
                     [](const Operator& op) { return op.weight_grad_flops > 0; });
}

void ActionLowering::gather_weights(int i, Pass pass, std::vector<std::vector<BufferId>>& gathered) {
  if (state_.input.layout.zero < 3 || state_.data_degree() <= 1) return;
  gathered.resize(state_.blocks.size());
  const int pipeline = state_.pipeline_rank(action_.stage);
  for (int block = segment(i).first_block; block < segment(i).last_block; ++block) {
    auto& buffers = gathered[static_cast<std::size_t>(block)];
    if (!buffers.empty()) continue;
    buffers.resize(members_);
    Work work;
    work.kind = WorkKind::parameter_gather;
    work.pass = pass;
    work.stage = action_.stage;
    work.block = block;
    work.collective = Collective::all_gather;
    work.dtype = state_.graph.shape.dtype;
    work.bytes = static_cast<double>(block_shard_elements(state_.input.model, block, state_.input.layout.tensor)) *
                 bytes_of(work.dtype);
    work.suffix = "." + block_name(state_.blocks, block) + ".ag_param";
    const int id = state_.builder.work(work);
    for (const auto& group : state_.groups.groups(Axis::data, pipeline)) {
      std::vector<BufferId> out;
      for (const int k : group.members) {
        out.push_back(state_.builder.buffer(BufferKind::parameter, 0, state_.groups.rank(pipeline, k), work.bytes));
        buffers[static_cast<std::size_t>(k)] = out.back();
      }
      const TaskId task = state_.add_collective(group.communicator, id, action_.micro_batch, action_.slice, {}, out);
      for (const int k : group.members) {
        state_.weight_gathers[static_cast<std::size_t>(state_.groups.rank(pipeline, k))].push_back(task);
      }
    }
  }
}

void ActionLowering::forward_segment(int i, Pass pass, bool emits) {
  const Segment& s = segment(i);
  const bool saves = pass == Pass::recompute || !s.recomputed;
  const int pipeline = state_.pipeline_rank(action_.stage);
  const int work = segment_work(i, pass);
  gather_weights(i, pass, weights_);
  std::vector<BufferId> inputs, outputs;
  for (std::size_t k = 0; k < members_; ++k) {
    const int rank = state_.groups.rank(pipeline, static_cast<int>(k));
    inputs.clear();
    outputs.clear();
    for_each_wire(s.in, [&](Wires wire) { inputs.push_back(at(wire, k)); });
    for (std::size_t b = static_cast<std::size_t>(s.first_block); !weights_.empty() && b < static_cast<std::size_t>(s.last_block); ++b) {
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
  const WireBytes bytes = wire_bytes(operators_, at_op, op.wire, state_.graph.shape.sharding, state_.boundary);
  const int pipeline = state_.pipeline_rank(action_.stage);
  std::vector<BufferId> inputs, outputs;
  for (const auto& group : state_.groups.groups(op.axis, pipeline)) {
    inputs.clear();
    outputs.clear();
    for (const int k : group.members) {
      BufferId& held = at(op.wire, static_cast<std::size_t>(k));
      inputs.push_back(held);
      held = state_.builder.buffer(is_backward ? BufferKind::gradient : BufferKind::value, op.wire,
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
    const int sender = state_.groups.rank(from, static_cast<int>(k)), receiver = state_.groups.rank(to, static_cast<int>(k));
    arrivals[k] = state_.builder.buffer(kind, wire_residual, receiver, state_.boundary);
    state_.builder.task({TaskKind::transfer, none, state_.groups.pipeline_pair(sender, receiver, kind == BufferKind::value),
                         id, action_.micro_batch, action_.slice},
                        std::span(&at(wire_residual, k), 1), std::span(&arrivals[k], 1));
  }
}

void ActionLowering::forward_segments(int first, int last, Pass pass) {
  for (int i = first; i < last; ++i) {
    const bool emits = pass == Pass::forward || i + 1 < last;
    if (pass == Pass::forward && segment(i).recomputed && starts_block(i)) {
      for (std::size_t k = 0; k < members_; ++k) passage_.block_entry[slot(i, k)] = at(wire_residual, k);
    }
    forward_segment(i, pass, emits);
    if (emits) collective(i, pass);
  }
}

void ActionLowering::forward() {
  const std::size_t slots = plan_.segments.size() * members_;
  passage_.saved.assign(slots, no_buffer);
  passage_.block_entry.assign(slots, no_buffer);
  if (action_.stage > 0) wires_[wire_index(wire_residual)] = passage_.entry;
  forward_segments(0, segments(), Pass::forward);
  if (action_.stage + 1 < state_.stages()) {
    transfer(action_.stage + 1,
             state_.passage(action_.stage + 1, action_.micro_batch, action_.slice).entry, BufferKind::value);
  }
}

void ActionLowering::recompute_block_ending_at(int last) {
  int first = last;
  while (!starts_block(first)) --first;
  ActionLowering again(state_, action_);
  for (std::size_t k = 0; k < members_; ++k) again.at(wire_residual, k) = passage_.block_entry[slot(first, k)];
  again.weights_ = weights_;
  again.forward_segments(first, last + 1, Pass::recompute);
  weights_ = std::move(again.weights_);  // gathered once for both passes
}

// ZeRO 2 and 3 keep gradients sharded: each micro-batch's gradient of a block is reduce-scattered as soon
// as the last segment that adds to it (the block's first, of those with work in this pass) is done.
void ActionLowering::reduce_finished_blocks(int i, TaskId first_writer) {
  if (!state_.shards_gradients_per_micro_batch()) return;
  const int block = segment(i).first_block, pipeline = state_.pipeline_rank(action_.stage);
  bool has_weight_pass = false, has_earlier = false;
  for (int j = 0; j < segments(); ++j) {
    if (segment(j).first_block != block) continue;
    has_weight_pass |= action_.pass != Pass::backward && has_weight_grad(segment(j));
    has_earlier |= j < i && (action_.pass != Pass::weight_grad || has_weight_grad(segment(j)));
  }
  if (has_earlier || (has_weight_pass && action_.pass == Pass::input_grad)) return;
  Work work = bucket_work(state_, WorkKind::grad_reduce, action_.stage, block);
  work.pass = action_.pass;
  const int id = state_.builder.work(work);
  std::vector<BufferId> inputs, outputs;
  for (const auto& group : state_.groups.groups(Axis::data, pipeline)) {
    inputs.clear();
    outputs.clear();
    for (const int k : group.members) {
      const int rank = state_.groups.rank(pipeline, k);
      inputs.push_back(state_.builder.buffer(BufferKind::bucket, 0, rank, work.bytes));
      state_.builder.late_output(first_writer + static_cast<TaskId>(k), inputs.back());
      outputs.push_back(state_.builder.buffer(BufferKind::bucket, 0, rank, 0));
      state_.bucket(rank, block).push_back(outputs.back());
    }
    state_.add_collective(group.communicator, id, action_.micro_batch, action_.slice, inputs, outputs);
  }
}

void ActionLowering::backward_segment(int i) {
  const Segment& s = segment(i);
  const int pipeline = state_.pipeline_rank(action_.stage);
  const int work = segment_work(i, action_.pass);
  const bool leaves_weights = action_.pass == Pass::input_grad && has_weight_grad(s);
  gather_weights(i, action_.pass, weights_);
  std::vector<BufferId> inputs, outputs;
  for (std::size_t k = 0; k < members_; ++k) {
    const int rank = state_.groups.rank(pipeline, static_cast<int>(k));
    inputs.assign(1, passage_.saved[slot(i, k)]);
    outputs.clear();
    for_each_wire(s.out & wires_with_gradient, [&](Wires wire) {
      if (at(wire, k) != no_buffer) inputs.push_back(at(wire, k));
    });
    for (std::size_t b = static_cast<std::size_t>(s.first_block); !weights_.empty() && b < static_cast<std::size_t>(s.last_block); ++b) {
      inputs.push_back(weights_[b][k]);
    }
    for_each_wire(wires_with_gradient, [&](Wires wire) {
      if ((s.out & wire) != 0) at(wire, k) = no_buffer;  // consumed
      if ((s.in & wire) == 0) return;
      const double bytes = wire_bytes(operators_, s.first_op - 1, wire, state_.graph.shape.sharding, state_.boundary).after;
      outputs.push_back(state_.builder.buffer(BufferKind::gradient, wire, rank, bytes));
      at(wire, k) = outputs.back();
    });
    if (leaves_weights) {
      outputs.push_back(state_.builder.buffer(BufferKind::saved, 0, rank, saved_bytes(s)));
      passage_.saved_weight[slot(i, k)] = outputs.back();
    }
    const TaskId id = state_.add_compute(action_, static_cast<int>(k), work, inputs, outputs);
    if (k + 1 == members_) reduce_finished_blocks(i, id + 1 - static_cast<TaskId>(members_));
  }
}

void ActionLowering::backward() {
  passage_.saved_weight.assign(passage_.saved.size(), no_buffer);
  if (action_.stage + 1 < state_.stages()) wires_[wire_index(wire_residual)] = passage_.exit_gradient;
  for (int i = segments() - 1; i >= 0; --i) {
    const bool ends_block = i + 1 == segments() || starts_block(i + 1);
    collective(i, action_.pass);
    if (segment(i).recomputed && ends_block) recompute_block_ending_at(i);
    backward_segment(i);
  }
  if (action_.stage > 0) {
    transfer(action_.stage - 1,
             state_.passage(action_.stage - 1, action_.micro_batch, action_.slice).exit_gradient,
             BufferKind::gradient);
  }
}

void ActionLowering::weight_grad() {
  for (int i = segments() - 1; i >= 0; --i) {
    if (!has_weight_grad(segment(i))) continue;
    const int work = segment_work(i, Pass::weight_grad);
    for (std::size_t k = 0; k < members_; ++k) {
      const BufferId kept = passage_.saved_weight[slot(i, k)];
      const TaskId id = state_.add_compute(action_, static_cast<int>(k), work, std::span(&kept, 1), {});
      if (k + 1 == members_) reduce_finished_blocks(i, id + 1 - static_cast<TaskId>(members_));
    }
  }
}

void lower_stage_actions(LoweringState& state, int stage, Pass pass) {
  constexpr auto absent = std::numeric_limits<std::uint32_t>::max();
  for (int micro_batch = 0; micro_batch < state.graph.micro_batches; ++micro_batch) {
    for (int i = 0; i < state.input.slices; ++i) {
      const int slice = pass == Pass::forward ? i : state.input.slices - 1 - i;
      const Action action{pass, stage, micro_batch, slice};
      if (state.index_of(action) == absent) continue;
      ActionLowering lowering(state, action);
      if (pass == Pass::forward) lowering.forward();
      else if (pass == Pass::weight_grad) lowering.weight_grad();
      else lowering.backward();
    }
  }
}

}  // namespace

void lower_passes(LoweringState& state) {
  for (int stage = 0; stage < state.stages(); ++stage) lower_stage_actions(state, stage, Pass::forward);
  for (int stage = state.stages() - 1; stage >= 0; --stage) {
    for (const Pass pass : {Pass::backward, Pass::input_grad, Pass::weight_grad}) {
      lower_stage_actions(state, stage, pass);
    }
  }
}

void place_compute_order(LoweringState& state) {
  for (auto& list : state.placed) {
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  }
}

}  // namespace slipway
