// The basis of a prediction: the runs that the constants of a step were fitted to (models/fit/fitted_runs.h), as the
// file of constants describes them, and the settings of the scenario that lie outside those runs.
//
//   runs of a trainer on a machine: least and most of each quantity, words of each choice ──┐
//   scenario ───────────────────────────────────────────────────────────────────────────────┴─► OutsideFit, ...
//
// Guarded by tests/scenarios/basis_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/predict/answer_keys.h"
#include "scenarios/predict/step_interval.h"

namespace slipway::scenarios {

// A quantity of the scenario beyond all fitted runs: tensor 8, where these had 1 to 4.
// Or a choice that none of them made: recompute full, where these had none.
struct OutsideFit {
  std::string what;
  double here = 0, least = 0, most = 0;
  std::string chosen;               // empty: a quantity
  std::vector<std::string> fitted;  // the choices of the fitted runs
};
// "tensor 8 (fitted: 1)", "recompute full (fitted: none, selective)"
std::string describe(const OutsideFit& outside);

// Widens the ranges of a trainer's runs on a machine by a run of this step.
void add_run(const Step& step, const std::string& trainer, const std::string& machine, FittedOf of,
             std::vector<FittedRuns>& seen);

// The list for the trainer's runs on this machine; of times where there is none, for all runs on it, else for all.
// The runs of `slipway calibrate --runs` are among them, with the constants that it wrote. Empty with a trainer of a
// file: only the user knows what its facts fit.
std::vector<OutsideFit> outside_fit(const Scenario& scenario, const std::string& machine, FittedOf of);

// Slices of a sequence (TeraPipe) with fewer tokens than any pass of a published run on this machine, or on any machine
// where this one has none. Kernel times for so few tokens are extrapolated.
std::optional<OutsideFit> short_slices(const Scenario& scenario, const std::string& machine);

// The basis of a prediction's times and memory, and its limits.
//
//   machines with measured kernels ──► the trainer's facts (generic's where none is named) and fitted constants;
//                                      settings outside its published runs on these machines, or that there is no such run
//   other profiles of a file ────────► that file's values, and its origin where it states one
//   a block table ───────────────────► blocks take its times, on any machine
//
// simulate, plan, study, goodput, growth and memory print it. Guarded by tests/scenarios/basis_test.cpp.

struct Basis {
  std::string trainer;                    // whose facts price the step; empty: a profile's shares of peak do
  bool is_named = false;                  // the scenario names it; else generic is meant
  std::string not_seen;                   // machines on which none of the fitted runs is the trainer's
  std::string blocks;                     // "NAME (SOURCE)" of the table that times the blocks; empty: none
  std::vector<std::string> own_profiles;  // "FILE: SOURCE, DATE" of profiles that are not built in
  std::vector<std::string> fitted_here;   // trainers with published runs on these machines; only where none is named
  std::vector<OutsideFit> outside;        // settings outside the runs that it is compared with
  std::string compared;                   // which: "that nanotron was fitted to", "published on h100-80gb"
  std::optional<OutsideFit> slices;       // shorter than in any published run
  std::string memory_trainer;             // its memory constants are used; empty: the book's
  std::vector<OutsideFit> memory_outside;
};
Basis basis_of(const Scenario& scenario);
Basis without_memory(Basis basis);  // the basis of times only

// The interval of a step that takes `step_s`, widened by the settings outside its basis.
std::optional<StepInterval> interval_of(const PreparedStep& prepared, double step_s);

// The paragraph under the answer; empty without a warning. A setting outside the fits of both times and memory is
// printed once.
std::string basis_text(const Basis& basis);
std::string memory_basis_text(const Basis& basis);  // for memory only
// For many points, or rows of a table (`noun`): each warning once, with the number of points that it holds for.
std::string basis_text(const std::vector<Basis>& points, const char* noun);
// Such a paragraph as the end of a text: without the empty line after it, or with one before it.
std::string without_empty_line(const std::string& paragraph);
std::string empty_line_first(const std::string& paragraph);

// For the descriptions of answers that rest on times, and on times and memory (scenarios/predict/description.h).
const Description<Basis>& time_basis_keys();
const Description<Basis>& basis_keys();

}  // namespace slipway::scenarios
