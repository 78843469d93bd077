#include "schedules/check/updates.h"

#include <algorithm>
#include <optional>

#include "models/model/parameters.h"
#include "schedules/graph/membership.h"
#include "schedules/step/placement.h"

namespace slipway::schedules {
namespace {

constexpr std::int64_t nothing = -1;

// The work of one rank on one block.
struct BlockState {
  std::int64_t last_gradient = nothing;  // position of its last backward
  TaskId last_gradient_task = 0;
  std::vector<TaskId> reductions;
  std::vector<TaskId> worker_norms;
};

class UpdateCheck {
 public:
  UpdateCheck(const TaskGraph& graph, const std::vector<std::uint32_t>& position, Findings& findings)
      : graph_(graph),
        position_(position),
        findings_(findings),
        membership_(graph),
        blocks_(blocks_of(graph.step.model)),
        shares_table_(shares_table(graph.step.model, graph.step.layout, graph.placement)),
        experts_apart_(dispatches_tokens(graph.step)),
        lowered_(lowered_count(graph.step.layout, graph.representatives)),
        states_(lowered_ * blocks_.size() * (experts_apart_ ? 2 : 1)),
        updates_(lowered_ * graph.stages.size()),
        norms_(lowered_),
        seen_(graph.tasks.size(), 0) {
    for (TaskId id = 0; id < graph.tasks.size(); ++id) sort_in(id);
    own_.emplace(graph, membership_, step_end());
    for (const Block& block : blocks_) {
      tensor_sums_.push_back(graph.step.levers.lora.rank == 0 &&  // else they are frozen
                             block_tensor_sum_elements(graph.step.model, static_cast<int>(&block - blocks_.data()),
                                                       graph.step.layout.tensor,
                                                       graph.step.layout.sequence_parallel) > 0);
    }
  }

  void run() {
    for (int rank = 0; rank < rank_count(graph_.step.layout); ++rank) {
      if (!is_lowered(graph_, rank)) continue;
      const int pipeline = coordinates_of(graph_.step.layout, rank).pipeline;
      for (int stage = 0; stage < graph_.placement.stages() && !findings_.full(); ++stage) {
        if (graph_.placement.rank[stage] == pipeline) check_stage(rank, stage);
      }
    }
  }

 private:
  // Row of a rank in per-rank tables, which cover the ranks that have tasks.
  std::size_t row(int rank) const {
    return static_cast<std::size_t>(lowered_index(graph_.step.layout, graph_.representatives, rank));
  }
  // The state of a block, or of its experts where they have separate gradients.
  BlockState& state(int rank, int block, bool experts = false) {
    const std::size_t bucket = static_cast<std::size_t>(block) + (experts ? blocks_.size() : 0);
    return states_[row(rank) * blocks_.size() * (experts_apart_ ? 2 : 1) + bucket];
  }
  std::vector<TaskId>& updates(int rank, int stage) {
    return updates_[row(rank) * graph_.stages.size() + static_cast<std::size_t>(stage)];
  }
  template <class Visit>
  void each_member(TaskId id, const Visit& visit) const {
    for (const std::int32_t rank : members_of(graph_, id))
      if (is_lowered(graph_, rank)) visit(rank);
  }

  void sort_in(TaskId id) {
    const Work& work = graph_.work(id);
    switch (work.kind) {
      case WorkKind::segment:
        return note_gradient(id, work);
      case WorkKind::norm_grad_reduce:
      case WorkKind::kv_grad_reduce:
      case WorkKind::grad_reduce:
        return each_member(id, [&](int rank) { state(rank, work.block, work.experts).reductions.push_back(id); });
      case WorkKind::tied_grad_reduce:
        return note_tied(id, work);
      case WorkKind::grad_norm:
      case WorkKind::norm_reduce:
        return each_member(id, [&](int rank) { norms_[row(rank)].push_back(id); });
      case WorkKind::optimizer_step:
        return updates(graph_.tasks[id].rank, work.stage).push_back(id);
      case WorkKind::worker_norm:
        state(graph_.tasks[id].rank, work.block, work.experts).worker_norms.push_back(id);
        return;
      case WorkKind::transfer:
      case WorkKind::host_copy:
      case WorkKind::wire_collective:
      case WorkKind::precondition:
      case WorkKind::bubble_work:
      case WorkKind::parameter_gather:
        return;
    }
  }

  // Embedding and head of one copy of the model: that of the work's stage, or the first copy.
  void note_tied(TaskId id, const Work& work) {
    const Placement& placement = graph_.placement;
    const int first = (work.stage == none ? 0 : placement.copy_of(work.stage)) * placement.parts();
    const auto note = [&](int rank, int stage, int block) {
      if (coordinates_of(graph_.step.layout, rank).pipeline == placement.rank[stage])
        state(rank, block).reductions.push_back(id);
    };
    each_member(id, [&](int rank) {
      note(rank, first, 0);
      note(rank, first + placement.parts() - 1, static_cast<int>(blocks_.size()) - 1);
    });
  }

  void note_gradient(TaskId id, const Work& work) {
    if (work.pass == Pass::forward || work.pass == Pass::recompute || work.first_op >= work.last_op) return;
    const auto operators = graph_.operators(work);
    const int last_block = operators[work.last_op - 1].block;
    const auto note = [&](int block, bool experts = false) {
      BlockState& at = state(graph_.tasks[id].rank, block, experts);
      if (at.last_gradient >= static_cast<std::int64_t>(position_[id])) return;
      at.last_gradient = position_[id];
      at.last_gradient_task = id;
    };
    for (int block = operators[work.first_op].block; block <= last_block; ++block) note(block);
    for (int op = work.first_op; op < work.last_op && experts_apart_; ++op)
      if (runs_experts(operators[op])) note(operators[op].block, true);
    if (shares_table_ && last_block + 1 == static_cast<int>(blocks_.size())) note(0);
  }

  // The tasks from which walk_back can look further: updates, reductions and their predecessors, up to the backwards.
  std::vector<TaskId> step_end() {
    ++stamp_;
    std::vector<TaskId> tasks;
    const auto add = [&](TaskId id) {
      if (seen_[id] == stamp_ || graph_.work(id).kind == WorkKind::segment) return;
      seen_[id] = stamp_;
      tasks.push_back(id);
    };
    for (const auto& updates : updates_) std::for_each(updates.begin(), updates.end(), add);
    for (const BlockState& at : states_) std::for_each(at.reductions.begin(), at.reductions.end(), add);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      for (const TaskId before : graph_.predecessors[tasks[i]]) add(before);
    }
    return tasks;
  }

  // Finds everything of `rank` that must be over before one of `from` starts, without a walk past the backwards. Marks
  // seen_ with the current stamp and returns the position of the latest backward met.
  std::int64_t walk_back(const std::vector<TaskId>& from, int rank) {
    ++stamp_;
    std::int64_t latest = nothing;
    std::vector<TaskId> todo = from;
    while (!todo.empty()) {
      const TaskId at = todo.back();
      todo.pop_back();
      for (const TaskId before : own_->of(at, rank)) {
        if (seen_[before] == stamp_) continue;
        seen_[before] = stamp_;
        if (graph_.work(before).kind == WorkKind::segment)
          latest = std::max<std::int64_t>(latest, position_[before]);
        else
          todo.push_back(before);
      }
    }
    return latest;
  }

  void check_stage(int rank, int stage) {
    const auto& updates = this->updates(rank, stage);
    const std::string place = "stage " + std::to_string(stage) + " on rank " + std::to_string(rank);
    if (updates.size() != 1) {
      findings_.add(updates, "the parameters of " + place + " are updated " + std::to_string(updates.size()) +
                                 " times in a step");
      return;
    }
    const TaskId update = updates.front();
    const BlockRange range = graph_.stages[stage];
    for (int block = range.first; block < range.last; ++block) check_reductions(rank, block, place);
    walk_back({update}, rank);
    for (int block = range.first; block < range.last; ++block) {
      check_before_update(state(rank, block), update);
      if (has_own_experts(block)) check_before_update(state(rank, block, true), update);
    }
    check_norm(rank, update);
  }

  // The reductions that the layout requires exist, and the last waits for the block's last backward.
  bool has_own_experts(int block) const { return experts_apart_ && blocks_[block].experts > 0; }

  void check_reductions(int rank, int block, const std::string& place) {
    if (has_own_experts(block)) check_reductions_of_experts(rank, block, place);
    const BlockState& at = state(rank, block);
    const auto require = [&](WorkKind kind, bool required, const char* what) {
      const bool there = std::any_of(at.reductions.begin(), at.reductions.end(),
                                     [&](TaskId id) { return graph_.work(id).kind == kind; });
      if (!required || there) return;
      findings_.add(at.last_gradient == nothing ? std::vector<TaskId>{} : std::vector<TaskId>{at.last_gradient_task},
                    "block " + std::to_string(block) + " of " + place + " lacks its gradient reduction " + what);
    };
    const Layout& layout = graph_.step.layout;
    const bool is_end = block == 0 || block + 1 == static_cast<int>(blocks_.size());
    require(WorkKind::grad_reduce, layout.data * layout.context * graph_.placement.copies > 1,
            "over the data and context group");
    require(WorkKind::norm_grad_reduce, tensor_sums_[block], "of replicated weights over the tensor group");
    const bool trains_tables = graph_.step.levers.lora.rank == 0;
    require(WorkKind::kv_grad_reduce, trains_tables && kv_copies(blocks_[block], layout.tensor) > 1,
            "over the tensor ranks with the same key-value heads");
    require(WorkKind::tied_grad_reduce, trains_tables && reads_table(blocks_.back()) && is_end && !shares_table_,
            "between embedding and head");
    check_worker_norms(at, block, place);
    check_waits(rank, at);
  }

  void check_reductions_of_experts(int rank, int block, const std::string& place) {
    const BlockState& at = state(rank, block, true);
    if (at.reductions.empty() && expert_data_of(graph_.step.layout) * graph_.placement.copies > 1)
      findings_.add(at.last_gradient == nothing ? std::vector<TaskId>{} : std::vector<TaskId>{at.last_gradient_task},
                    "the experts of block " + std::to_string(block) + " of " + place +
                        " lack their gradient reduction over the ranks that hold them too");
    check_worker_norms(at, block, place);
    check_waits(rank, at);
  }

  void check_waits(int rank, const BlockState& at) {
    if (at.reductions.empty()) return;
    if (walk_back(at.reductions, rank) < at.last_gradient) {
      findings_.add({at.reductions.back(), at.last_gradient_task},
                    spoken(graph_, at.reductions.back()) + " does not wait for " +
                        spoken(graph_, at.last_gradient_task) + ", the last backward of its block");
    }
  }

  // One worker norm exists for each reduction over the data group.
  void check_worker_norms(const BlockState& at, int block, const std::string& place) {
    const auto reductions = std::count_if(at.reductions.begin(), at.reductions.end(),
                                          [&](TaskId id) { return graph_.work(id).kind == WorkKind::grad_reduce; });
    const auto norms = static_cast<std::ptrdiff_t>(at.worker_norms.size());
    if (norms == (graph_.step.worker_norms ? reductions : 0)) return;
    findings_.add(at.reductions, "the gradient of block " + std::to_string(block) + " of " + place + " is reduced " +
                                     std::to_string(reductions) + " times and measured before that " +
                                     std::to_string(norms) + " times");
  }

  void check_before_update(const BlockState& at, TaskId update) {
    for (const TaskId id : at.reductions) {
      if (seen_[id] == stamp_) continue;
      findings_.add({id, update}, spoken(graph_, update) + " does not wait for " + spoken(graph_, id) +
                                      ", which reduces its gradients");
    }
    if (at.last_gradient > static_cast<std::int64_t>(position_[update])) {
      findings_.add({update, at.last_gradient_task},
                    spoken(graph_, update) + " runs before " + label_of(graph_, at.last_gradient_task));
    }
  }

  std::string joined_for() const {
    return graph_.step.clip_norm > 0 ? "clipping is on" : "the norms of workers' gradients are measured";
  }

  void check_norm(int rank, TaskId update) {
    if (!joins_all_ranks(graph_.step)) return;
    const auto& norms = norms_[row(rank)];
    const auto count = [&](WorkKind kind) {
      return std::count_if(norms.begin(), norms.end(), [&](TaskId id) { return graph_.work(id).kind == kind; });
    };
    if (count(WorkKind::grad_norm) == 0 || (rank_count(graph_.step.layout) > 1 && count(WorkKind::norm_reduce) == 0)) {
      findings_.add({update}, joined_for() + ", but rank " + std::to_string(rank) + " takes no part in a global norm");
    }
    for (const TaskId id : norms) {
      if (seen_[id] == stamp_) continue;
      findings_.add({id, update},
                    spoken(graph_, update) + " does not wait for " + spoken(graph_, id) + ", though " + joined_for());
    }
  }

  const TaskGraph& graph_;
  const std::vector<std::uint32_t>& position_;
  Findings& findings_;
  const Membership membership_;
  std::optional<OwnPredecessors> own_;  // of step_end()
  std::vector<Block> blocks_;
  bool shares_table_;                         // the embedding's gradient is the head's too
  bool experts_apart_;                        // experts have separate gradients (dispatches_tokens)
  std::size_t lowered_;                       // rows of ranks
  std::vector<BlockState> states_;            // [rank × block], [rank × block and its experts]
  std::vector<std::vector<TaskId>> updates_;  // [rank × stage]
  std::vector<std::vector<TaskId>> norms_;    // [rank]
  std::vector<bool> tensor_sums_;             // [block]
  std::vector<std::uint32_t> seen_;           // stamps of walk_back
  std::uint32_t stamp_ = 0;
};

}  // namespace

void find_update_defects(const TaskGraph& graph, const std::vector<std::uint32_t>& position, Findings& findings) {
  UpdateCheck(graph, position, findings).run();
}

}  // namespace slipway::schedules
