// State that the parts of the lowering share while one graph is made (private to schedules/lower).
//
// All replicas of a pipeline rank do the same work, so they are lowered together: member
// k = (data·C + context)·T + tensor of pipeline rank q is rank q·members + k.
#pragma once

#include <array>
#include <limits>
#include <vector>

#include "models/model/parameters.h"
#include "schedules/lower/graph_builder.h"
#include "schedules/lower/groups.h"
#include "schedules/lower/lowering.h"
#include "schedules/lower/segments.h"

namespace slipway::schedules {

constexpr BufferId no_buffer = std::numeric_limits<BufferId>::max();

// The buffer that holds each wire (by bit number) for each member k.
using WireBuffers = std::array<std::vector<BufferId>, wire_kinds>;

// The buffers that the forward of one (stage, micro-batch, slice) leaves for its backward.
struct Passage {
  std::vector<BufferId> entry;           // [k] residual that arrives from the stage before
  std::vector<BufferId> exit_gradient;   // [k] residual gradient that arrives from the stage after
  std::vector<BufferId> block_entry;     // [segment·K + k] residual at a recomputed block's start
  std::vector<BufferId> saved;           // [segment·K + k]
  std::vector<BufferId> on_host;         // [segment·K + k] of what is kept in the host's memory
  std::vector<BufferId> shard;           // [segment·K + k] of an input that is gathered again for the weight gradient
  std::vector<BufferId> saved_weight;    // [segment·K + k] between input_grad and weight_grad
  std::vector<BufferId> cache;           // [segment·K + k] keys and values up to this slice, for the next
  std::vector<BufferId> cache_gradient;  // [segment·K + k] that the next slice's backward hands back
};

struct LoweringState {
  LoweringState(ActionLists lists, TaskGraph& target, std::size_t most_tasks);

  const Step& step;
  TaskGraph& graph;
  GraphBuilder builder;
  Groups groups;
  std::vector<Block> blocks;
  bool shares_table = false;                   // schedules/step/placement.h
  std::vector<BlockElements> elements;         // per block, of one rank
  double boundary = 0;                         // bytes of the residual between stages, per rank
  std::vector<StageSegments> whole, by_block;  // per stage
  ActionLists actions;                         // per pipeline rank
  std::vector<int> last_micro_batch;           // per stage: the micro-batch whose backward comes last
  std::vector<Passage> passages;
  // (index of the action, task) of each rank's compute tasks, sorted into compute_order later.
  std::vector<std::vector<std::pair<std::uint32_t, TaskId>>> placed;
  std::vector<std::uint32_t> action_index;
  bool experts_apart = false;  // experts have separate buckets, which other ranks share
  // Complete gradient buckets per (rank that has tasks, bucket); the optimizer waits for them.
  std::vector<std::vector<BufferId>> buckets;
  // ZeRO 3: gathers whose first use follows the previous step's optimizer, per (rank).
  std::vector<std::vector<TaskId>> weight_gathers;
  // ZeRO 2, 3, per (rank): the task that begins a block's gradient of a micro-batch, and its reduction.
  std::vector<std::vector<std::pair<TaskId, TaskId>>> reductions;

  // Sums of squares of gradients before the reduction over the workers, per (rank); the global norm adds them up.
  std::vector<std::vector<BufferId>> worker_squares;

  int members() const { return groups.members(); }
  int pipeline_rank(int stage) const { return graph.placement.rank[stage]; }
  int stages() const { return static_cast<int>(graph.stages.size()); }
  // ZeRO 2 and 3 reduce the gradients of a bucket that several ranks hold after each micro-batch.
  bool shards_gradients_per_micro_batch(int bucket) const { return step.layout.zero >= 2 && data_degree(bucket) > 1; }
  const StageSegments& stage_segments(int stage, int micro_batch) const;
  Passage& passage(int stage, int micro_batch, int slice);
  std::uint32_t& index_of(const Action& action);
  // A bucket is a block, or where experts are apart the block's experts: bucket number blocks.size() + block.
  int experts_of(int block) const { return static_cast<int>(blocks.size()) + block; }
  bool is_experts(int bucket) const { return bucket >= static_cast<int>(blocks.size()); }
  int block_of(int bucket) const { return is_experts(bucket) ? bucket - static_cast<int>(blocks.size()) : bucket; }
  std::size_t bucket_count() const { return blocks.size() * (experts_apart ? 2 : 1); }
  // The buckets of these blocks, in the order in which they are reduced.
  std::vector<int> buckets_of(const BlockRange& range) const;
  // Row of (rank, bucket) in tables per (rank that has tasks, bucket), and the rank of a row.
  std::size_t row(int rank, int bucket) const {
    return static_cast<std::size_t>(lowered_index(step.layout, graph.representatives, rank)) * bucket_count() +
           static_cast<std::size_t>(bucket);
  }
  int rank_at(std::size_t row) const {
    const int lowered = static_cast<int>(row / bucket_count());
    return groups.rank(lowered / members(), lowered % members());
  }
  std::vector<BufferId>& bucket(int rank, int bucket) { return buckets[row(rank, bucket)]; }
  // Trained parameters of a bucket on one rank; all of them.
  double elements_of(int bucket) const {
    const BlockElements& of = elements[block_of(bucket)];
    return static_cast<double>(is_experts(bucket) ? of.trained_experts() : of.trained());
  }
  double all_elements_of(int bucket) const {
    const BlockElements& of = elements[block_of(bucket)];
    return static_cast<double>(is_experts(bucket) ? of.experts : of.dense);
  }
  // Gathered parameters of a bucket that belong to Linears of layers. Frozen ones are gathered with ZeRO 3 only.
  double gathered_linears_of(int bucket) const {
    if (step.levers.lora.rank > 0 && step.layout.zero < 3) return 0;
    const BlockElements elements = elements_of_block(step, block_of(bucket), shares_table);
    return static_cast<double>(is_experts(bucket) ? elements.experts : elements.linears);
  }
  double gradient_bytes() const { return bytes_of(graph.step.gradient_dtype); }
  // Ranks that hold the same weights: data × context × copies in the pipeline. Those that hold a bucket's.
  double data_degree() const {
    return static_cast<double>(step.layout.data) * step.layout.context * graph.placement.copies;
  }
  // The number of these that share one copy of the shards.
  double shard_degree() const { return data_degree() / step.layout.replicate; }
  double data_degree(int bucket) const {
    return is_experts(bucket) ? static_cast<double>(expert_data_of(step.layout)) * graph.placement.copies
                              : data_degree();
  }

  // A compute task of member k, placed in its rank's order at `action`.
  TaskId add_compute(const Action& action, int member, int work, std::span<const BufferId> inputs,
                     std::span<const BufferId> outputs);
  TaskId add_collective(int communicator, int work, int micro_batch, int slice, std::span<const BufferId> inputs,
                        std::span<const BufferId> outputs);
};

}  // namespace slipway::schedules
