// layout.split balanced, over pipeline ranks whose GPUs are not alike: the slowest stage is as fast as it
// can be.
//
//   stage on     H100      H100      A100      A100
//   layers       11        11        5         5       instead of 8 each
//
// The load of a stage is the seconds of a forward and a backward of one micro-batch through its blocks,
// embedding and head included, on the slowest machine of the pipeline ranks that hold it, with the
// collectives of its tensor and context groups. Of the splits whose slowest stage is equally fast: the one
// with the least sum of squares, so that stages that set no pace are not longer than they must be. On
// machines that are alike FLOPs decide (split_blocks in schedules/layout.h). Memory has no say: what does
// not fit the verdict tells. With several chunks per rank this balances chunks, not their sum on a rank.
// Guarded by tests/balanced_split_test.cpp: against every split there is.
#pragma once

#include <vector>

#include "models/machine.h"
#include "schedules/graph/lowering.h"

namespace slipway {

// Are the GPUs of some groups of nodes others than those of the first?
bool has_several_machines(const Cluster& cluster);
// Per pipeline rank, the node groups that its members sit in, ascending.
std::vector<std::vector<int>> groups_of_pipeline_ranks(const Cluster& cluster, const Layout& layout);
// Do pipeline ranks sit on machines that others do not sit on?
bool has_unequal_stages(const Cluster& cluster, const Layout& layout);

// `seconds`: of each block (of blocks_of(model)) on each stage, [stage][block]; at least one block a stage.
// Returns the transformer layers per stage, which are what layout.split_list is to hold: the embedding goes
// with the first stage, the head with the last.
std::vector<int> balanced_layers(const std::vector<std::vector<double>>& seconds);

// [stage][block], of one copy of the model. Throws std::invalid_argument as lower() does.
std::vector<std::vector<double>> stage_block_seconds(const LoweringInput& input, const Cluster& cluster);
// Of both; throws besides when there are more stages than blocks.
std::vector<int> time_balanced_layers(const LoweringInput& input, const Cluster& cluster);

}  // namespace slipway
