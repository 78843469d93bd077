// The constants of a step (models/machine/step_constants.h) as they were fitted to all trainers and machines, and back.
//
//   noise: {run: 0.085, freedom: 5}                       standard deviation of a run, and how sure it is (default 5)
//   tables:                                               published runs that it was fitted to
//     - {file: t.csv, runs: 22, checksum: "00ff..."}                          of the rows (tables/pooled_runs.h)
//   fitted_runs:                                          what the runs were like (models/fit/fitted_runs.h)
//     - {trainer: t, machine: h100-80gb, of: times, ranges: {tensor: [1, 8]}, choices: {recompute: [none]}}
//   coordinates:                                          factors over the book
//     - {constant: gemm, factor: 0.97}                                        shared by all
//     - {constant: gemm, machine: h100-80gb, factor: 1.02}                    of a machine, a trainer, or both
//   covariance: ["0.31", "0.01 0.93", ...]                of their logarithms over their prior spreads, lower triangle
//
// models/machine/fitted_constants.yaml is the built-in set; cluster.constants names another, as `slipway calibrate
// --runs` writes it. Guarded by tests/scenarios/load_constants_test.cpp: what is written reads back.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/fit/pooled_fit.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {

// Lives as long as the program.
const PooledConstants& built_in_constants();

// The runs of one table that constants were fitted to.
struct FittedTable {
  std::string file;
  int runs = 0;
  std::string checksum;
  bool operator==(const FittedTable&) const = default;
};
// Those of the built-in set.
const std::vector<FittedTable>& tables_of_built_in_constants();
// Those that a file of constants names. Empty after an error, and where it names none.
std::vector<FittedTable> tables_from_yaml(const std::string& text, const std::string& file, Defects& defects);

// Empty after an error.
std::optional<PooledConstants> constants_from_yaml(const std::string& text, const std::string& file, Defects& defects);
// The path of a file that constants_to_yaml wrote. Empty after an error.
std::optional<PooledConstants> load_constants(const std::string& path, const Reference& from, Defects& defects);
// The section of that name.
std::string fitted_runs_to_yaml(const std::vector<FittedRuns>& seen);
// A file that reads back as the same constants. `heading`: comment lines without "# ".
std::string constants_to_yaml(const PooledConstants& constants, const std::string& heading);
std::string constants_to_yaml(const PooledConstants& constants, const std::string& heading,
                              const std::vector<FittedTable>& tables);

}  // namespace slipway::scenarios
