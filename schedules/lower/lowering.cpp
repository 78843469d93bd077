#include "schedules/lower/lowering.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "models/model/parameters.h"
#include "schedules/graph/parallel.h"
#include "schedules/lower/kfac_shares.h"
#include "schedules/lower/lowering_state.h"
#include "schedules/lower/pairs.h"
#include "schedules/lower/passes.h"
#include "schedules/rules/rules.h"
#include "schedules/step/block_elements.h"
#include "schedules/step/placement.h"

namespace slipway::schedules {

namespace {

// Bytes per parameter: bf16 and fp16 weights keep an fp32 master copy beside Adam's two moments (12 bytes, Fujii 2024);
// with moments of 2 bytes 8. Wider weights are their own master. What is in the host's memory does not count.
double optimizer_bytes_per_parameter(const Step& step) {
  const double moments = 2.0 * bytes_of(step.optimizer.moment_dtype);
  const double on_device = 1 - step.optimizer.offload_fraction;
  return on_device * (bytes_of(step.dtype) == 2 ? 4.0 + moments : 2.0 * bytes_of(step.dtype));
}

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

}  // namespace

LoweringState::LoweringState(ActionLists lists, TaskGraph& target, std::size_t most_tasks)
    : step(target.step),
      graph(target),
      builder(target, most_tasks),
      groups(step.layout, target.placement, Groups::needs_of(step), target.representatives, target.communicators),
      blocks(blocks_of(step.model)),
      shares_table(slipway::schedules::shares_table(step.model, step.layout, target.placement)),
      elements(elements_of_blocks(step, shares_table)),
      boundary(boundary_bytes(step.model, target.shape())),
      actions(std::move(lists)) {
  const auto count = graph.stages.size();
  const bool recompute = step.recompute == Recompute::full;
  for (std::size_t stage = 0; stage < count; ++stage) {
    for (const bool cut : {false, true}) {
      (cut ? by_block : whole)
          .push_back(segments_of_stage(graph.stage_operators[stage * static_cast<std::size_t>(graph.step.slices)],
                                       blocks, cut, recompute, graph.placement.is_first(static_cast<int>(stage)),
                                       graph.placement.is_last(static_cast<int>(stage))));
    }
  }
  const auto ranks = static_cast<std::size_t>(rank_count(step.layout));
  experts_apart = dispatches_tokens(step);
  passages.resize(count * static_cast<std::size_t>(graph.micro_batches * step.slices));
  placed.resize(ranks);
  buckets.resize(static_cast<std::size_t>(step.layout.pipeline * members()) * bucket_count());
  weight_gathers.resize(ranks);
  reductions.resize(ranks);
  worker_squares.resize(ranks);
  action_index.assign(6 * passages.size(), std::numeric_limits<std::uint32_t>::max());
  last_micro_batch.assign(count, none);
  for (const auto& list : actions) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool ends_pair = i > 0 && list[i - 1].with_next;  // both have the index of the first
      index_of(list[i]) = static_cast<std::uint32_t>(ends_pair ? i - 1 : i);
      if (list[i].pass != Pass::forward) last_micro_batch[list[i].stage] = list[i].micro_batch;
    }
  }
}

std::vector<int> LoweringState::buckets_of(const BlockRange& range) const {
  std::vector<int> list;
  for (int block = range.first; block < range.last; ++block) {
    if (experts_apart && blocks[block].experts > 0) list.push_back(experts_of(block));
    list.push_back(block);
  }
  return list;
}

const StageSegments& LoweringState::stage_segments(int stage, int micro_batch) const {
  const auto s = static_cast<std::size_t>(stage);
  const bool overlaps = step.overlap_grad_reduce && data_degree() > 1 && last_micro_batch[s] == micro_batch;
  const bool shards =
      shards_gradients_per_micro_batch(0) || (experts_apart && shards_gradients_per_micro_batch(experts_of(0)));
  return overlaps || shards ? by_block[s] : whole[s];
}

Passage& LoweringState::passage(int stage, int micro_batch, int slice) {
  return passages[(stage * graph.micro_batches + micro_batch) * step.slices + slice];
}

std::uint32_t& LoweringState::index_of(const Action& action) {
  assert(action.stage >= 0 && action.stage < stages());
  assert(action.micro_batch >= 0 && action.micro_batch < graph.micro_batches);
  assert(action.slice >= 0 && action.slice < step.slices);
  const auto item =
      static_cast<std::size_t>((action.stage * graph.micro_batches + action.micro_batch) * step.slices + action.slice);
  return action_index[static_cast<std::size_t>(action.pass) * passages.size() + item];
}

TaskId LoweringState::add_compute(const Action& action, int member, int work, std::span<const BufferId> inputs,
                                  std::span<const BufferId> outputs) {
  const int rank = groups.rank(pipeline_rank(action.stage), member);
  const TaskId id =
      builder.task({TaskKind::compute, rank, none, work, action.micro_batch, action.slice}, inputs, outputs);
  placed[rank].emplace_back(index_of(action), id);
  return id;
}

TaskId LoweringState::add_collective(int communicator, int work, int micro_batch, int slice,
                                     std::span<const BufferId> inputs, std::span<const BufferId> outputs) {
  return builder.task({TaskKind::collective, none, communicator, work, micro_batch, slice}, inputs, outputs);
}

namespace {

// `linears` of the elements have copies in the narrow format, beside those in the dtype or in their place.
StaticBytes static_bytes(double elements, double trained, double linears, double shards, const Step& step) {
  const int zero = step.layout.zero;
  const auto narrow = format_of(step.narrow);
  const NarrowHabits habits = narrow_habits(step);
  const double copies = narrow ? copies_of(step.narrow, habits) * weight_bytes(*narrow) * linears : 0;
  const double wide = narrow && habits.gathers_weights ? elements - linears : elements;
  return {(wide * bytes_of(step.dtype) + copies) / (zero >= 3 ? shards : 1),
          trained * bytes_of(step.gradient_dtype) / (zero >= 2 ? shards : 1),
          trained * optimizer_bytes_per_parameter(step) / (zero >= 1 ? shards : 1)};
}

}  // namespace

StaticBytes static_bytes_of(const BlockElements& held, const Step& step, int copies) {
  const Layout& layout = step.layout;
  const double shards = static_cast<double>(shards_of(layout)) * copies;
  const auto dense = static_cast<double>(held.dense), experts = static_cast<double>(held.experts);
  const StaticBytes bytes =
      static_bytes(dense, static_cast<double>(held.trained()), static_cast<double>(held.linears), shards, step);
  if (held.experts == 0) return bytes;
  const StaticBytes more = static_bytes(experts, static_cast<double>(held.trained_experts()), experts,
                                        static_cast<double>(expert_data_of(layout)) * copies, step);
  return {bytes.weights + more.weights, bytes.gradients + more.gradients, bytes.optimizer + more.optimizer};
}

namespace {

// A schedule's placement holds for any number of micro-batches; every schedule runs twice as many as ranks.
Placement placement_for_any_batch(const Step& step) {
  const Schedule& schedule = schedule_of(step);
  const ScheduleShape shape{step.layout.pipeline, step.layout.chunks, 2 * step.layout.pipeline, step.slices,
                            schedule.copies};
  if (step.actions != nullptr) return placement_of(*step.actions, shape);
  return placement_of(schedule.refuse(shape) ? ActionLists{} : schedule.actions(shape), shape);
}

// K-FAC holds no moments for these matrices.
double moments_of(const std::vector<KfacPlace>& matrices, Dtype dtype) {
  double elements = 0;
  for (const KfacPlace& place : matrices)
    elements += static_cast<double>(place.linear.in) * static_cast<double>(place.linear.out);
  return elements * 2.0 * std::max(4, bytes_of(dtype));
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

}  // namespace

std::vector<StaticBytes> static_bytes_of(const Step& step) {
  const Layout& layout = step.layout;
  const std::vector<BlockRange> parts = split_blocks(step.model, layout);
  const Placement placement = placement_for_any_batch(step);
  const auto elements = elements_of_blocks(step, shares_table(step.model, layout, placement));
  const std::vector<Block> blocks = blocks_of(step.model);
  std::vector<BlockRange> stages;
  for (int copy = 0; copy < placement.copies; ++copy) stages.insert(stages.end(), parts.begin(), parts.end());
  std::vector<StaticBytes> result;
  for (int pipeline = 0; pipeline < layout.pipeline; ++pipeline) {
    BlockElements held;
    for (int stage = 0; stage < placement.stages(); ++stage) {
      if (placement.rank[stage] != pipeline) continue;
      const BlockRange& part = stages[stage];
      for (int block = part.first; block < part.last; ++block) held += elements[block];
    }
    result.push_back(static_bytes_of(held, step, placement.copies));
    if (!uses_kfac(step)) continue;
    const std::vector<KfacPlace> places = kfac_places(blocks, placement, stages, pipeline);
    result.back().optimizer +=
        most_kfac_inverse_bytes(places, layout.data * layout.context * placement.copies, step.dtype) -
        moments_of(places, step.dtype);
  }
  return result;
}

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

// Every action of the schedule, stage by stage: forwards from first to last, backwards from last to first.

namespace {

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

}  // namespace slipway::schedules
