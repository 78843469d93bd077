// On what the times of a prediction rest, and how far to trust them.
//
//   cluster.stack, timed on these machines ──► that trainer's pace; what of the scenario lies outside the published
//                                              runs that its constants were fitted to (tables of the study folders)
//   no stack, a built-in machine profile ────► book values: no trainer's pace, wrong by `book_error`
//   no stack, a profile of a file ───────────► that file's: what it was calibrated to is its own affair
//
// Guarded by tests/basis_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace slipway {

// How far step times by book values alone are off published runs: mean errors of `slipway validate --engine book`, in the
// best and the worst line of the README (Scored against published runs).
struct ErrorRange {
  int least_percent, most_percent;
};
constexpr ErrorRange book_error{5, 41};

// A quantity of the scenario beyond all fitted runs: tensor 8, where these had 1 to 4.
struct OutsideFit {
  std::string what;
  double here = 0, least = 0, most = 0;
};

struct Basis {
  std::string trainer;                   // empty: none
  bool book_values = false;              // priced by a built-in machine profile alone
  std::vector<std::string> fitted_here;  // with book values: built-in stacks that were timed on these machines
  std::vector<OutsideFit> outside;       // of the trainer's fitted runs on the cluster's machines
};
Basis basis_of(const Scenario& scenario);

// "on average 5 to 41 % off published runs, mostly too fast"
std::string book_error_text();
// "tensor 8 (fitted: 1)"
std::string describe(const OutsideFit& outside);
// The paragraph under the answer; empty where there is nothing to warn of.
std::string basis_text(const Basis& basis);

}  // namespace slipway
