// Sequence parallelism: the input of a column-parallel projection is kept as this rank's shard and gathered
// once more for the weight gradient (Korthikanti 2022). Of a layer, with the lanes of one rank:
//
//   forward    compute   norm1 │   │qkv attn out│   │add norm2│   │up act down│
//              tp              │ag1│            │rs1│         │ag2│           │rs2│
//   backward   compute   │     up act down      │   │add norm2│   │    qkv attn out    │   │norm1│
//              tp     rs2│ag1_again│            │ag2│         │rs1│ag2_again│          │ag1│
//
// (backward, rs is an all-gather of the gradient and ag a reduce-scatter). A gather may begin when the
// compute task ends that comes before the projection before: it is hidden behind that projection and at
// most two gathered inputs are there. Where the backward pass is split, the input gradient needs none and
// the weight gradient waits for it. A recomputed block gathers its inputs itself and keeps them until its
// backward pass, which follows at once. Guarded by tests/gathered_inputs_test.cpp, and
// tests/execute_variants_test.cpp (results).
#include "schedules/graph/action_lowering.h"

namespace slipway {

void ActionLowering::keep_shards(int i) {
  for (std::size_t k = 0; k < members_; ++k) passage_.shard[slot(i, k)] = at(wire_branch, k);
}

void ActionLowering::gather_again(int i) {
  again_.clear();
  if (!comes_again(i)) return;
  const Operator& op = operators_[static_cast<std::size_t>(segment(i).gather)];
  Work work;
  work.kind = WorkKind::wire_collective;
  work.pass = action_.pass;
  work.stage = action_.stage;
  work.first_op = segment(i).gather;
  work.last_op = work.first_op + 1;
  work.collective = op.forward;
  work.wire = op.wire;
  work.dtype = op.dtype;
  work.bytes = op.message_bytes;
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
      again_[member] =
          state_.builder.buffer(BufferKind::value, op.wire, state_.groups.rank(pipeline, k), work.bytes);
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
    const std::int32_t writer = graph.buffers[in].writer;
    if (writer != none &&
        gathers_again(graph,
                      graph.works[static_cast<std::size_t>(graph.tasks[static_cast<TaskId>(writer)].work)]))
      return static_cast<TaskId>(writer);
  }
  return no_task;
}

}  // namespace

// Shards are there since the forward pass: without this all gathers could start at once. The first
// projection of an action begins behind another action: nothing is to be hidden there that far ahead, and
// its gather waits for the task two before.
void limit_gather_prefetch(LoweringState& state) {
  if (!state.graph.shape.sharding.sequence_parallel) return;
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

}  // namespace slipway
