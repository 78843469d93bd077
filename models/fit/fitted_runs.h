// Ranges of the runs of a fit: for each trainer on each machine, the least and most of every quantity, and every choice
// that was made. A prediction outside them states it (scenarios/predict/basis.h).
//
//   nanotron on h100-80gb, times      tensor 1 to 16, sequence 2048 to 16384, ...      recompute none
//
// The file of constants holds them, so that an answer needs no table of runs.
// Guarded by tests/scenarios/load_constants_test.cpp: they are those of the tables that the file names.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "models/model/names.h"

namespace slipway::models {

// Step times and memory are fitted to different runs: those that ran out of memory have no time.
enum class FittedOf : std::uint8_t { times, memory };
inline constexpr std::array fitted_of_names{Named{FittedOf::times, "times"}, Named{FittedOf::memory, "memory"}};

struct FittedRange {
  double least = 0, most = 0;
  bool operator==(const FittedRange&) const = default;
};

struct FittedRuns {
  std::string trainer, machine;
  FittedOf of = FittedOf::times;
  std::map<std::string, FittedRange, std::less<>> ranges;             // by quantity, in its unit
  std::map<std::string, std::set<std::string>, std::less<>> choices;  // by what was chosen
  bool operator==(const FittedRuns&) const = default;
};

}  // namespace slipway::models
