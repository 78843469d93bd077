// What follows the last backward of a step, per block and per rank:
//
//   bucket ─ norm_grad (sequence parallel) ─ tied_grad ─ ar_grad | rs_grad ─┬─ grad_norm ─ norm_reduce ─┐
//                                                     └─ worker_norm           └──────── opt ◄─────────────┘
//   opt ─ ag_param (ZeRO 1, 2) ─► first use in the next step
//
// Each arrow is a buffer, so the order of a parameter's reductions and its update is a data dependency.
// worker_norm, where the norm test asks for it, reads what the reduction is about to overwrite: the reduction waits for it.
// ZeRO 2 and 3 have reduced each micro-batch already (lower_passes.cpp): their buckets arrive here done,
// and a sequence-parallel norm's shard is summed over the tensor group afterwards.
#include <algorithm>
#include <map>

#include "models/kfac.h"
#include "models/parameters.h"
#include "schedules/graph/lowering_state.h"
#include "schedules/graph/parallel.h"

namespace slipway {
namespace {

constexpr auto at_end = std::numeric_limits<std::uint32_t>::max();  // index of no action

class StepEnd {
 public:
  explicit StepEnd(LoweringState& state)
      : state_(state), behind_(state.placed.size()), scalars_(state.placed.size()), updated_(state.buckets.size()) {}

  void run() {
    find_first_and_last_uses();
    open_buckets();
    for (int stage = 0; stage < state_.stages(); ++stage) reduce_norms(stage);
    for (int copy = 0; copy < state_.graph.placement.copies; ++copy) reduce_tied_embedding(copy);
    if (state_.graph.worker_norms)
      for (int stage = 0; stage < state_.stages(); ++stage) measure_workers(stage);
    for (int part = 0; part < state_.graph.placement.parts(); ++part) reduce_over_data(part);
    for (int stage = 0; stage < state_.stages(); ++stage) precondition(stage);
    if (joins_all_ranks(state_.graph)) reduce_global_norm();
    for (int stage = 0; stage < state_.stages(); ++stage) step(stage);
    for (int part = 0; part < state_.graph.placement.parts(); ++part) gather_parameters(part);
    limit_weight_prefetch(state_);
    limit_unreduced_gradients(state_);
    write_compute_order();
  }

 private:
  int members() const { return state_.members(); }
  int rank(int stage, int k) const { return state_.groups.rank(state_.pipeline_rank(stage), k); }
  const BlockRange& range(int stage) const { return state_.graph.stages[static_cast<std::size_t>(stage)]; }
  bool reduces_later() const { return !state_.shards_gradients_per_micro_batch(); }
  double scalar_bytes() const { return state_.graph.worker_norms ? 16 : 8; }
  std::size_t key(int rank, int block) const { return state_.row(rank, block); }
  void place(int rank, TaskId task) {
    state_.placed[static_cast<std::size_t>(rank)].emplace_back(at_end, task);
  }

  void find_first_and_last_uses();
  void open_buckets();
  void reduce_norms(int stage);
  void reduce_tied_embedding(int copy);
  void measure_workers(int stage);
  void reduce_over_data(int part);  // all copies of it together
  void precondition(int stage);
  void reduce_global_norm();
  void step(int stage);
  void gather_parameters(int part);
  // What has made a bucket; of passes, segment.
  WorkKind maker_of(BufferId bucket) const {
    const std::int32_t writer = state_.graph.buffers[bucket].writer;
    if (writer == none) return WorkKind::segment;
    const Task& task = state_.graph.tasks[static_cast<std::size_t>(writer)];
    return state_.graph.works[static_cast<std::size_t>(task.work)].kind;
  }
  void write_compute_order();
  // One collective of `work` on each member's bucket of (rank, block) pairs; the buckets become its
  // outputs.
  void on_buckets(int communicator, const Work& work, const std::vector<std::pair<int, int>>& at);

  LoweringState& state_;
  struct Behind {
    TaskId task, follower;
    bool waits_for_message;
  };
  std::vector<std::vector<Behind>> behind_;  // per rank: what has its place in the order after a task of the passes
  std::vector<TaskId> first_use_, last_use_;  // per (rank, block): segments in compute order
  std::vector<BufferId> scalars_;             // per rank: the global norm
  std::vector<BufferId> updated_;             // per (rank, block): parameters after the step
};

void StepEnd::find_first_and_last_uses() {
  constexpr TaskId unused = std::numeric_limits<TaskId>::max();
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
      for (std::size_t at = row + block_of(work.first_op); at <= row + block_of(work.last_op - 1); ++at) {
        if (first_use_[at] == unused) first_use_[at] = task;
        if (work.pass != Pass::forward && work.pass != Pass::recompute) last_use_[at] = task;
      }
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

void StepEnd::on_buckets(int communicator, const Work& work, const std::vector<std::pair<int, int>>& at) {
  std::vector<BufferId> inputs, outputs;
  for (const auto& [rank, block] : at) {
    auto& held = state_.bucket(rank, block);
    inputs.insert(inputs.end(), held.begin(), held.end());
    held = {state_.builder.buffer(BufferKind::bucket, 0, rank, 0)};
    outputs.push_back(held.front());
  }
  const int id = state_.builder.work(work);
  if (communicator != none) {
    state_.add_collective(communicator, id, none, 0, inputs, outputs);
  } else {
    const int rank = at.front().first;
    place(rank, state_.builder.task({TaskKind::compute, rank, none, id, none, 0}, inputs, outputs));
  }
}

void StepEnd::reduce_norms(int stage) {
  if (!state_.input.layout.sequence_parallel) return;
  for (int block = range(stage).first; block < range(stage).last; ++block) {
    if (block_replicated_elements(state_.input.model, block, state_.input.layout.tensor) == 0) continue;
    const Work work = bucket_work(state_, WorkKind::norm_grad_reduce, stage, block);
    for (const auto& group : state_.groups.groups(Axis::tensor, state_.pipeline_rank(stage))) {
      std::vector<std::pair<int, int>> at;
      for (const int k : group.members) at.emplace_back(rank(stage, k), block);
      on_buckets(group.communicator, work, at);
    }
  }
}

void StepEnd::reduce_tied_embedding(int copy) {
  if (!state_.blocks.back().tied) return;
  const int parts = state_.graph.placement.parts(), head = static_cast<int>(state_.blocks.size()) - 1;
  const int first = copy * parts, last = first + parts - 1;
  const Work work = bucket_work(state_, WorkKind::tied_grad_reduce, copy == 0 ? none : first, 0);
  std::map<int, std::vector<std::pair<int, int>>> groups;  // by communicator
  for (int k = 0; k < members(); ++k) {
    const int communicator = state_.groups.embedding_pair(copy, k);
    const std::vector<std::pair<int, int>> pair{{rank(first, k), 0}, {rank(last, k), head}};
    auto& at = groups[communicator];
    at.insert(at.end(), pair.begin(), pair.end());
    if (communicator == none) on_buckets(none, work, pair);
  }
  groups.erase(none);
  for (const auto& [communicator, at] : groups) on_buckets(communicator, work, at);
}

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
        behind_[static_cast<std::size_t>(r)].push_back({last_use_[key(r, block)], task, made_by == WorkKind::norm_grad_reduce});
    }
  }
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
  const auto add_places = [&](int r, std::vector<std::pair<int, int>>& at) {
    for (const int block : blocks) at.emplace_back(r, block);
  };
  for (int k = 0; k < members(); ++k) {
    std::vector<std::pair<int, int>> at;
    add_places(rank(stage, k), at);
    on_buckets(none, work, at);
  }
  const Placement& placement = state_.graph.placement;
  if (placement.copy_of(stage) + 1 < placement.copies) return;  // gathered when the last copy is done
  work.stage = placement.part_of(stage);
  work.suffix = ".ag_precondition";
  work.collective = Collective::all_gather;
  work.bytes = work.elements * bytes_of(work.dtype);
  work.elements = 0;
  for (const auto& group : state_.groups.data_groups(stage)) {
    std::vector<std::pair<int, int>> at;
    for (const int r : group.ranks) add_places(r, at);
    on_buckets(group.communicator, work, at);
  }
}

double shard_elements(const LoweringState& state, const BlockRange& blocks) {
  double elements = 0;
  for (int block = blocks.first; block < blocks.last; ++block) {
    elements +=
        static_cast<double>(block_shard_elements(state.input.model, block, state.input.layout.tensor));
  }
  return elements / (state.input.layout.zero >= 1 ? state.data_degree() : 1);
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
      local.elements += shard_elements(state_, range(stage));
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

void StepEnd::step(int stage) {
  Work work;
  work.kind = WorkKind::optimizer_step;
  work.stage = stage;
  work.dtype = state_.graph.shape.dtype;
  work.elements = shard_elements(state_, range(stage));
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

// What waits for a message (the gradients of sequence parallel norms) comes one task later, where there is one, so that the
// lane has something to do meanwhile.
void StepEnd::write_compute_order() {
  auto& order = state_.graph.compute_order.values;
  for (std::size_t r = 0; r < state_.placed.size(); ++r) {
    const auto& list = state_.placed[r];
    auto& behind = behind_[r];
    std::stable_sort(behind.begin(), behind.end(), [](const Behind& a, const Behind& b) { return a.task < b.task; });
    std::vector<TaskId> late;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool passes_end = i + 1 == list.size() || list[i + 1].first == at_end;
      order.push_back(list[i].second);
      order.insert(order.end(), late.begin(), late.end());
      late.clear();
      const TaskId task = list[i].second;
      auto each = std::lower_bound(behind.begin(), behind.end(), task, [](const Behind& a, TaskId b) { return a.task < b; });
      for (; each != behind.end() && each->task == task; ++each)
        (each->waits_for_message && !passes_end ? late : order).push_back(each->follower);
    }
    state_.graph.compute_order.begin.push_back(
        static_cast<std::uint32_t>(state_.graph.compute_order.values.size()));
  }
}

}  // namespace

void lower_step_end(LoweringState& state) { StepEnd(state).run(); }

}  // namespace slipway
