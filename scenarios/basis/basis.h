// What of a scenario lies outside the published runs that a built-in stack was fitted to (scenarios/*/runs.csv).
//
//   rows of a trainer on a machine ──► least and most of each quantity, words of each choice ──┐
//   scenario ──────────────────────────────────────────────────────────────────────────────────┴─► OutsideFit, ...
//
// Guarded by tests/scenarios/basis_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/answers/answer_keys.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

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

// On what the times and the memory of a prediction rest, and how far to trust them.
//
//   cluster.stack, timed on these machines ──► that trainer's pace; what its formula has no term for, and what lies
//                                              outside the published runs that its constants were fitted to
//   no stack, a built-in machine profile ────► book values: no trainer's pace, wrong by `book_error`
//   no stack, a profile of a file ───────────► that file's: what it says of its origin, or that it says nothing
//   a block table ───────────────────────────► blocks take its times, on whatever machine
//
// Told by every command that shows them: simulate, plan, study, goodput, growth, memory. Guarded by tests/scenarios/basis_test.cpp.

// How far step times by book values alone are off published runs: mean errors of `slipway validate --engine book`, in the
// best and the worst line of the README (Scored against published runs).
struct ErrorRange {
  int least_percent, most_percent;
};
constexpr ErrorRange book_error{5, 42};

struct Basis {
  std::string trainer;                    // empty: none
  bool book_values = false;               // priced by a built-in machine profile alone
  std::string blocks;                     // "NAME (SOURCE)" of the table that times the blocks; empty: none
  std::vector<std::string> own_profiles;  // "FILE: SOURCE, DATE" of profiles that are not built in
  std::vector<std::string> fitted_here;   // with book values: built-in stacks that were timed on these machines
  std::vector<std::string> not_priced;    // features that the trainer's formula has no term for (TimeModel::outside)
  std::vector<OutsideFit> outside;        // of the trainer's fitted runs on the cluster's machines
  std::optional<OutsideFit> slices;       // shorter than what any published run computed at once
  std::string memory_trainer;             // whose constants of memory are used; empty: the book's
  std::vector<OutsideFit> memory_outside;
};
Basis basis_of(const Scenario& scenario);
Basis without_memory(Basis basis);  // that of times alone

// "on average 5 to 42 % off published runs, mostly too fast"
std::string book_error_text();
// The paragraph under the answer; empty where there is nothing to warn of. What is outside of the fits of both times and
// memory is said once.
std::string basis_text(const Basis& basis);
std::string memory_basis_text(const Basis& basis);  // of memory alone
// Of many points, or rows of a table (`noun`): each thing once, and for how many of them it holds.
std::string basis_text(const std::vector<Basis>& points, const char* noun);
// Such a paragraph at the end of a text: without the empty line after it; and with one before it.
std::string without_empty_line(const std::string& paragraph);
std::string empty_line_first(const std::string& paragraph);

// For the descriptions of answers that rest on times, and on times and memory (scenarios/answers/description.h).
const Description<Basis>& time_basis_keys();
const Description<Basis>& basis_keys();

}  // namespace slipway::scenarios
