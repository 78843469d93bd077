// Remedies where no layout fits: changes to the scenario. Each is tried by the closed form of all its layouts and the
// verdict of those with the least memory. Guarded by tests/scenarios/plan_command_test.cpp.
#pragma once

#include "scenarios/search/search.h"

namespace slipway::scenarios {

// "16 nodes instead of 8: tensor 8, ..." Powers of two, the smallest that suffices. `space_of`: the space of a changed
// scenario, with or without --keep. `keeps`: with --keep at first.
std::vector<std::string> remedies(const Scenario& scenario, bool keeps,
                                  const std::function<SearchSpace(const Scenario&, bool keeps)>& space_of,
                                  const PricedLayout& closest, const SearchOptions& options);

}  // namespace slipway::scenarios
