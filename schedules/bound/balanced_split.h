// layout.split balanced, for pipeline ranks with unlike GPUs or with several stages: the slowest rank is as fast as it
// can be.
//
//   stage on     H100      H100      A100      A100
//   layers       11        11        5         5       instead of 8 each
//
//   rank              0  1  0  1   two chunks, the head as much as two layers
//   layers            4  4  4  2   a micro-batch keeps rank 0 busy for 8 layers and rank 1 for 6 and the head: as long
//
// The load of a stage is the seconds of a forward and a backward of one micro-batch through its blocks, embedding and
// head included. It counts the slowest machine of the pipeline ranks that hold the stage, and the collectives of its
// tensor and context groups. The load of a rank is the sum over its stages: the cost of a micro-batch wherever the
// pipeline is full. Among splits whose slowest rank is equally fast, the least sum of squares wins, so that no other
// rank is longer than it must be. Within a rank, layers go to the stage that has the least. Only where layers are not
// alike, each stage of a rank is balanced by itself. On like machines with one stage a rank, FLOPs decide (split_blocks
// in schedules/step/layout.h).
//
// Slow GPUs and ports count as sound ones: a split is made without them (models/machine/degradation.h).
//
// Memory: most_layers is the number of layers that a rank can hold. The caller sets it: the lower bound of an estimate
// (StepEstimator::balanced_splits), or the verdict of `slipway memory` (scenarios/search/refine.cpp).
// Guarded by tests/schedules/balanced_split_test.cpp: against every split there is.
#pragma once

#include <optional>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "schedules/step/step.h"

namespace slipway::schedules {

// True if the GPUs of some groups of nodes differ from those of the first.
bool has_several_machines(const Cluster& cluster);
// Per pipeline rank, the node groups that its members sit in, ascending.
std::vector<std::vector<int>> groups_of_pipeline_ranks(const Cluster& cluster, const Layout& layout);
// True if some pipeline rank sits on machines that another does not sit on.
bool has_unequal_stages(const Cluster& cluster, const Layout& layout);

struct SplitLoads {
  std::vector<std::vector<double>> seconds;  // [stage][block] of blocks_of(model): embedding, layers, head
  std::vector<int> rank;                     // [stage]: the rank whose time it takes; empty: each stage is a rank
  std::vector<int> most_layers;              // [rank]; empty: no limit
};
// Every stage has at least one block, if only the embedding or the head.
int fewest_layers(int stage, int stages);
// True if no rank holds more than its most_layers. Requires loads.rank.
bool keeps(const std::vector<int>& layers, const SplitLoads& loads);

// Transformer layers per stage, for layout.split_list. The embedding goes with the first stage, the head with the last;
// every stage has a block. Returns nothing where a rank would hold more than its most_layers. (If the stages of a rank
// are balanced each by itself, this holds for the balanced ones.) Throws std::invalid_argument for more stages than
// blocks.
std::optional<std::vector<int>> balanced_layers(SplitLoads loads);

// Loads for one copy of the model, without most_layers. Throws std::invalid_argument as lower() does.
SplitLoads split_loads(const Step& step, const PricedCluster& cluster);

}  // namespace slipway::schedules
