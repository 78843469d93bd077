#include <algorithm>
#include <map>

#include "models/parameters.h"
#include "schedules/graph/parallel.h"
#include "schedules/graph/step_end.h"

namespace slipway {

void StepEnd::find_first_and_last_uses() {
  constexpr TaskId unused = std::numeric_limits<TaskId>::max();
  const std::size_t head = state_.blocks.size() - 1;
  first_use_.assign(state_.buckets.size(), unused);
  last_use_ = first_use_;
  each_in_parallel(state_.placed.size(), state_.graph.tasks.size(), [&](std::size_t r) {
    if (state_.placed[r].empty()) return;
    const std::size_t row = key(static_cast<int>(r), 0);
    for (const auto& [action, task] : state_.placed[r]) {
      const Work& work = state_.graph.works[static_cast<std::size_t>(state_.graph.tasks[task].work)];
      if (work.kind != WorkKind::segment) continue;
      const auto operators = operators_of(state_.graph, work);
      const auto block_of = [&](int op) { return static_cast<std::size_t>(operators[static_cast<std::size_t>(op)].block); };
      const auto note = [&](std::size_t at) {
        if (first_use_[at] == unused) first_use_[at] = task;
        if (work.pass != Pass::forward && work.pass != Pass::recompute) last_use_[at] = task;
      };
      for (std::size_t block = block_of(work.first_op); block <= block_of(work.last_op - 1); ++block) note(row + block);
      if (state_.shares_table && block_of(work.last_op - 1) == head) note(row);
    }
  });
}

void StepEnd::open_buckets() {
  if (!reduces_later()) return;
  for (std::size_t at = 0; at < last_use_.size(); ++at) {
    if (last_use_[at] == std::numeric_limits<TaskId>::max()) continue;
    state_.buckets[at] = {state_.builder.buffer(BufferKind::bucket, 0, state_.rank_at(at), 0)};
    state_.builder.late_output(last_use_[at], state_.buckets[at].front());
  }
}

TaskId StepEnd::on_buckets(int communicator, const Work& work, const std::vector<std::pair<int, int>>& at) {
  std::vector<BufferId> inputs, outputs;
  for (const auto& [rank, block] : at) {
    auto& held = state_.bucket(rank, block);
    inputs.insert(inputs.end(), held.begin(), held.end());
    held = {state_.builder.buffer(BufferKind::bucket, 0, rank, 0)};
    outputs.push_back(held.front());
  }
  const int id = state_.builder.work(work);
  if (communicator != none) return state_.add_collective(communicator, id, none, 0, inputs, outputs);
  const int rank = at.front().first;
  const TaskId task = state_.builder.task({TaskKind::compute, rank, none, id, none, 0}, inputs, outputs);
  place(rank, task);
  return task;
}

void StepEnd::reduce_norms(int stage) {
  const Layout& layout = state_.input.layout;
  if (layout.tensor == 1) return;
  for (int block = range(stage).first; block < range(stage).last; ++block) {
    if (block_tensor_sum_elements(state_.input.model, block, layout.tensor, layout.sequence_parallel) == 0) continue;
    const Work work = bucket_work(state_, WorkKind::norm_grad_reduce, stage, block);
    for (const auto& group : state_.groups.groups(Axis::tensor, state_.pipeline_rank(stage))) {
      std::vector<std::pair<int, int>> at;
      for (const int k : group.members) at.emplace_back(rank(stage, k), block);
      on_buckets(group.communicator, work, at);
    }
  }
}

void StepEnd::reduce_tied_embedding(int copy) {
  if (!state_.blocks.back().tied || state_.shares_table) return;
  const int parts = state_.graph.placement.parts(), head = static_cast<int>(state_.blocks.size()) - 1;
  const int first = copy * parts, last = first + parts - 1;
  const Work work = bucket_work(state_, WorkKind::tied_grad_reduce, copy == 0 ? none : first, 0);
  std::map<int, std::vector<std::pair<int, int>>> groups;  // by communicator
  for (int k = 0; k < members(); ++k) {
    const int communicator = state_.groups.embedding_pair(copy, k);
    const std::vector<std::pair<int, int>> pair{{rank(first, k), 0}, {rank(last, k), head}};
    auto& at = groups[communicator];
    at.insert(at.end(), pair.begin(), pair.end());
  }
  for (const auto& [communicator, at] : groups) on_buckets(communicator, work, at);
}

void StepEnd::reduce_over_data(int part) {
  if (!reduces_later()) return;
  for (int block = range(part).first; block < range(part).last; ++block) {
    const Work work = bucket_work(state_, WorkKind::grad_reduce, part, block);
    for (const auto& group : state_.groups.data_groups(part)) {
      std::vector<std::pair<int, int>> at;
      for (const int r : group.ranks) at.emplace_back(r, block);
      on_buckets(group.communicator, work, at);
    }
  }
}

void StepEnd::step(int stage) {
  Work work;
  work.kind = WorkKind::optimizer_step;
  work.stage = stage;
  work.dtype = state_.graph.shape.dtype;
  work.elements = shard_elements(range(stage));
  work.suffix = ".opt";
  const int id = state_.builder.work(work);
  for (int k = 0; k < members(); ++k) {
    const int r = rank(stage, k);
    std::vector<BufferId> inputs, outputs;
    for (int block = range(stage).first; block < range(stage).last; ++block) {
      const auto& held = state_.bucket(r, block);
      inputs.insert(inputs.end(), held.begin(), held.end());
      updated_[key(r, block)] = state_.builder.buffer(BufferKind::parameter, 0, r, 0);
      outputs.push_back(updated_[key(r, block)]);
    }
    if (joins_all_ranks(state_.graph)) inputs.push_back(scalars_[static_cast<std::size_t>(r)]);
    const TaskId task = state_.builder.task({TaskKind::optimizer, r, none, id, none, 0}, inputs, outputs);
    place(r, task);
    for (const TaskId gather : state_.weight_gathers[static_cast<std::size_t>(r)]) {
      if (state_.graph.works[static_cast<std::size_t>(state_.graph.tasks[gather].work)].stage == stage) {
        state_.graph.carried.emplace_back(task, gather);
      }
    }
  }
}

void StepEnd::gather_parameters(int part) {
  if (state_.input.layout.zero < 1 || state_.input.layout.zero > 2) return;
  for (int block = range(part).first; block < range(part).last; ++block) {
    const int id = state_.builder.work(bucket_work(state_, WorkKind::parameter_gather, part, block));
    for (const auto& group : state_.groups.data_groups(part)) {
      std::vector<BufferId> inputs, outputs;
      for (const int r : group.ranks) {
        inputs.push_back(updated_[key(r, block)]);
        outputs.push_back(state_.builder.buffer(BufferKind::parameter, 0, r, 0));
      }
      const TaskId task = state_.add_collective(group.communicator, id, none, 0, inputs, outputs);
      for (const int r : group.ranks) state_.graph.carried.emplace_back(task, first_use_[key(r, block)]);
    }
  }
}

void lower_step_end(LoweringState& state) { StepEnd(state).run(); }

}  // namespace slipway
