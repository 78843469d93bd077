// What keeps the messages of ring attention (ring.cpp) from running far ahead.
#pragma once

#include "schedules/lower/lowering_state.h"

namespace slipway::schedules {

// The keys and values that a backward pass sends around again leave a task ahead; control edges only.
void limit_ring_prefetch(LoweringState& state);

}  // namespace slipway::schedules
