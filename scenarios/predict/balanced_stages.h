// Layers of stages by time, where stages are not alike: machines of several kinds, or chunks.
//
//   seconds of blocks ──balanced_split.h──► split with the fastest slowest rank ──verdict.h──► a layer less where it does
//                                                                                               not fit, and again
//
// Guarded by tests/scenarios/refine_test.cpp.
#pragma once

#include <vector>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Replaces layout.split balanced by the split by time (schedules/bound/balanced_split.h), written into
// layout.split_list, where the machines of pipeline ranks differ or ranks hold several chunks. Call it again after a
// change of layout or schedule. Throws std::invalid_argument where blocks cannot be priced.
void balance_stages(Scenario& scenario);
// Layers per stage. Takes the split with the fastest slowest rank among those in which each pipeline rank needs at most
// this share of its memory by the verdict (verdict.h); where none fits, among all splits. A rank that needs more gets a
// layer less, and so on. So a split that is left out does not fit, unless other chunks of the rank had held its layers.
std::vector<int> balanced_by_time(const Scenario& scenario, double memory_share);

}  // namespace slipway::scenarios
