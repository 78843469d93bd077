// On what the times and the memory of a prediction rest, and how far to trust them.
//
//   cluster.stack, timed on these machines ──► that trainer's pace; what its formula has no term for, and what lies
//                                              outside the published runs that its constants were fitted to
//   no stack, a built-in machine profile ────► book values: no trainer's pace, wrong by `book_error`
//   no stack, a profile of a file ───────────► that file's: what it says of its origin, or that it says nothing
//   a block table ───────────────────────────► blocks take its times, on whatever machine
//
// Told by every command that shows them: simulate, plan, study, goodput, growth, memory. Guarded by tests/basis_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/fitted_range.h"
#include "scenarios/json_summary.h"
#include "scenarios/scenario.h"

namespace slipway {

// How far step times by book values alone are off published runs: mean errors of `slipway validate --engine book`, in the
// best and the worst line of the README (Scored against published runs).
struct ErrorRange {
  int least_percent, most_percent;
};
constexpr ErrorRange book_error{5, 42};

struct Basis {
  std::string trainer;                   // empty: none
  bool book_values = false;              // priced by a built-in machine profile alone
  std::string blocks;                    // "NAME (SOURCE)" of the table that times the blocks; empty: none
  std::vector<std::string> own_profiles; // "FILE: SOURCE, DATE" of profiles that are not built in
  std::vector<std::string> fitted_here;  // with book values: built-in stacks that were timed on these machines
  std::vector<std::string> not_priced;   // features that the trainer's formula has no term for (TimeModel::outside)
  std::vector<OutsideFit> outside;       // of the trainer's fitted runs on the cluster's machines
  std::optional<OutsideFit> slices;      // shorter than what any published run computed at once
  std::string memory_trainer;            // whose constants of memory are used; empty: the book's
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

// The keys of json_keys_basis.h.
void set_basis_keys(JsonSummary& json, const Basis& basis);
nlohmann::json basis_json(const Basis& basis);

}  // namespace slipway
