// Scores of predictions by pooled constants: errors, intervals, what a user's few runs add, and the layouts that would
// be chosen.
//
//   a table's runs ──draws_of──► n of different layouts ──fit to them, beside what is known──► the table's other runs
//
// Guarded by tests/scenarios/pooled_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/laboratory/tables/pooled_runs.h"

namespace slipway::scenarios {

// In percent of step times; NaN without rows.
struct PooledError {
  double mean = 0, median = 0, bias = 0;
};

struct PooledScore {
  PooledError error;
  double covered = 0;     // percent of the rows within the 90 % interval
  double half_width = 0;  // percent, median: (high - low) / (2 · prediction)
};

// `seconds`, `widths` (half of the interval, of the logarithm): by run. Runs that are NaN take no part.
PooledError error_of(const PooledRuns& runs, const std::vector<std::size_t>& rows, const std::vector<double>& seconds);
PooledScore score_of(const PooledRuns& runs, const std::vector<std::size_t>& rows, const std::vector<double>& seconds,
                     const std::vector<double>& widths);
// The means of those that are there.
PooledError mean_of(const std::vector<PooledError>& errors);
PooledScore mean_of(const std::vector<PooledScore>& scores);
// Percent of all runs within their 90 % interval, where tables of so many `rows` each have these scores: a large table
// counts as its runs do. NaN without any.
double covered_of_all_runs(const std::vector<PooledScore>& scores, const std::vector<int>& rows);

// n runs of different layouts, several times over, from a fixed seed. None where no other run of the table would be left.
std::vector<std::vector<std::size_t>> draws_of(const PooledRuns& runs, const std::vector<std::size_t>& table,
                                               std::size_t n);
// The score of the table's other runs after n of its runs were added, the mean over draws. `known`: fitted without the
// table.
PooledScore after_runs_of_own(const PooledRuns& runs, const std::vector<std::size_t>& table,
                              const PooledConstants& known, std::size_t n);

// A layout that may be chosen. One that ran out of memory was measured as such.
struct PooledAlternative {
  const PublishedRow* row = nullptr;
  double seconds = 0;
  bool fits = true;  // with 99 %
};

// The choice of a layout in a table: the fastest one that is predicted to fit.
struct PooledChoice {
  int tables = 0;               // with two measured layouts and more
  int none = 0, ran_out = 0;    // of these: nothing is predicted to fit; the choice ran out of memory
  double mean = 0, median = 0;  // percent, regret (scores.h), 100 for both of these; NaN without tables
};
PooledChoice choice_among(const std::vector<PooledAlternative>& alternatives);

}  // namespace slipway::scenarios
