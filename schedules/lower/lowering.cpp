#include "schedules/lower/lowering.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "schedules/graph/parallel.h"
#include "schedules/lower/kfac_shares.h"
#include "schedules/lower/lowering_state.h"
#include "schedules/lower/pairs.h"
#include "schedules/lower/passes.h"
#include "schedules/lower/ring.h"
#include "schedules/lower/static_bytes.h"
#include "schedules/lower/step_end.h"
#include "schedules/rules/rules.h"

namespace slipway::schedules {
namespace {

void set_static_bytes(const Step& step, TaskGraph& graph) {
  const auto members = static_cast<std::size_t>(step.layout.data * step.layout.context * step.layout.tensor);
  for (const StaticBytes& bytes : static_bytes_of(step))
    graph.static_bytes.insert(graph.static_bytes.end(), members, bytes);
}

TaskGraph described(const Step& step, const Representatives& representatives, const ActionLists& actions) {
  const ScheduleShape shape = schedule_shape(step);
  TaskGraph graph;
  graph.step = step;
  graph.micro_batches = shape.micro_batches;
  graph.representatives = representatives;
  graph.placement = placement_of(actions, shape);
  for (int copy = 0; copy < shape.copies; ++copy) {
    const std::vector<BlockRange> parts = split_blocks(step.model, step.layout);
    graph.stages.insert(graph.stages.end(), parts.begin(), parts.end());
  }
  set_stage_operators(graph);
  set_static_bytes(step, graph);
  return graph;
}

// Sets a rank's own share, known once the groups of replicas are. static_bytes_of has counted the fullest one's.
void set_inverse_bytes(TaskGraph& graph) {
  const std::vector<Block> blocks = blocks_of(graph.step.model);
  const Dtype dtype = graph.step.dtype;
  for (std::size_t r = 0; r < graph.static_bytes.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    const auto places =
        kfac_places(blocks, graph.placement, graph.stages, coordinates_of(graph.step.layout, rank).pipeline);
    const auto replicas = static_cast<int>(kfac_replicas(graph, rank).size());
    graph.static_bytes[r].optimizer +=
        kfac_inverse_bytes(kfac_share(graph, rank), dtype) - most_kfac_inverse_bytes(places, replicas, dtype);
  }
}

// A backward is about as many tasks as its forward, twice as many with recomputation. More than that costs a copy.
void make_room_for_all(LoweringState& state) {
  std::size_t actions = 0;
  for (const auto& list : state.actions) actions += list.size();
  state.builder.make_room(1.6 * static_cast<double>(actions));
}

void lower_stage_actions(LoweringState& state, int stage, Pass pass) {
  constexpr auto absent = std::numeric_limits<std::uint32_t>::max();
  for (int micro_batch = 0; micro_batch < state.graph.micro_batches; ++micro_batch) {
    for (int i = 0; i < state.step.slices; ++i) {
      const int slice = pass == Pass::forward ? i : state.step.slices - 1 - i;
      const Action action{pass, stage, micro_batch, slice};
      if (state.index_of(action) == absent) continue;
      ActionLowering lowering(state, action);
      const bool is_first = state.graph.tasks.empty();
      if (pass == Pass::forward)
        lowering.forward();
      else if (pass == Pass::weight_grad)
        lowering.weight_grad();
      else
        lowering.backward();
      if (is_first) make_room_for_all(state);
    }
  }
}

// All forward, recompute, backward and weight-gradient tasks with their wire collectives and transfers: stage by stage,
// forwards from first to last, backwards from last to first.
void lower_passes(LoweringState& state) {
  for (int stage = 0; stage < state.stages(); ++stage) lower_stage_actions(state, stage, Pass::forward);
  for (int stage = state.stages() - 1; stage >= 0; --stage) {
    for (const Pass pass : {Pass::backward, Pass::input_grad, Pass::weight_grad}) {
      lower_stage_actions(state, stage, pass);
    }
  }
}

// compute_order of every rank up to the end of its last action.
void place_compute_order(LoweringState& state) {
  each_in_parallel(state.placed.size(), state.graph.tasks.size(), [&](std::size_t rank) {
    auto& list = state.placed[rank];
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  });
  interleave_pairs(state);
}

// Trainers whose ranks wait until a message to the next stage is sent before they go on (the default of Megatron-LM's
// and nanotron's point-to-point calls):
//
//   rank 0 │ F0 │send│ F1 │send│        instead of        F0 │ F1 │
//                                                            │send│send│
//
// Each transfer gets a control edge to the sender's next action. Guarded by tests/schedules/lowering_test.cpp.
void wait_for_transfers(LoweringState& state) {
  const TaskGraph& graph = state.graph;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    if (task.kind != TaskKind::transfer) continue;
    const Work& work = graph.work(task);
    const std::uint32_t sent_by = state.index_of({work.pass, work.stage, task.micro_batch, task.slice});
    const int sender = graph.communicator(task).ranks[0];
    const auto& list = state.placed[sender];
    const auto next =
        std::find_if(std::lower_bound(list.begin(), list.end(), std::pair<std::uint32_t, TaskId>{sent_by, 0}),
                     list.end(), [&](const auto& placed) { return placed.first > sent_by; });
    if (next != list.end()) state.builder.control(id, next->second);
  }
}

}  // namespace

TaskGraph lower(const Step& step, const Representatives& representatives, std::size_t most_tasks) {
  // A step with given actions may have fewer micro-batches than its schedule takes (schedules/time/periodic.h).
  assert(step.actions || legal(step));
  ActionLists actions = action_lists(step);
  TaskGraph graph = described(step, representatives, actions);
  LoweringState state(std::move(actions), graph, most_tasks);
  if (uses_kfac(step)) set_inverse_bytes(graph);
  lower_passes(state);
  place_compute_order(state);
  limit_ring_prefetch(state);
  limit_gather_prefetch(state);
  limit_host_copies(state);
  if (step.blocking_transfers) wait_for_transfers(state);
  lower_step_end(state);
  state.builder.close();
  return graph;
}

}  // namespace slipway::schedules
