// The part of a long work that one machine does: every `count`-th, from the `number`-th on.
//
//   shard 2 of 4 of ten parts: 1, 5, 9
//
// scenarios/commands/command_line/shard.h writes and merges what shards found. Guarded by tests/scenarios/plan_shard_test.cpp.
#pragma once

#include <cstddef>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

struct Shard {
  int number = 1, count = 1;  // number: from 1
};
// Parts 0 to `points` - 1 that the shard does, ascending.
std::vector<std::size_t> points_in(const Shard& shard, std::size_t points);

}  // namespace slipway::scenarios
