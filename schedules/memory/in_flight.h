// How many micro-batches a pipeline rank holds the activations of, of each of its stages, where their bytes
// are largest: the one number that memory in closed form needs of a schedule. Counted on the action list, so
// it holds for every schedule and for an imported one.
//
//   1F1B, 4 stages:  rank 0   F F F F B F B F B B B B      held: 4 = p − 0, on rank i: min(m, p − i)
//
// A micro-batch (slice) is held from its forward to its backward. Where input and weight gradients are split it is held to the
// former, and what the latter need from there on. Guarded by tests/schedules/in_flight_test.cpp.
#pragma once

#include <map>
#include <span>

#include "schedules/step/action.h"

namespace slipway::schedules {

// What one micro-batch keeps on a stage, in any unit.
struct HeldBytes {
  double activations = 0;
  double for_weights = 0;  // between input and weight gradients
};

// Per stage of `actions`, one rank's list: micro-batches, where one that waits for its weight gradients alone counts as
// for_weights / activations of one. Stages that are not named in `bytes_of_stage` weigh nothing.
std::map<int, double> held_at_peak(std::span<const Action> actions, const std::map<int, HeldBytes>& bytes_of_stage);

}  // namespace slipway::schedules
