// Where no layout fits: changes to the scenario with which one does, each tried by the closed form of all
// its layouts and the verdict of those that need the least. Guarded by tests/scenarios/plan_command_test.cpp.
#pragma once

#include "scenarios/plan/search.h"

namespace slipway::scenarios {

// "16 nodes instead of 8: tensor 8, ..." Powers of two, the least that does it. `space_of`: of a changed
// scenario, and whether --keep is obeyed, which `keeps` says it is at first.
std::vector<std::string> remedies(const Scenario& scenario, bool keeps,
                                  const std::function<SearchSpace(const Scenario&, bool keeps)>& space_of,
                                  const PricedLayout& closest, const SearchOptions& options);

}  // namespace slipway::scenarios
