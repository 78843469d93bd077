// Levers: single changes of a scenario that may make its step faster. Each is a function from a scenario to a changed
// scenario, or to the reason why there is none. One file per group (levers_batch.cpp, ...); a new lever is one entry of
// its list.
//
//   scenario ──lever──► changed step ──rule book──► VariedScenario ──simulation──► LeverTrial      (lever_trials.h)
//                  └──► reason                └───► reason
//
// Guarded by tests/scenarios/explain_levers_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenarios/search/variation.h"

namespace slipway::scenarios {

struct Lever {
  std::string name;  // "micro-batch x 2"
  // Changes the scenario. Returns why it cannot; empty: it did. Need not ask the rule book.
  std::function<std::string(Scenario&)> pull;
};

std::vector<Lever> batch_levers();
std::vector<Lever> schedule_levers();
std::vector<Lever> memory_levers();
std::vector<Lever> overlap_levers();
std::vector<Lever> layout_levers();
// The levers of all groups, in this order.
std::vector<Lever> all_levers();

// A pure function. Two levers that make the same step give equal overrides.
VariedScenario changed_by(const Lever& lever, const Scenario& scenario);

}  // namespace slipway::scenarios
