// layout.split balanced, over pipeline ranks whose GPUs are not alike or that hold several stages: the slowest rank is
// as fast as it can be.
//
//   stage on     H100      H100      A100      A100
//   layers       11        11        5         5       instead of 8 each
//
//   rank              0  1  0  1   two chunks, the head as much as two layers
//   layers            4  4  4  2   a micro-batch keeps rank 0 busy for 8 layers and rank 1 for 6 and the head: as long
//
// The load of a stage is the seconds of a forward and a backward of one micro-batch through its blocks,
// embedding and head included, on the slowest machine of the pipeline ranks that hold it, with the
// collectives of its tensor and context groups; that of a rank is the sum over its stages, which is what a micro-batch
// costs it wherever the pipeline is full. Of the splits whose slowest rank is equally fast: the one
// with the least sum of squares, so that ranks that set no pace are not longer than they must be. Within a rank layers
// go to the stage that has the least. (Stages of a rank are balanced each by itself only where layers are not alike.) On
// machines that are alike, with one stage a rank, FLOPs decide (split_blocks in schedules/step/layout.h).
//
// Slow GPUs and ports count as sound ones: a plan is made without them (models/machine/degradation.h).
//
// Memory: most_layers says how many layers a rank can hold. Who asks knows how many: the lower bound of an estimate
// (StepEstimator::balanced_splits), the verdict of `slipway memory` (scenarios/plan/refine.cpp).
// Guarded by tests/schedules/balanced_split_test.cpp and tests/schedules/balanced_split_test.cpp: against every split there is.
#pragma once

#include <optional>
#include <vector>

#include "models/machine/machine.h"
#include "schedules/lower/lowering.h"

namespace slipway::schedules {

// Are the GPUs of some groups of nodes others than those of the first?
bool has_several_machines(const Cluster& cluster);
// Per pipeline rank, the node groups that its members sit in, ascending.
std::vector<std::vector<int>> groups_of_pipeline_ranks(const Cluster& cluster, const Layout& layout);
// Do pipeline ranks sit on machines that others do not sit on?
bool has_unequal_stages(const Cluster& cluster, const Layout& layout);

struct SplitLoads {
  std::vector<std::vector<double>> seconds;  // [stage][block] of blocks_of(model): embedding, layers, head
  std::vector<int> rank;                     // [stage]: whose time it takes; empty: each stage is a rank
  std::vector<int> most_layers;              // [rank]; empty: any number
};
// Every stage has a block, if only the embedding or the head.
int fewest_layers(int stage, int stages);
// Does no rank hold more than its most_layers? loads.rank is there.
bool keeps(const std::vector<int>& layers, const SplitLoads& loads);

// Transformer layers per stage, which are what layout.split_list is to hold: the embedding goes with the first stage,
// the head with the last; every stage has a block. Nothing where a rank would hold more than its most_layers (and,
// where stages of a rank are balanced each by itself, where the balanced ones would). Throws
// std::invalid_argument when there are more stages than blocks.
std::optional<std::vector<int>> balanced_layers(SplitLoads loads);

// Of one copy of the model, without most_layers. Throws std::invalid_argument as lower() does.
SplitLoads split_loads(const Step& step, const Cluster& cluster);
// Of both.
std::vector<int> time_balanced_layers(const Step& step, const Cluster& cluster);

}  // namespace slipway::schedules
