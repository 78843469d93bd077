// What of a scenario lies outside the published runs that a built-in stack was fitted to (scenarios/*/runs.csv).
//
//   rows of a trainer on a machine ──► least and most of each quantity, words of each choice ──┐
//   scenario ──────────────────────────────────────────────────────────────────────────────────┴─► OutsideFit, ...
//
// Guarded by tests/basis_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace slipway {

// A quantity of the scenario beyond all fitted runs: tensor 8, where these had 1 to 4; or a choice that none of them
// made: recompute full, where these had none.
struct OutsideFit {
  std::string what;
  double here = 0, least = 0, most = 0;
  std::string chosen;               // empty: a quantity
  std::vector<std::string> fitted;  // the choices of the fitted runs
};
// "tensor 8 (fitted: 1)", "recompute full (fitted: none, selective)"
std::string describe(const OutsideFit& outside);

// Step times and memory are fitted to different rows: runs that ran out of memory have no time.
enum class FittedOf : std::uint8_t { times, memory };

// Of these constants on this machine, where they are the built-in ones; a profile of the user's was fitted to runs that
// only the user knows.
std::vector<OutsideFit> outside_fit(const Scenario& scenario, const std::string& machine, FittedOf of);

// Slices of a sequence (TeraPipe) with fewer tokens than a pass of any published run: on this machine or, where there is
// none, on any. What a kernel takes for so few is extrapolated, with a trainer's pace and without.
std::optional<OutsideFit> short_slices(const Scenario& scenario, const std::string& machine);

}  // namespace slipway
