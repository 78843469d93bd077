// Between the public types (library/include/slipway) and those inside. Include the headers of the inside first, then this:
// the rooms inside see each other's names by using-directives, where they would meet the public ones of namespace slipway.
//
//   slipway::Scenario ──loaded──► scenarios::Scenario ──► predict, search, explain ──► plain public structs
//   what() of errors inside ──translated──► Refusal, Failure, Interrupted
#pragma once

#include <stdexcept>
#include <utility>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/step_interval.h"
#include "sim/simulate.h"

#include "slipway/predict.h"

namespace slipway {

struct Scenario::Source {
  scenarios::ScenarioSource of;
};

// Throws scenarios::ScenarioRefused.
inline scenarios::Scenario loaded(const Scenario& scenario) {
  return scenarios::checked_scenario(scenario.source().of);
}

std::vector<Defect> defects_of(const std::vector<scenarios::ScenarioError>& errors);
std::optional<Interval> interval_of(const std::optional<scenarios::StepInterval>& interval);
// Rethrows what is being handled as an error of the library.
[[noreturn]] void rethrow();

// The result of `work`, whose errors are those of the library.
template <typename Work>
auto translated(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (...) {
    rethrow();
  }
}

}  // namespace slipway
