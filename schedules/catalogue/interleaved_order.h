// The turns of a rank that holds v chunks, stage s on rank s mod p: micro-batches in groups, a group through one chunk
// after the other. Interleaved 1F1B and merged 1F1B take them at different times.
//
//   p = 2, v = 2, m = 4, rank 0: forwards 0F0 0F1 2F0 2F1 0F2 0F3 2F2 2F3, backwards 2B0 2B1 0B0 0B1 2B2 2B3 0B2 0B3
//
// ScheduleShape::group sets the size of all groups but the last. Else a group is p micro-batches where m is a multiple
// of p. Else there are ⌊m/p⌋ groups of nearly equal size, at least one: those of PyTorch's ScheduleInterleaved1F1B where
// it accepts the number, and of Megatron-Core's microbatch_group_size_per_vp_stage (schedules.py, get_schedule_table)
// with a shorter last group.
// Guarded by tests/schedules/catalogue_test.cpp and tests/schedules/pytorch_schedules_test.cpp.
#pragma once

#include <vector>

#include "schedules/step/action.h"

namespace slipway::schedules {

// Refuses a group that Megatron-Core refuses: less than the pipeline or more than there are micro-batches, or a rest that
// is less than the pipeline.
std::optional<ShapeRefusal> refuse_group(const ScheduleShape& shape);
// Micro-batches of each group; the first ones are the larger.
std::vector<int> groups_of(const ScheduleShape& shape);
// The lists of all ranks. Rank r warms up with 2(p − r − 1) + (v − 1)g forwards, g the size of the first group: after them
// its backwards never wait where all passes take the same time. Then it takes a forward before each backward.
// `more_forwards` are added to the warm-up. `in_pairs`: a forward and the backward behind it are a pair.
ActionLists take_turns(const ScheduleShape& shape, int more_forwards = 0, bool in_pairs = false);

}  // namespace slipway::schedules
