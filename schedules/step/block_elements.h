// Parameters of all blocks of a step's model, as one rank holds them.
// Guarded by tests/schedules/counted_memory_test.cpp and tests/schedules/lowering_test.cpp.
#pragma once

#include <vector>

#include "schedules/step/step.h"

namespace slipway::schedules {

// elements_of_block (schedules/step/step.h) of each block. Equal blocks, of which a run has dozens, are counted once.
std::vector<BlockElements> elements_of_blocks(const Step& step, bool shares_table = false);

}  // namespace slipway::schedules
