#include "schedules/lower/lowering_state.h"

#include <cassert>
#include <limits>

#include "schedules/step/block_elements.h"
#include "schedules/step/placement.h"

namespace slipway::schedules {

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

}  // namespace slipway::schedules
