// Lowers forwards, and wire collectives and transfers of both directions.
#include "schedules/lower/passes.h"
#include "schedules/lower/step_end.h"

#include <algorithm>
#include <utility>

#include "models/memory/memory_parts.h"

namespace slipway::schedules {

int ActionLowering::segment_work(int i, Pass pass) {
  const Segment& s = segment(i);
  Work work;
  work.kind = WorkKind::segment;
  work.pass = pass;
  work.stage = action_.stage;
  work.slice = action_.slice;
  work.first_op = s.first_op;
  work.last_op = s.last_op;
  work.dtype = state_.graph.step.dtype;
  work.suffix = label_tail(s.name);
  return state_.builder.work(work);
}

double ActionLowering::saved_bytes(const Segment& s) const {
  double bytes = 0;
  for (int i = s.first_op; i < s.last_op; ++i) bytes += operators_[i].saved_bytes;
  if (s.gather < 0) return bytes;
  const Operator& gather = operators_[s.gather];
  return bytes + bytes_beside_shard(gather, state_.blocks[gather.block], state_.graph.shape().sharding, s.recomputed);
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
  const double offloaded = bytes_offloaded(s);
  gather_weights(i, pass, weights_);
  const std::vector<int> gathered = gathered_buckets(i);
  std::vector<BufferId> inputs, outputs;
  for (std::size_t k = 0; k < members_; ++k) {
    const int rank = state_.groups.rank(pipeline, static_cast<int>(k));
    inputs.clear();
    outputs.clear();
    for_each_wire(s.in, [&](Wires wire) { inputs.push_back(at(wire, k)); });
    if (attends && action_.slice > 0)
      inputs.push_back(state_.passage(action_.stage, action_.micro_batch, action_.slice - 1).cache[slot(i, k)]);
    for (const int bucket : gathered) inputs.push_back(weights_[static_cast<std::size_t>(bucket)][k]);
    if (emits) {
      for_each_wire(s.out, [&](Wires wire) {
        const WireBytes bytes =
            wire_bytes(operators_, s.last_op, wire, WireValue::value, state_.graph.shape().sharding, state_.boundary);
        outputs.push_back(state_.builder.buffer(BufferKind::value, wire, rank, bytes.before));
        at(wire, k) = outputs.back();
      });
    }
    if (attends && action_.slice + 1 < state_.step.slices) {
      outputs.push_back(state_.builder.buffer(BufferKind::value, wire_kv, rank, 0));
      passage_.cache[slot(i, k)] = outputs.back();
    }
    if (saves) {
      outputs.push_back(state_.builder.buffer(BufferKind::saved, 0, rank, saved_bytes(s)));
      passage_.saved[slot(i, k)] = outputs.back();
    }
    const bool offloads = saves && offloaded > 0;
    if (offloads) {
      outputs.push_back(state_.builder.buffer(BufferKind::value, 0, rank, offloaded));
      passage_.on_host[slot(i, k)] = outputs.back();
    }
    state_.add_compute(action_, static_cast<int>(k), work, inputs, outputs);
  }
  for (std::size_t k = 0; k < members_ && saves && offloaded > 0; ++k) {
    BufferId& held = passage_.on_host[slot(i, k)];
    held = copy_to_host(s, k, held, offloaded);
  }
}

void ActionLowering::collectives(int i, Pass pass) {
  const int first = segment(i).last_op, last = first + segment(i).communicates;
  const bool is_backward = pass == Pass::backward || pass == Pass::input_grad;
  for (int op = first; op < last; ++op) collective(is_backward ? first + last - 1 - op : op, pass);
}

double ActionLowering::bytes_made_again(const Segment& s) const {
  double bytes = 0;
  for (int i = s.first_op; i < s.last_op; ++i) bytes += operators_[i].again_bytes;
  return bytes;
}

double ActionLowering::bytes_offloaded(const Segment& s) const {
  double bytes = 0;
  for (int i = s.first_op; i < s.last_op; ++i) bytes += operators_[i].offloaded_bytes;
  return bytes;
}

// One layer's inputs, with the lanes of a rank. A copy back begins when the task two before its reader ends, and a rank
// goes on two tasks before the copy is done, so that as much as two tasks keep lies in the GPU's memory:
//
//   forward   compute    │ 0F0.L0 │ 0F0.L1 │ 0F0.L2 │      backward  compute    │ 0B0.L2 │ 0B0.L1 │ 0B0.L0 │
//             to_host             │ L0 │   │ L1 │                    from_host │ L1 │   │ L0 │
//
// Guarded by tests/schedules/levered_steps_test.cpp.

Work ActionLowering::host_work(const Segment& s, Pass pass, double bytes) const {
  Work work;
  work.kind = WorkKind::host_copy;
  work.pass = pass;
  work.stage = action_.stage;
  work.dtype = state_.graph.step.dtype;
  work.bytes = bytes;
  work.suffix = label_tail(s.name) + (pass == Pass::forward ? ".offload" : ".reload");
  return work;
}

BufferId ActionLowering::copy_to_host(const Segment& s, std::size_t k, BufferId from, double bytes) {
  const int rank = state_.groups.rank(state_.pipeline_rank(action_.stage), static_cast<int>(k));
  const int work = state_.builder.work(host_work(s, Pass::forward, bytes));
  const BufferId held = state_.builder.buffer(BufferKind::value, 0, rank, 0);
  state_.add_collective(state_.groups.host_lane(rank, true), work, action_.micro_batch, action_.slice,
                        std::span(&from, 1), std::span(&held, 1));
  return held;
}

BufferId ActionLowering::copy_from_host(const Segment& s, std::size_t k, BufferId held, double bytes) {
  const int rank = state_.groups.rank(state_.pipeline_rank(action_.stage), static_cast<int>(k));
  const int work = state_.builder.work(host_work(s, Pass::backward, bytes));
  const BufferId back = state_.builder.buffer(BufferKind::value, 0, rank, bytes);
  state_.add_collective(state_.groups.host_lane(rank, false), work, action_.micro_batch, action_.slice,
                        std::span(&held, 1), std::span(&back, 1));
  return back;
}

void limit_host_copies(LoweringState& state) {
  if (!state.step.levers.offloads()) return;
  std::vector<std::vector<TaskId>> copies_of(state.graph.tasks.size());  // to the host, by the task that made them
  const auto is_copy = [&](TaskId task) { return state.graph.work(task).kind == WorkKind::host_copy; };
  for (TaskId task = 0; task < state.graph.tasks.size(); ++task) {
    if (!is_copy(task) || state.graph.work(task).pass != Pass::forward) continue;
    for (const BufferId in : state.graph.inputs[task])
      if (const auto writer = state.graph.writer(in)) copies_of[*writer].push_back(task);
  }
  for (const auto& list : state.placed) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const TaskId task = list[i].second;
      for (const TaskId copy : copies_of[task])
        if (i + 2 < list.size()) state.builder.control(copy, list[i + 2].second);
      for (const BufferId in : state.graph.inputs[task]) {
        const auto writer = state.graph.writer(in);
        if (i >= 2 && writer && is_copy(*writer)) state.builder.control(list[i - 2].second, *writer);
      }
    }
  }
}

void ActionLowering::collective(int at_op, Pass pass) {
  const Operator& op = operators_[at_op];
  const bool is_backward = pass == Pass::backward || pass == Pass::input_grad;
  // A recomputed module's message, before its dual, leaves the gradient that it passes as large as it is.
  if (is_backward && op.again) message(at_op, Pass::recompute, op.forward, BufferKind::gradient, std::nullopt);
  const WireBytes bytes = wire_bytes(operators_, at_op, op.wire, is_backward ? WireValue::gradient : WireValue::value,
                                     state_.graph.shape().sharding, state_.boundary);
  if (is_backward)
    message(at_op, pass, op.backward, BufferKind::gradient, bytes.before);
  else
    message(at_op, pass, op.forward, BufferKind::value, bytes.after);
}

void ActionLowering::message(int at_op, Pass pass, Collective kind, BufferKind result, std::optional<double> bytes) {
  const Operator& op = operators_[at_op];
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
  work.bytes =
      op.message_bytes * (pass == Pass::backward || pass == Pass::input_grad ? op.backward_sent : op.forward_sent);
  work.suffix = "." + block_name(state_.blocks, op.block) + "." + op.part;
  const int id = state_.builder.work(work), pipeline = state_.pipeline_rank(action_.stage);
  std::vector<BufferId> inputs, outputs;
  for (const auto& group : state_.groups.groups(op.axis, pipeline)) {
    inputs.clear();
    outputs.clear();
    for (const int k : group.members) {
      BufferId& held = at(op.wire, static_cast<std::size_t>(k));
      inputs.push_back(held);
      held = state_.builder.buffer(result, op.wire, state_.groups.rank(pipeline, k),
                                   bytes.value_or(state_.graph.buffers[held].bytes));
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
  work.dtype = state_.graph.step.dtype;
  work.bytes = state_.boundary;
  work.suffix = ".send";
  const int id = state_.builder.work(work);
  for (std::size_t k = 0; k < members_; ++k) {
    const int sender = state_.groups.rank(from, static_cast<int>(k)),
              receiver = state_.groups.rank(to, static_cast<int>(k));
    arrivals[k] = state_.builder.buffer(kind, wire_residual, receiver, state_.boundary);
    state_.builder.task(
        {TaskKind::transfer, none, state_.groups.pipeline_pair(sender, receiver, kind == BufferKind::value), id,
         action_.micro_batch, action_.slice},
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
      for (std::size_t k = 0; k < members_; ++k) {
        BufferId& entry = passage_.block_entry[slot(i, k)] = at(wire_residual, k);
        if (offloads_layers()) entry = copy_to_host(segment(i), k, entry, state_.boundary);
      }
    }
    forward_segment(i, pass, emits);
    if (pass == Pass::forward && i + 1 < last && comes_again(i + 1)) keep_shards(i + 1);
    if (emits) collectives(i, pass);
  }
}

void ActionLowering::forward() {
  const std::size_t slots = stage_.segments.size() * members_;
  passage_.saved.assign(slots, no_buffer);
  passage_.shard.assign(slots, no_buffer);
  passage_.block_entry.assign(slots, no_buffer);
  passage_.cache.assign(slots, no_buffer);
  passage_.on_host.assign(slots, no_buffer);
  passage_.cache_gradient.assign(slots, no_buffer);
  if (!state_.graph.placement.is_first(action_.stage)) wires_[wire_index(wire_residual)] = passage_.entry;
  forward_segments(0, segments(), Pass::forward);
  if (!state_.graph.placement.is_last(action_.stage)) {
    transfer(action_.stage + 1, state_.passage(action_.stage + 1, action_.micro_batch, action_.slice).entry,
             BufferKind::value);
  }
}

// The backward of an action, whole or split in input and weight gradients, with recomputation.

bool ActionLowering::has_weight_grad(const Segment& s) const {
  return std::any_of(operators_.begin() + s.first_op, operators_.begin() + s.last_op,
                     [](const Operator& op) { return op.weight_grad_flops > 0; });
}

double ActionLowering::bytes_of_cache(const Segment& s) const {
  const WorkShape& shape = state_.graph.shape();
  double numbers = 0;
  for (int i = s.first_op; i < s.last_op; ++i) {
    const Operator& op = operators_[i];
    if (op.kind != OpKind::attention) continue;
    const Block& block = state_.blocks[op.block];
    numbers +=
        static_cast<double>(shape.micro_batch * action_.slice * shape.sequence *
                            kv_heads_of_rank(block, shape.sharding.tensor) * (block.head_dim + value_dim(block)));
  }
  return numbers * bytes_of(shape.dtype);
}

void ActionLowering::recompute_block_ending_at(int last) {
  int first = last;
  while (!starts_block(first)) --first;
  ActionLowering again(state_, action_);
  for (std::size_t k = 0; k < members_; ++k) {
    const BufferId entry = passage_.block_entry[slot(first, k)];
    again.at(wire_residual, k) = offloads_layers() ? copy_from_host(segment(first), k, entry, state_.boundary) : entry;
  }
  again.weights_ = weights_;
  again.forward_segments(first, last + 1, Pass::recompute);
  weights_ = std::move(again.weights_);  // gathered once for both passes
  if (last + 1 == segments()) begin_when_gradient_arrives(first);
}

void ActionLowering::begin_when_gradient_arrives(int recomputed) {
  if (state_.graph.placement.is_last(action_.stage)) return;
  for (std::size_t k = 0; k < members_; ++k) {
    const auto writer_of = [&](BufferId id) { return state_.graph.writer(id).value(); };
    state_.builder.control(writer_of(passage_.exit_gradient[k]), writer_of(passage_.saved[slot(recomputed, k)]));
  }
}

double ActionLowering::bytes_left_by(int i) const {
  const Segment& s = segment(i);
  const auto operators = operators_.subspan(s.first_op, static_cast<std::size_t>(s.last_op - s.first_op));
  return bytes_for_weight_grads(operators, comes_again(i));
}

void ActionLowering::backward_segment(int i) {
  const Segment& s = segment(i);
  const int pipeline = state_.pipeline_rank(action_.stage);
  const int work = segment_work(i, action_.pass);
  const bool leaves_weights = action_.pass == Pass::input_grad && has_weight_grad(s);
  const bool attends = has_attention(s);
  const double again_bytes = bytes_made_again(s), offloaded = bytes_offloaded(s);
  gather_weights(i, action_.pass, weights_);
  const std::vector<int> gathered = gathered_buckets(i);
  if (!leaves_weights) gather_again(i);
  for (std::size_t k = 0; k < members_ && offloaded > 0; ++k) {
    BufferId& held = passage_.on_host[slot(i, k)];
    held = copy_from_host(s, k, held, offloaded);
  }
  std::vector<BufferId> inputs, outputs;
  for (std::size_t k = 0; k < members_; ++k) {
    const int rank = state_.groups.rank(pipeline, static_cast<int>(k));
    inputs.assign(1, passage_.saved[slot(i, k)]);
    if (offloaded > 0) inputs.push_back(passage_.on_host[slot(i, k)]);
    if (!again_.empty()) inputs.push_back(again_[k]);
    outputs.clear();
    for_each_wire(static_cast<Wires>(s.out & wires_with_gradient), [&](Wires wire) {
      if (at(wire, k) != no_buffer) inputs.push_back(at(wire, k));
      if (wire == wire_kv && !came_home_.empty()) inputs.push_back(came_home_[k]);
    });
    for (const int bucket : gathered) inputs.push_back(weights_[static_cast<std::size_t>(bucket)][k]);
    for_each_wire(wires_with_gradient, [&](Wires wire) {
      if ((s.out & wire) != 0) at(wire, k) = no_buffer;  // consumed
      if ((s.in & wire) == 0) return;
      const double bytes = wire_bytes(operators_, s.first_op - 1, wire, WireValue::gradient,
                                      state_.graph.shape().sharding, state_.boundary)
                               .after;
      outputs.push_back(state_.builder.buffer(BufferKind::gradient, wire, rank, bytes));
      at(wire, k) = outputs.back();
    });
    if (attends && action_.slice + 1 < state_.step.slices) inputs.push_back(passage_.cache_gradient[slot(i, k)]);
    if (attends && action_.slice > 0) {
      outputs.push_back(state_.builder.buffer(BufferKind::gradient, wire_kv, rank, bytes_of_cache(s)));
      state_.passage(action_.stage, action_.micro_batch, action_.slice - 1).cache_gradient[slot(i, k)] = outputs.back();
    }
    if (again_bytes > 0) outputs.push_back(state_.builder.buffer(BufferKind::value, 0, rank, again_bytes));
    if (leaves_weights) {
      outputs.push_back(state_.builder.buffer(BufferKind::saved, 0, rank, bytes_left_by(i)));
      passage_.saved_weight[slot(i, k)] = outputs.back();
    }
    const TaskId id = state_.add_compute(action_, static_cast<int>(k), work, inputs, outputs);
    if (k + 1 == members_) reduce_finished_buckets(i, id + 1 - static_cast<TaskId>(members_));
  }
  came_home_.clear();
  again_.clear();
}

void ActionLowering::backward() {
  passage_.saved_weight.assign(passage_.saved.size(), no_buffer);
  if (!state_.graph.placement.is_last(action_.stage)) wires_[wire_index(wire_residual)] = passage_.exit_gradient;
  for (int i = segments() - 1; i >= 0; --i) {
    const bool ends_block = i + 1 == segments() || starts_block(i + 1);
    collectives(i, action_.pass);
    if (segment(i).recomputed && ends_block) recompute_block_ending_at(i);
    if (in_ring(i)) {
      i -= rounds() - 1;
      ring_backward(i);
      continue;
    }
    backward_segment(i);
  }
  if (!state_.graph.placement.is_first(action_.stage)) {
    transfer(action_.stage - 1, state_.passage(action_.stage - 1, action_.micro_batch, action_.slice).exit_gradient,
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
      if (k + 1 == members_) reduce_finished_buckets(i, id + 1 - static_cast<TaskId>(members_));
    }
    again_.clear();
  }
}

// Sequence parallelism: the input of a column-parallel projection is kept as this rank's shard and gathered once more
// for the weight gradient (Korthikanti 2022). One layer, with the lanes of one rank:
//
//   forward    compute   norm1 │   │qkv attn out│   │add norm2│   │up act down│
//              tp              │ag1│            │rs1│         │ag2│           │rs2│
//   backward   compute   │     up act down      │   │add norm2│   │    qkv attn out    │   │norm1│
//              tp     rs2│ag1_again│            │ag2│         │rs1│ag2_again│          │ag1│
//
// In the backward, rs is an all-gather of the gradient and ag a reduce-scatter. A gather may begin when the compute
// task before the previous projection ends. So it is hidden behind that projection, and at most two gathered inputs
// exist. Where the backward pass is split, the input gradient needs no gather and the weight gradient waits for it. A
// recomputed block gathers its inputs itself and keeps them until its backward pass, which follows at once.
// Guarded by tests/schedules/lowering_test.cpp and tests/exec/execute_variants_test.cpp (results).

void ActionLowering::keep_shards(int i) {
  const Wires wire = operators_[segment(i).gather].wire;
  for (std::size_t k = 0; k < members_; ++k) passage_.shard[slot(i, k)] = at(wire, k);
}

void ActionLowering::gather_again(int i) {
  again_.clear();
  if (!comes_again(i)) return;
  const Operator& op = operators_[segment(i).gather];
  Work work;
  work.kind = WorkKind::wire_collective;
  work.pass = action_.pass;
  work.stage = action_.stage;
  work.first_op = segment(i).gather;
  work.last_op = work.first_op + 1;
  work.collective = op.forward;
  work.wire = op.wire;
  work.dtype = op.dtype;
  work.bytes = op.message_bytes * op.forward_sent;
  work.suffix = "." + block_name(state_.blocks, op.block) + "." + op.part + "_again";
  const int id = state_.builder.work(work), pipeline = state_.pipeline_rank(action_.stage);
  again_.assign(members_, no_buffer);
  std::vector<BufferId> inputs, outputs;
  for (const auto& group : state_.groups.groups(op.axis, pipeline)) {
    inputs.clear();
    outputs.clear();
    for (const int k : group.members) {
      const auto member = static_cast<std::size_t>(k);
      inputs.push_back(passage_.shard[slot(i, member)]);
      again_[member] = state_.builder.buffer(BufferKind::value, op.wire, state_.groups.rank(pipeline, k), work.bytes);
      outputs.push_back(again_[member]);
    }
    state_.add_collective(group.communicator, id, action_.micro_batch, action_.slice, inputs, outputs);
  }
}

namespace {

constexpr auto no_task = std::numeric_limits<TaskId>::max();

// The gather that a compute task waits for.
TaskId gather_for(const TaskGraph& graph, TaskId task) {
  for (const BufferId in : graph.inputs[task]) {
    const auto writer = graph.writer(in);
    if (writer && gathers_again(graph, graph.work(*writer))) return *writer;
  }
  return no_task;
}

}  // namespace

// Shards exist since the forward pass, so without this limit all gathers could start at once. The first projection of
// an action begins behind another action. Its gather need not be hidden that far ahead, so it waits for the task two
// before.
void limit_gather_prefetch(LoweringState& state) {
  if (!state.graph.shape().sharding.sequence_parallel) return;
  for (const auto& list : state.placed) {
    std::size_t projection = 0;
    bool any = false;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const TaskId gather = gather_for(state.graph, list[i].second);
      if (gather == no_task) continue;
      const bool same_action = any && list[projection].first == list[i].first;
      const std::size_t ahead_of = same_action ? projection : i == 0 ? 0 : i - 1;
      if (ahead_of > 0) state.builder.control(list[ahead_of - 1].second, gather);
      projection = i;
      any = true;
    }
  }
}

// ZeRO 2 and 3: gradients stay sharded, and weights are gathered before each use.

bool ActionLowering::runs_experts_apart(int i) const {
  const Segment& s = segment(i);
  return state_.experts_apart && std::any_of(operators_.begin() + s.first_op, operators_.begin() + s.last_op,
                                             [](const Operator& op) { return runs_experts(op); });
}

std::vector<int> ActionLowering::buckets_of(int i) const {
  std::vector<int> list;
  for (int block = segment(i).first_block; block < segment(i).last_block; ++block) {
    list.push_back(block);
    if (state_.blocks[static_cast<std::size_t>(block)].experts > 0 && runs_experts_apart(i))
      list.push_back(state_.experts_of(block));
  }
  return list;
}

std::vector<int> ActionLowering::gathered_buckets(int i) const {
  if (state_.step.layout.zero < 3) return {};
  std::vector<int> list = buckets_of(i);
  std::erase_if(list, [&](int bucket) { return state_.data_degree(bucket) <= 1; });
  return list;
}

void ActionLowering::gather_weights(int i, Pass pass, std::vector<std::vector<BufferId>>& gathered) {
  if (state_.step.layout.zero < 3) return;
  const int pipeline = state_.pipeline_rank(action_.stage);
  gathered.resize(state_.bucket_count());
  for (const int bucket : gathered_buckets(i)) {
    auto& buffers = gathered[static_cast<std::size_t>(bucket)];
    if (!buffers.empty()) continue;
    buffers.resize(members_);
    Work work = bucket_work(state_, WorkKind::parameter_gather, action_.stage, bucket);
    work.pass = pass;
    const int id = state_.builder.work(work);
    for (const auto& group : state_.groups.data_groups(action_.stage, work.experts)) {
      std::vector<BufferId> out;
      for (const int k : group.members) {
        out.push_back(state_.builder.buffer(BufferKind::parameter, 0, state_.groups.rank(pipeline, k), work.bytes));
        buffers[k] = out.back();
      }
      const TaskId task = state_.add_collective(group.communicator, id, action_.micro_batch, action_.slice, {}, out);
      for (const int k : group.members) {
        state_.weight_gathers[state_.groups.rank(pipeline, k)].push_back(task);
      }
    }
  }
}

void ActionLowering::reduce_finished_buckets(int i, TaskId first_writer) {
  reduce_if_finished(segment(i).first_block, i, first_writer);
  if (runs_experts_apart(i)) reduce_if_finished(state_.experts_of(segment(i).first_block), i, first_writer);
}

// ZeRO 2 and 3 keep gradients sharded. Each micro-batch's gradient of a block takes its memory with the first segment
// that adds to it (the block's last). It is reduce-scattered when the last such segment (the block's first with work in
// this pass) is done. If these are two tasks, the reduction reads two buffers of a rank: first that of the finishing
// segment, which has no bytes of its own, then that of the segment that takes the memory. To the gradient of experts
// that are apart only the segments add that run them.
void ActionLowering::reduce_if_finished(int bucket, int i, TaskId first_writer) {
  if (!state_.shards_gradients_per_micro_batch(bucket)) return;
  const int block = state_.block_of(bucket), pipeline = state_.pipeline_rank(action_.stage);
  bool has_weight_pass = false, has_earlier = false;
  for (int j = 0; j < segments(); ++j) {
    if (segment(j).first_block != block || (state_.is_experts(bucket) && !runs_experts_apart(j))) continue;
    has_weight_pass |= action_.pass != Pass::backward && has_weight_grad(segment(j));
    has_earlier |= j < i && (action_.pass != Pass::weight_grad || has_weight_grad(segment(j)));
  }
  if (has_weight_pass && action_.pass == Pass::input_grad) return;
  Begun& begun = begun_[state_.is_experts(bucket) ? 1 : 0];
  if (begun.bucket != bucket) begun = {bucket, first_writer};
  if (has_earlier) return;
  Work work = bucket_work(state_, WorkKind::grad_reduce, action_.stage, bucket);
  work.pass = action_.pass;
  const int id = state_.builder.work(work);
  std::vector<BufferId> finished, inputs, outputs;
  for (const auto& group : state_.groups.data_groups(action_.stage, work.experts)) {
    finished.clear();
    inputs.clear();
    outputs.clear();
    for (const int k : group.members) {
      const TaskId begins = begun.task + static_cast<TaskId>(k), ends = first_writer + static_cast<TaskId>(k);
      const int rank = state_.groups.rank(pipeline, k);
      const BufferId whole = state_.builder.buffer(BufferKind::bucket, 0, rank, work.bytes);
      finished.push_back(begins == ends ? whole : state_.builder.buffer(BufferKind::bucket, 0, rank, 0));
      state_.builder.late_output(begins, whole);
      inputs.push_back(finished.back());
      if (begins != ends) {
        state_.builder.late_output(ends, finished.back());
        inputs.push_back(whole);
      }
      outputs.push_back(state_.builder.buffer(BufferKind::bucket, 0, rank, 0));
      state_.bucket(rank, bucket).push_back(outputs.back());
    }
    const TaskId reduction =
        state_.add_collective(group.communicator, id, action_.micro_batch, action_.slice, inputs, outputs);
    if (state_.graph.step.worker_norms) measure_workers(block, group.members, finished);
    for (const int k : group.members)
      state_.reductions[state_.groups.rank(pipeline, k)].emplace_back(begun.task + static_cast<TaskId>(k), reduction);
  }
  if (!state_.is_experts(bucket)) sum_over_copies(bucket, work);
}

void ActionLowering::sum_over_copies(int block, const Work& reduction) {
  const int pipeline = state_.pipeline_rank(action_.stage);
  const Work sum = work_of_copies(reduction, state_.shard_degree());
  const auto& copies = state_.groups.copies_of_shards(action_.stage);
  const int sum_id = copies.empty() ? none : state_.builder.work(sum);
  std::vector<BufferId> inputs, outputs;
  for (const auto& group : copies) {
    inputs.clear();
    outputs.clear();
    for (const int k : group.members) {
      BufferId& reduced = state_.bucket(state_.groups.rank(pipeline, k), block).back();
      inputs.push_back(reduced);
      reduced = state_.builder.buffer(BufferKind::bucket, 0, state_.groups.rank(pipeline, k), 0);
      outputs.push_back(reduced);
    }
    state_.add_collective(group.communicator, sum_id, action_.micro_batch, action_.slice, inputs, outputs);
  }
}

// `unreduced`: the gradients of `members`, which the reduction reads too.
void ActionLowering::measure_workers(int block, const std::vector<int>& members,
                                     const std::vector<BufferId>& unreduced) {
  Work work = worker_norm_work(state_, action_.stage, block);
  work.pass = action_.pass;  // once per micro-batch
  const int id = state_.builder.work(work);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int rank = state_.groups.rank(state_.pipeline_rank(action_.stage), members[i]);
    const BufferId square = state_.builder.buffer(BufferKind::scalar, 0, rank, 8);
    state_.add_compute(action_, members[i], id, std::span(&unreduced[i], 1), std::span(&square, 1));
    state_.worker_squares[rank].push_back(square);
  }
}

// ZeRO 3: without this limit every gather could start at once and all weights would be held. A gather may start when
// the compute task two before its first reader ends: one segment computes while the next is fetched.
void limit_weight_prefetch(LoweringState& state) {
  if (state.step.layout.zero < 3) return;
  std::vector<bool> seen(state.graph.buffers.size());
  for (const auto& list : state.placed) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (const BufferId in : state.graph.inputs[list[i].second]) {
        const Buffer& buffer = state.graph.buffers[in];
        const auto writer = state.graph.writer(buffer);
        if (buffer.kind != BufferKind::parameter || !writer || seen[in]) continue;
        seen[in] = true;
        if (i >= 2) state.builder.control(list[i - 2].second, *writer);
      }
    }
  }
}

// ZeRO 2 and 3: without this limit, gradients would pile up over a whole step where the network is slower than the
// backward. Trainers have room for two: one block's gradient is made while the one before is reduced. (PyTorch's FSDP2
// waits for the last reduce-scatter before the next; DeepSpeed's overlap_comm has two buckets.)
void limit_unreduced_gradients(LoweringState& state) {
  constexpr auto no_task = std::numeric_limits<TaskId>::max();
  std::vector<TaskId> reduction_of;
  for (std::size_t rank = 0; rank < state.placed.size(); ++rank) {
    if (state.reductions[rank].empty()) continue;
    reduction_of.resize(state.graph.tasks.size(), no_task);
    for (const auto& [writer, reduction] : state.reductions[rank]) reduction_of[writer] = reduction;
    TaskId last = no_task, one_before = no_task;
    for (const auto& [action, task] : state.placed[rank]) {
      if (reduction_of[task] == no_task) continue;
      if (one_before != no_task) state.builder.control(one_before, task);
      one_before = std::exchange(last, reduction_of[task]);
    }
  }
}

}  // namespace slipway::schedules
