// Second half of I6: every shard of parameters is updated once, after its own reductions. For each rank and each stage
// on it:
//
//   last backward of a block ─► its reductions ─► [norm ─► norm reduction over all ranks] ─► one update
//
// The reductions that a layout requires must exist: data and context group; tensor group for replicated weights under
// sequence parallelism, and for norms of heads always; the ranks with copies of a key-value head; first and last stage for a tied embedding of two ranks. The last
// reduction of a block must wait for that block's last backward, and the update for all of them. To wait means a path
// of edges through tasks of this rank: an earlier place in the order on another lane is a race.
// Guarded by tests/schedules/check_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/check/findings.h"

namespace slipway::schedules {

void find_update_defects(const TaskGraph& graph, const std::vector<std::uint32_t>& position, Findings& findings);

}  // namespace slipway::schedules
