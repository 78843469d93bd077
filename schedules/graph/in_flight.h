// How many micro-batches a pipeline rank holds the activations of, of each of its stages, where their bytes
// are largest: the one number that memory in closed form needs of a schedule. Counted on the action list, so
// it holds for every schedule and for an imported one.
//
//   1F1B, 4 stages:  rank 0   F F F F B F B F B B B B      held: 4 = p − 0, on rank i: min(m, p − i)
//
// A micro-batch (slice) is held from its forward to its backward, or to its weight gradient where the two
// are split. Guarded by tests/in_flight_test.cpp.
#pragma once

#include <map>
#include <span>

#include "schedules/action.h"

namespace slipway {

// Per stage of `actions`, one rank's list. `bytes_of_stage`: what one micro-batch keeps on a stage, in any
// unit; stages that are not named weigh nothing.
std::map<int, int> held_at_peak(std::span<const Action> actions, const std::map<int, double>& bytes_of_stage);

}  // namespace slipway
