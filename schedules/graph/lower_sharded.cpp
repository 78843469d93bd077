// ZeRO 2 and 3: gradients that stay sharded, and weights that are gathered before each use.
#include <utility>

#include "schedules/graph/action_lowering.h"

namespace slipway {

void ActionLowering::gather_weights(int i, Pass pass, std::vector<std::vector<BufferId>>& gathered) {
  if (state_.input.layout.zero < 3 || state_.data_degree() <= 1) return;
  gathered.resize(state_.blocks.size());
  const int pipeline = state_.pipeline_rank(action_.stage);
  for (int block = segment(i).first_block; block < segment(i).last_block; ++block) {
    auto& buffers = gathered[static_cast<std::size_t>(block)];
    if (!buffers.empty()) continue;
    buffers.resize(members_);
    Work work = bucket_work(state_, WorkKind::parameter_gather, action_.stage, block);
    work.pass = pass;
    const int id = state_.builder.work(work);
    for (const auto& group : state_.groups.data_groups(action_.stage)) {
      std::vector<BufferId> out;
      for (const int k : group.members) {
        out.push_back(
            state_.builder.buffer(BufferKind::parameter, 0, state_.groups.rank(pipeline, k), work.bytes));
        buffers[static_cast<std::size_t>(k)] = out.back();
      }
      const TaskId task =
          state_.add_collective(group.communicator, id, action_.micro_batch, action_.slice, {}, out);
      for (const int k : group.members) {
        state_.weight_gathers[static_cast<std::size_t>(state_.groups.rank(pipeline, k))].push_back(task);
      }
    }
  }
}

// ZeRO 2 and 3 keep gradients sharded: each micro-batch's gradient of a block takes its memory with the first segment
// that adds to it (the block's last) and is reduce-scattered as soon as the last of them (the block's first, of those
// with work in this pass) is done. Where those are two tasks, the reduction reads two buffers of a rank: first that of the
// segment that finishes the gradient, which has no bytes of its own, then that of the one that takes the memory.
void ActionLowering::reduce_finished_blocks(int i, TaskId first_writer) {
  if (!state_.shards_gradients_per_micro_batch()) return;
  const int block = segment(i).first_block, pipeline = state_.pipeline_rank(action_.stage);
  bool has_weight_pass = false, has_earlier = false;
  for (int j = 0; j < segments(); ++j) {
    if (segment(j).first_block != block) continue;
    has_weight_pass |= action_.pass != Pass::backward && has_weight_grad(segment(j));
    has_earlier |= j < i && (action_.pass != Pass::weight_grad || has_weight_grad(segment(j)));
  }
  if (has_weight_pass && action_.pass == Pass::input_grad) return;
  if (std::exchange(gradient_of_, block) != block) gradient_begins_ = first_writer;
  if (has_earlier) return;
  Work work = bucket_work(state_, WorkKind::grad_reduce, action_.stage, block);
  work.pass = action_.pass;
  const int id = state_.builder.work(work);
  std::vector<BufferId> finished, inputs, outputs;
  for (const auto& group : state_.groups.data_groups(action_.stage)) {
    finished.clear();
    inputs.clear();
    outputs.clear();
    for (const int k : group.members) {
      const TaskId begins = gradient_begins_ + static_cast<TaskId>(k), ends = first_writer + static_cast<TaskId>(k);
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
      state_.bucket(rank, block).push_back(outputs.back());
    }
    const TaskId reduction =
        state_.add_collective(group.communicator, id, action_.micro_batch, action_.slice, inputs, outputs);
    if (state_.graph.worker_norms) measure_workers(block, group.members, finished);
    for (const int k : group.members)
      state_.reductions[static_cast<std::size_t>(state_.groups.rank(pipeline, k))].emplace_back(
          gradient_begins_ + static_cast<TaskId>(k), reduction);
  }
}

// `unreduced`: the gradients of `members`, which the reduction reads as well.
void ActionLowering::measure_workers(int block, const std::vector<int>& members, const std::vector<BufferId>& unreduced) {
  Work work = worker_norm_work(state_, action_.stage, block);
  work.pass = action_.pass;  // of a micro-batch
  const int id = state_.builder.work(work);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int rank = state_.groups.rank(state_.pipeline_rank(action_.stage), members[i]);
    const BufferId square = state_.builder.buffer(BufferKind::scalar, 0, rank, 8);
    state_.add_compute(action_, members[i], id, std::span(&unreduced[i], 1), std::span(&square, 1));
    state_.worker_squares[static_cast<std::size_t>(rank)].push_back(square);
  }
}

// ZeRO 3: without this every gather could start at once and all weights would be held. A gather may start
// when the compute task two before its first reader ends: one segment computes while the next is fetched.
void limit_weight_prefetch(LoweringState& state) {
  if (state.input.layout.zero < 3) return;
  std::vector<bool> seen(state.graph.buffers.size());
  for (const auto& list : state.placed) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (const BufferId in : state.graph.inputs[list[i].second]) {
        const Buffer& buffer = state.graph.buffers[in];
        if (buffer.kind != BufferKind::parameter || buffer.writer == none || seen[in]) continue;
        seen[in] = true;
        if (i >= 2) state.builder.control(list[i - 2].second, static_cast<TaskId>(buffer.writer));
      }
    }
  }
}

// ZeRO 2 and 3: without this, gradients would pile up over a whole step where the network is slower than the
// backward. Trainers have room for two: one block's gradient is made while the one before is reduced (PyTorch's
// FSDP2 waits for the last reduce-scatter before the next; DeepSpeed's overlap_comm has two buckets).
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

}  // namespace slipway
