// Places the compute tasks of a step's end in their rank's order: behind the passes, or between them, right after the
// task that made what they read.
//
//   passes   │ 0B3.L2 │ 0B3.L1 │ 0B3.L0 │                  at_end   grad_norm, opt, ...
//   written  │ 0B3.L2 │ 0.L2.worker_norm │ 0B3.L1 │ 0.L1.worker_norm │ 0B3.L0 │ ... │ grad_norm │ opt │
//
// Guarded by tests/schedules/worker_norms_test.cpp.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "models/model/parameters.h"
#include "schedules/graph/parallel.h"
#include "schedules/lower/kfac_shares.h"
#include "schedules/lower/passes.h"
#include "schedules/lower/step_end.h"

namespace slipway::schedules {

class ComputePlaces {
 public:
  // `state` has the passes in place, and must outlive this.
  explicit ComputePlaces(LoweringState& state) : state_(state), behind_(state.placed.size()) {}
  // Places behind everything of the rank that has a place yet.
  void at_end(int rank, TaskId task);
  // Places right after `task` of the passes. `waits_for_message`: one task of the passes later, if there is one, so
  // that the lane has work while the message travels.
  void behind(int rank, TaskId task, TaskId follower, bool waits_for_message);
  // Writes graph.compute_order. Called once, at the end.
  void write();

 private:
  struct Behind {
    TaskId task, follower;
    bool waits_for_message;
  };
  LoweringState& state_;
  std::vector<std::vector<Behind>> behind_;  // per rank
};

// What follows the last backward of a step, per block and per rank:
//
//   bucket ─ norm_grad (tensor) ─ kv_grad (ranks with the same heads) ─ tied_grad ─ ar_grad | rs_grad ─┬─ grad_norm ─ norm_reduce ─┐
//                                          └─ worker_norm           └──────── opt ◄─────────────┘
//   opt ─ ag_param (ZeRO 1, 2) ─► first use in the next step
//
// Each arrow is a buffer, so the order of a parameter's reductions and its update is a data dependency.
// For the norm test, worker_norm reads what the reduction is about to overwrite: the reduction waits for it.
// ZeRO 2 and 3 have reduced each micro-batch already (passes.cpp): their buckets arrive here reduced. Gradients that
// tensor ranks have in parts are summed over the tensor group afterwards. With fewer key-value heads than tensor ranks,
// each rank's gradient of its copy comes from its own queries; kv_grad sums them, once in a step. (AWS's
// neuronx-distributed sums the gradients of keys and values instead, in each backward pass. Megatron-Core keeps no
// copies: it gathers the projection's results over the tensor group.)
// Private to the lowering.
// Guarded by tests/schedules/lowering_test.cpp and tests/schedules/worker_norms_test.cpp.

class StepEnd {
 public:
  explicit StepEnd(LoweringState& state)
      : state_(state), places_(state), scalars_(state.placed.size()), updated_(state.buckets.size()) {}

  void run() {
    find_first_and_last_uses();
    open_buckets();
    const std::vector<int> stages = state_.graph.placement.by_part();
    for (const int stage : stages) reduce_norms(stage);
    for (const int stage : stages) reduce_copied_heads(stage);
    for (int copy = 0; copy < state_.graph.placement.copies; ++copy) reduce_tied_embedding(copy);
    if (state_.graph.step.worker_norms)
      for (const int stage : stages) measure_workers(stage);
    for (int part = 0; part < state_.graph.placement.parts(); ++part) reduce_over_data(part);
    for (const int stage : stages) precondition(stage);
    if (joins_all_ranks(state_.step)) reduce_global_norm();
    for (const int stage : stages) step(stage);
    for (int part = 0; part < state_.graph.placement.parts(); ++part) gather_parameters(part);
    limit_weight_prefetch(state_);
    limit_unreduced_gradients(state_);
    places_.write();
  }

 private:
  int members() const { return state_.members(); }
  int rank(int stage, int k) const { return state_.groups.rank(state_.pipeline_rank(stage), k); }
  const BlockRange& range(int stage) const { return state_.graph.stages[stage]; }
  bool reduces_later(int bucket) const { return !state_.shards_gradients_per_micro_batch(bucket); }
  double scalar_bytes() const { return state_.graph.step.worker_norms ? 16 : 8; }
  std::size_t key(int rank, int bucket) const { return state_.row(rank, bucket); }
  // Parameters of a tensor shard of these blocks that one rank updates.
  double shard_elements(const BlockRange& blocks) const;
  void place(int rank, TaskId task) { places_.at_end(rank, task); }

  void find_first_and_last_uses();
  void open_buckets();
  void reduce_norms(int stage);
  void reduce_copied_heads(int stage);
  void reduce_tied_embedding(int copy);
  void measure_workers(int stage);
  void reduce_over_data(int part);  // all its copies together
  void precondition(int stage);
  void gather_preconditioned(Work work, const std::vector<int>& blocks);
  void while_it_runs(TaskId task, int rank, double bytes);
  void reduce_global_norm();
  void step(int stage);
  // With optimizer states in the host's memory: gradients go there before the update, and weights come back.
  BufferId copy_gradients(int stage, int rank, std::span<const BufferId> gradients);
  void copy_weights(int stage, int rank);
  Work host_work(int stage, Dtype dtype, const char* suffix) const;
  void gather_parameters(int part);
  // The work that made a bucket; segment for passes.
  WorkKind maker_of(BufferId bucket) const {
    const auto writer = state_.graph.writer(bucket);
    return writer ? state_.graph.work(*writer).kind : WorkKind::segment;
  }
  // One collective of `work` on each member's bucket of (rank, bucket) pairs. The buckets become its outputs.
  TaskId on_buckets(int communicator, const Work& work, const std::vector<std::pair<int, int>>& at);

  LoweringState& state_;
  ComputePlaces places_;
  std::vector<TaskId> first_use_, last_use_;  // per (rank, bucket): segments in compute order
  std::vector<BufferId> scalars_;             // per rank: the global norm
  std::vector<BufferId> updated_;             // per (rank, bucket): parameters after the step
};

namespace {

constexpr auto of_no_action = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void ComputePlaces::at_end(int rank, TaskId task) { state_.placed[rank].emplace_back(of_no_action, task); }

void ComputePlaces::behind(int rank, TaskId task, TaskId follower, bool waits_for_message) {
  behind_[rank].push_back({task, follower, waits_for_message});
}

void ComputePlaces::write() {
  auto& order = state_.graph.compute_order.values;
  for (std::size_t rank = 0; rank < state_.placed.size(); ++rank) {
    const auto& list = state_.placed[rank];
    auto& behind = behind_[rank];
    std::stable_sort(behind.begin(), behind.end(), [](const Behind& a, const Behind& b) { return a.task < b.task; });
    std::vector<TaskId> late;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool passes_end = i + 1 == list.size() || list[i + 1].first == of_no_action;
      const TaskId task = list[i].second;
      order.push_back(task);
      order.insert(order.end(), late.begin(), late.end());
      late.clear();
      auto each =
          std::lower_bound(behind.begin(), behind.end(), task, [](const Behind& a, TaskId b) { return a.task < b; });
      for (; each != behind.end() && each->task == task; ++each)
        (each->waits_for_message && !passes_end ? late : order).push_back(each->follower);
    }
    state_.graph.compute_order.begin.push_back(static_cast<std::uint32_t>(order.size()));
  }
}

// Bytes and labels of collectives on one block's gradients or parameters.

Work bucket_work(const LoweringState& state, WorkKind kind, int stage, int bucket) {
  const Step& step = state.step;
  const int tensor = step.layout.tensor, block = state.block_of(bucket);
  Work work;
  work.kind = kind;
  work.stage = stage;
  work.block = block;
  work.experts = state.is_experts(bucket);
  work.dtype = state.graph.step.gradient_dtype;
  work.collective = Collective::all_reduce;
  double elements = state.elements_of(bucket);
  const char* tail = ".ar_grad";
  if (kind == WorkKind::norm_grad_reduce) {
    elements = static_cast<double>(block_tensor_sum_elements(step.model, block, tensor, step.layout.sequence_parallel));
    tail = ".norm_grad";
  } else if (kind == WorkKind::kv_grad_reduce) {
    // A rank has only its slice of sharded gradients.
    const double shards = state.shards_gradients_per_micro_batch(bucket) ? state.shard_degree() : 1;
    elements = std::min(static_cast<double>(block_copied_elements(step.model, block, tensor)), elements / shards);
    tail = ".kv_grad";
  } else if (kind == WorkKind::tied_grad_reduce) {
    const Block& head = state.blocks.back();
    elements = static_cast<double>(head.vocab) / tensor * static_cast<double>(head.hidden);
    tail = ".tied_grad";
  } else if (kind == WorkKind::parameter_gather) {
    work.collective = Collective::all_gather;
    work.dtype = state.graph.step.dtype;
    if (step.layout.zero >= 3) elements = state.all_elements_of(bucket);  // frozen ones are sharded too
    tail = ".ag_param";
  } else if (step.layout.zero >= 1) {
    work.collective = Collective::reduce_scatter;
    tail = ".rs_grad";
  }
  work.bytes = kind == WorkKind::parameter_gather ? gathered_bytes(step, elements, state.gathered_linears_of(bucket))
                                                  : elements * bytes_of(work.dtype);
  work.suffix = "." + block_name(state.blocks, block) + (work.experts ? ".experts" : "") + tail;
  return work;
}

Work work_of_copies(const Work& reduction, double shards) {
  Work work = reduction;
  work.collective = Collective::all_reduce;
  work.bytes /= shards;
  work.suffix += "_copies";
  return work;
}

Work worker_norm_work(const LoweringState& state, int stage, int bucket) {
  Work work;
  work.kind = WorkKind::worker_norm;
  work.stage = stage;
  work.block = state.block_of(bucket);
  work.experts = state.is_experts(bucket);
  work.dtype = state.graph.step.gradient_dtype;
  work.elements = state.elements_of(bucket);
  work.suffix = "." + block_name(state.blocks, work.block) + (work.experts ? ".experts" : "") + ".worker_norm";
  return work;
}

void StepEnd::find_first_and_last_uses() {
  constexpr TaskId unused = std::numeric_limits<TaskId>::max();
  const std::size_t head = state_.blocks.size() - 1;
  first_use_.assign(state_.buckets.size(), unused);
  last_use_ = first_use_;
  each_in_parallel(state_.placed.size(), state_.graph.tasks.size(), [&](std::size_t r) {
    if (state_.placed[r].empty()) return;
    const std::size_t row = key(static_cast<int>(r), 0);
    for (const auto& [action, task] : state_.placed[r]) {
      const Work& work = state_.graph.work(task);
      if (work.kind != WorkKind::segment) continue;
      const auto operators = state_.graph.operators(work);
      const auto block_of = [&](int op) { return static_cast<std::size_t>(operators[op].block); };
      const auto note = [&](std::size_t at) {
        if (first_use_[at] == unused) first_use_[at] = task;
        if (work.pass != Pass::forward && work.pass != Pass::recompute) last_use_[at] = task;
      };
      for (std::size_t block = block_of(work.first_op); block <= block_of(work.last_op - 1); ++block) note(row + block);
      for (int op = work.first_op; op < work.last_op && state_.experts_apart; ++op)
        if (runs_experts(operators[op])) note(row + static_cast<std::size_t>(state_.experts_of(operators[op].block)));
      if (state_.shares_table && block_of(work.last_op - 1) == head) note(row);
    }
  });
}

void StepEnd::open_buckets() {
  for (std::size_t at = 0; at < last_use_.size(); ++at) {
    if (last_use_[at] == std::numeric_limits<TaskId>::max()) continue;
    if (!reduces_later(static_cast<int>(at % state_.bucket_count()))) continue;
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
  const Layout& layout = state_.step.layout;
  if (layout.tensor == 1 || state_.step.levers.lora.rank > 0) return;  // LoRA: norms and routers are frozen
  for (int block = range(stage).first; block < range(stage).last; ++block) {
    if (block_tensor_sum_elements(state_.step.model, block, layout.tensor, layout.sequence_parallel) == 0) continue;
    const Work work = bucket_work(state_, WorkKind::norm_grad_reduce, stage, block);
    for (const auto& group : state_.groups.groups(Axis::tensor, state_.pipeline_rank(stage))) {
      std::vector<std::pair<int, int>> at;
      for (const int k : group.members) at.emplace_back(rank(stage, k), block);
      on_buckets(group.communicator, work, at);
    }
  }
}

void StepEnd::reduce_copied_heads(int stage) {
  const Layout& layout = state_.step.layout;
  if (state_.step.levers.lora.rank > 0) return;  // frozen
  for (int block = range(stage).first; block < range(stage).last; ++block) {
    const int copies = kv_copies(state_.blocks[block], layout.tensor);
    if (copies == 1) continue;
    const Work work = bucket_work(state_, WorkKind::kv_grad_reduce, stage, block);
    for (const auto& group : state_.groups.groups_of_copies(copies, state_.pipeline_rank(stage))) {
      std::vector<std::pair<int, int>> at;
      for (const int k : group.members) at.emplace_back(rank(stage, k), block);
      on_buckets(group.communicator, work, at);
    }
  }
}

void StepEnd::reduce_tied_embedding(int copy) {
  if (!reads_table(state_.blocks.back()) || state_.shares_table || state_.step.levers.lora.rank > 0) return;
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
  for (const int bucket : state_.buckets_of(range(part))) {
    if (!reduces_later(bucket)) continue;
    const Work work = bucket_work(state_, WorkKind::grad_reduce, part, bucket);
    for (const auto& group : state_.groups.data_groups(part, work.experts)) {
      std::vector<std::pair<int, int>> at;
      for (const int r : group.ranks) at.emplace_back(r, bucket);
      on_buckets(group.communicator, work, at);
    }
    if (work.experts) continue;
    const Work sum = work_of_copies(work, state_.shard_degree());
    for (const auto& group : state_.groups.copies_of_shards(part)) {
      std::vector<std::pair<int, int>> at;
      for (const int r : group.ranks) at.emplace_back(r, bucket);
      on_buckets(group.communicator, sum, at);
    }
  }
}

void StepEnd::step(int stage) {
  Work work;
  work.kind = WorkKind::optimizer_step;
  work.stage = stage;
  work.dtype = state_.graph.step.dtype;
  work.elements = shard_elements(range(stage));
  work.suffix = ".opt";
  const int id = state_.builder.work(work);
  for (int k = 0; k < members(); ++k) {
    const int r = rank(stage, k);
    std::vector<BufferId> inputs, outputs;
    for (const int bucket : state_.buckets_of(range(stage))) {
      const auto& held = state_.bucket(r, bucket);
      inputs.insert(inputs.end(), held.begin(), held.end());
      updated_[key(r, bucket)] = state_.builder.buffer(BufferKind::parameter, 0, r, 0);
      outputs.push_back(updated_[key(r, bucket)]);
    }
    if (joins_all_ranks(state_.step)) inputs.push_back(scalars_[r]);
    if (state_.step.optimizer.offload_fraction > 0) inputs.push_back(copy_gradients(stage, r, inputs));
    const TaskId task = state_.builder.task({TaskKind::optimizer, r, none, id, none, 0}, inputs, outputs);
    place(r, task);
    if (state_.step.optimizer.offload_fraction > 0) copy_weights(stage, r);
    for (const TaskId gather : state_.weight_gathers[r]) {
      if (state_.graph.work(gather).stage == stage) {
        state_.graph.carried.emplace_back(task, gather);
      }
    }
  }
}

// One rank, with its lanes. The next step waits for the weights, or for their gather:
//
//   compute     … │ grad_norm │                   │ opt │               │ 0F0 of the next step
//   to_host                   │ 0.opt.gradients │
//   from_host                                           │ 0.opt.weights │

Work StepEnd::host_work(int stage, Dtype dtype, const char* suffix) const {
  Work work;
  work.kind = WorkKind::host_copy;
  work.stage = stage;
  work.dtype = dtype;
  work.bytes = state_.step.optimizer.offload_fraction * shard_elements(range(stage)) * bytes_of(dtype);
  work.suffix = suffix;
  return work;
}

BufferId StepEnd::copy_gradients(int stage, int rank, std::span<const BufferId> gradients) {
  const int id = state_.builder.work(host_work(stage, state_.step.gradient_dtype, ".opt.gradients"));
  const BufferId on_host = state_.builder.buffer(BufferKind::bucket, 0, rank, 0);
  state_.add_collective(state_.groups.host_lane(rank, true), id, none, 0, gradients, std::span(&on_host, 1));
  return on_host;
}

void StepEnd::copy_weights(int stage, int rank) {
  const int id = state_.builder.work(host_work(stage, state_.step.dtype, ".opt.weights"));
  std::vector<BufferId> inputs, outputs;
  for (const int bucket : state_.buckets_of(range(stage))) {
    BufferId& updated = updated_[key(rank, bucket)];
    inputs.push_back(updated);
    updated = state_.builder.buffer(BufferKind::parameter, 0, rank, 0);
    outputs.push_back(updated);
  }
  const TaskId copy = state_.add_collective(state_.groups.host_lane(rank, false), id, none, 0, inputs, outputs);
  state_.graph.carried.emplace_back(copy, state_.placed[rank].front().second);
}

void StepEnd::gather_parameters(int part) {
  if (state_.step.layout.zero < 1 || state_.step.layout.zero > 2) return;
  for (const int bucket : state_.buckets_of(range(part))) {
    const int id = state_.builder.work(bucket_work(state_, WorkKind::parameter_gather, part, bucket));
    for (const auto& group : state_.groups.data_groups(part, state_.is_experts(bucket))) {
      std::vector<BufferId> inputs, outputs;
      for (const int r : group.ranks) {
        inputs.push_back(updated_[key(r, bucket)]);
        outputs.push_back(state_.builder.buffer(BufferKind::parameter, 0, r, 0));
      }
      const TaskId task = state_.add_collective(group.communicator, id, none, 0, inputs, outputs);
      for (const int r : group.ranks) {
        const TaskId first =
            state_.step.overlap_param_gather ? first_use_[key(r, bucket)] : state_.placed[r].front().second;
        state_.graph.carried.emplace_back(task, first);
      }
    }
  }
}

void lower_step_end(LoweringState& state) { StepEnd(state).run(); }

// Work on whole gradients at a step's end: norms of the workers', K-FAC's preconditioning, the global norm.

// Runs as soon as a block's last gradient exists, so that its reduction still overlaps the blocks that follow.
void StepEnd::measure_workers(int stage) {
  for (const int bucket : state_.buckets_of(range(stage))) {
    if (!reduces_later(bucket)) continue;
    const int id = state_.builder.work(worker_norm_work(state_, stage, bucket));
    for (int k = 0; k < members(); ++k) {
      const int r = rank(stage, k);
      auto& held = state_.bucket(r, bucket);
      const BufferId square = state_.builder.buffer(BufferKind::scalar, 0, r, 8);
      const std::vector<BufferId> outputs{state_.builder.buffer(BufferKind::bucket, 0, r, 0), square};
      const TaskId task = state_.builder.task({TaskKind::compute, r, none, id, none, 0}, held, outputs);
      const WorkKind made_by = maker_of(held.front());
      held = {outputs.front()};
      state_.worker_squares[r].push_back(square);
      if (made_by == WorkKind::tied_grad_reduce)
        place(r, task);  // the other end of the pipeline is not done before
      else
        places_.behind(r, last_use_[key(r, bucket)], task,
                       made_by == WorkKind::norm_grad_reduce || made_by == WorkKind::kv_grad_reduce);
    }
  }
}

// Replicas share a stage's Linears out and then gather what the others have preconditioned.
void StepEnd::precondition(int stage) {
  if (!uses_kfac(state_.step)) return;
  Work work;
  work.kind = WorkKind::precondition;
  work.stage = stage;
  work.dtype = state_.graph.step.gradient_dtype;
  work.suffix = ".precondition";
  std::vector<int> blocks;
  for (int block = range(stage).first; block < range(stage).last; ++block)
    for (const KfacLinear& linear : kfac_linears(state_.blocks[block])) {
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
  double elements = 0, of_experts = 0;
  for (const int bucket : state_.buckets_of(blocks))
    (state_.is_experts(bucket) ? of_experts : elements) += state_.elements_of(bucket);
  if (state_.step.layout.zero == 0) return elements + of_experts;
  elements /= state_.shard_degree();
  return of_experts > 0 ? elements + of_experts / state_.data_degree(state_.experts_of(0)) : elements;
}

void StepEnd::reduce_global_norm() {
  const int ranks = static_cast<int>(state_.placed.size());
  Work local;
  local.kind = WorkKind::grad_norm;
  local.dtype = state_.graph.step.gradient_dtype;
  local.suffix = ".grad_norm";
  std::vector<std::size_t> lowered;
  for (int i = 0; i < state_.step.layout.pipeline * members(); ++i) {
    const int pipeline = i / members(), r = state_.groups.rank(pipeline, i % members());
    lowered.push_back(static_cast<std::size_t>(r));
    std::vector<BufferId> inputs;
    local.elements = 0;
    for (int stage = 0; stage < state_.stages(); ++stage) {
      if (state_.pipeline_rank(stage) != pipeline) continue;
      local.elements += shard_elements(range(stage));
      for (const int bucket : state_.buckets_of(range(stage))) {
        const auto& held = state_.bucket(r, bucket);
        inputs.insert(inputs.end(), held.begin(), held.end());
      }
    }
    const std::vector<BufferId>& squares = state_.worker_squares[r];
    inputs.insert(inputs.end(), squares.begin(), squares.end());
    scalars_[r] = state_.builder.buffer(BufferKind::scalar, 0, r, scalar_bytes());
    place(r, state_.builder.task({TaskKind::compute, r, none, state_.builder.work(local), none, 0}, inputs,
                                 std::span(&scalars_[r], 1)));
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

}  // namespace slipway::schedules
