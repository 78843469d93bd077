// The number of micro-batches whose activations a pipeline rank holds, per stage, at the moment of most bytes. Memory
// in closed form needs only this number of a schedule. It is counted on the action list, so it holds for every schedule
// and for an imported one.
//
//   1F1B, 4 stages:  rank 0   F F F F B F B F B B B B      held: 4 = p − 0, on rank i: min(m, p − i)
//
// A micro-batch (slice) is held from its forward to its backward. With split gradients it is held to the input
// gradients, and what the weight gradients need from there on. A pair holds what is there at its larger end, and one
// layer. Guarded by tests/schedules/in_flight_test.cpp.
#pragma once

#include <span>
#include <vector>

#include "schedules/step/action.h"

namespace slipway::schedules {

// The amount that one micro-batch keeps on a stage, in any unit.
struct HeldBytes {
  double activations = 0;
  double for_weights = 0;  // between input and weight gradients
  // Bytes of the largest layer, where the layers of a pair's forward and backward alternate: for each layer that is
  // kept, one is given up. 0: the actions of a pair (Action::with_next) run one after the other.
  double layer_of_pair = 0;
};

// `actions`: one rank's list; `of_stage`: all stages. Returns micro-batches per stage. One that waits only for its weight
// gradients counts for_weights / activations.
std::vector<double> held_at_peak(std::span<const Action> actions, std::span<const HeldBytes> of_stage);

}  // namespace slipway::schedules
