// What a step's end does with whole gradients: norms of the workers', K-FAC's preconditioning, the global norm.
#include <algorithm>

#include "models/parameters.h"
#include "schedules/graph/kfac_shares.h"
#include "schedules/graph/step_end.h"

namespace slipway {

// As soon as a block's last gradient is there, so that its reduction still overlaps the blocks that follow.
void StepEnd::measure_workers(int stage) {
  if (!reduces_later()) return;
  for (int block = range(stage).first; block < range(stage).last; ++block) {
    const int id = state_.builder.work(worker_norm_work(state_, stage, block));
    for (int k = 0; k < members(); ++k) {
      const int r = rank(stage, k);
      auto& held = state_.bucket(r, block);
      const BufferId square = state_.builder.buffer(BufferKind::scalar, 0, r, 8);
      const std::vector<BufferId> outputs{state_.builder.buffer(BufferKind::bucket, 0, r, 0), square};
      const TaskId task = state_.builder.task({TaskKind::compute, r, none, id, none, 0}, held, outputs);
      const WorkKind made_by = maker_of(held.front());
      held = {outputs.front()};
      state_.worker_squares[static_cast<std::size_t>(r)].push_back(square);
      if (made_by == WorkKind::tied_grad_reduce)
        place(r, task);  // the other end of the pipeline is not done before
      else
        places_.behind(r, last_use_[key(r, block)], task, made_by == WorkKind::norm_grad_reduce);
    }
  }
}

// Replicas share a stage's Linears among them and then gather what the others have preconditioned.
void StepEnd::precondition(int stage) {
  if (!state_.input.kfac) return;
  Work work;
  work.kind = WorkKind::precondition;
  work.stage = stage;
  work.dtype = state_.graph.gradient_dtype;
  work.suffix = ".precondition";
  std::vector<int> blocks;
  for (int block = range(stage).first; block < range(stage).last; ++block)
    for (const KfacLinear& linear : kfac_linears(state_.blocks[static_cast<std::size_t>(block)])) {
      work.elements += static_cast<double>(linear.in) * static_cast<double>(linear.out);
      if (blocks.empty() || blocks.back() != block) blocks.push_back(block);
    }
  if (blocks.empty()) return;
  for (int k = 0; k < members(); ++k) {
    const int r = rank(stage, k);
    std::vector<std::pair<int, int>> at;
    for (const int block : blocks) at.emplace_back(r, block);
    while_it_runs(on_buckets(none, work, at), r, kfac_precondition_bytes(state_.graph, r, stage));
  }
  const Placement& placement = state_.graph.placement;
  if (placement.copy_of(stage) + 1 < placement.copies) return;  // gathered when the last copy is done
  gather_preconditioned(work, blocks);
}

void StepEnd::while_it_runs(TaskId task, int rank, double bytes) {
  if (bytes > 0) state_.builder.late_output(task, state_.builder.buffer(BufferKind::kept, 0, rank, bytes));
}

void StepEnd::gather_preconditioned(Work work, const std::vector<int>& blocks) {
  work.stage = state_.graph.placement.part_of(work.stage);
  work.suffix = ".ag_precondition";
  work.collective = Collective::all_gather;
  work.bytes = work.elements * bytes_of(work.dtype);
  work.elements = 0;
  for (const auto& group : state_.groups.data_groups(work.stage)) {
    std::vector<std::pair<int, int>> at;
    for (const int r : group.ranks)
      for (const int block : blocks) at.emplace_back(r, block);
    const TaskId task = on_buckets(group.communicator, work, at);
    for (const int r : group.ranks) while_it_runs(task, r, kfac_gather_bytes(state_.graph, r, work.stage));
  }
}

double StepEnd::shard_elements(const BlockRange& blocks) const {
  double elements = 0;
  for (int block = blocks.first; block < blocks.last; ++block) elements += state_.elements_of_block(block);
  return elements / (state_.input.layout.zero >= 1 ? state_.data_degree() : 1);
}

void StepEnd::reduce_global_norm() {
  const int ranks = static_cast<int>(state_.placed.size());
  Work local;
  local.kind = WorkKind::grad_norm;
  local.dtype = state_.graph.gradient_dtype;
  local.suffix = ".grad_norm";
  std::vector<std::size_t> lowered;
  for (int i = 0; i < state_.input.layout.pipeline * members(); ++i) {
    const int pipeline = i / members(), r = state_.groups.rank(pipeline, i % members());
    lowered.push_back(static_cast<std::size_t>(r));
    std::vector<BufferId> inputs;
    local.elements = 0;
    for (int stage = 0; stage < state_.stages(); ++stage) {
      if (state_.pipeline_rank(stage) != pipeline) continue;
      local.elements += shard_elements(range(stage));
      for (int block = range(stage).first; block < range(stage).last; ++block) {
        const auto& held = state_.bucket(r, block);
        inputs.insert(inputs.end(), held.begin(), held.end());
      }
    }
    const std::vector<BufferId>& squares = state_.worker_squares[static_cast<std::size_t>(r)];
    inputs.insert(inputs.end(), squares.begin(), squares.end());
    scalars_[static_cast<std::size_t>(r)] = state_.builder.buffer(BufferKind::scalar, 0, r, scalar_bytes());
    place(r, state_.builder.task({TaskKind::compute, r, none, state_.builder.work(local), none, 0}, inputs,
                                 std::span(&scalars_[static_cast<std::size_t>(r)], 1)));
  }
  if (ranks == 1) return;
  Work reduce;
  reduce.kind = WorkKind::norm_reduce;
  reduce.collective = Collective::all_reduce;
  reduce.dtype = Dtype::float64;
  reduce.bytes = scalar_bytes();
  reduce.suffix = ".norm_reduce";
  std::vector<BufferId> parts, sums;
  for (const std::size_t r : lowered) {
    parts.push_back(scalars_[r]);
    sums.push_back(scalars_[r] = state_.builder.buffer(BufferKind::scalar, 0, static_cast<int>(r), scalar_bytes()));
  }
  state_.add_collective(state_.groups.world(), state_.builder.work(reduce), none, 0, parts, sums);
}

// Under ZeRO 2 and 3 what is summed after the reduction over the workers is of no worker.
std::string why_no_worker_norms(const Model& model, const Layout& layout, int copies, int slices, bool splits_backward) {
  if (layout.data * copies < 2) return "there is one data parallel worker; set layout.data to 2 or more";
  if (layout.context > 1)
    return "gradients are reduced over data and context ranks at once, so no worker ever has its own; set layout.context to 1";
  if (layout.zero < 2) return "";
  const auto at_zero = [&](const char* what) {
    return std::string("with layout.zero ") + std::to_string(layout.zero) + " " + what + "; set layout.zero to 1";
  };
  const std::vector<Block> blocks = blocks_of(model);
  const bool partial = std::any_of(blocks.begin(), blocks.end(), [](const Block& block) { return block.qk_norm || block.experts > 0; });
  if (layout.tensor > 1 && (layout.sequence_parallel || partial))
    return at_zero("gradients of norms and routers are summed over the tensor group after the reduction over the workers");
  if (blocks.back().tied)
    return at_zero("the tied embedding's two gradients are added after the reduction over the workers");
  if (slices > 1) return at_zero("each slice of a sequence is reduced by itself");
  if (splits_backward)  // what is small is added up in the input gradient's pass, that of a later micro-batch too
    return at_zero("gradients of norms and biases go with those of other micro-batches where the schedule splits the backward");
  return "";
}

}  // namespace slipway
