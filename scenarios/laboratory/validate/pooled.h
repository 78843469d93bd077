// Published tables predicted by one model of all trainers and machines (models/fit/pooled_fit.h), and what a stranger
// should expect of it.
//
//   book        nothing fitted: kernels as measured, facts of trainers, book values
//   in sample   fitted to all rows
//   layouts     fitted without a fifth of each table's layouts
//   groups      without one of the table's widths (hidden), numbers of GPUs, tensor degrees: the mean of the three
//   paper       without any row of the trainer: for a trainer and a cluster that no run has shown
//   after       the same with 1, 3 and 10 of the table's runs, as one's own: its other runs
//   corrected   layouts and groups with a residual layer per table, which no other number has (residual_scores.h)
//   choice      the layout chosen by paper, where there are several of one model on as many GPUs
//
// Guarded by tests/scenarios/pooled_test.cpp.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/laboratory/tables/table.h"
#include "scenarios/laboratory/validate/pooled_scores.h"
#include "scenarios/language/load_constants.h"
#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

inline constexpr std::array<std::size_t, 3> runs_of_own{1, 3, 10};

// The rows of one trainer on one machine.
struct PooledTable {
  std::string trainer, machine;
  int rows = 0;
  PooledScore paper;
  std::array<PooledScore, runs_of_own.size()> after;
  PooledChoice choice;
  PooledError book, in_sample;
  PooledScore layouts, groups;
  PooledScore layouts_corrected, groups_corrected;  // with the residual layer of the table (residual_scores.h)
};

struct PooledConstant {
  std::string name, unit, meaning, source, trainer, machine;
  double book = 0, value = 0;        // of a deviation: factors
  double spread = 0, deviation = 0;  // of the logarithm: prior, and after the fit
  double from_book = 0;              // ln(value / book) / spread
};

struct PooledRun {
  std::string trainer, machine, words;
  double measured_s = 0, book_s = 0, in_sample_s = 0, layouts_s = 0, layouts_corrected_s = 0, paper_s = 0, low_s = 0,
         high_s = 0;
};

// The contribution of a constant: the error of all tables when it has no effect and nothing is fitted again.
struct PooledEffect {
  // The results of one table.
  struct Table {
    std::string trainer, machine;
    PooledError without;
  };
  std::string name, meaning;
  PooledError without;  // of the in-sample prediction, mean over tables
  std::vector<Table> tables;
};

struct PooledValidation {
  std::vector<PooledTable> tables;
  PooledTable mean;    // over tables
  PooledTable larger;  // over those that have all of `after`
  // Percent of all runs within the 90 % interval: nothing of yours, after 3 runs.
  double covered = 0, covered_after_3 = 0;
  double effective = 0;                    // constants: Σ 1 − posterior variance / prior variance
  std::vector<PooledConstant> constants;   // shared ones, then deviations
  std::vector<PooledEffect> effects;       // the largest first
  PooledConstants fitted;                  // to all rows
  std::vector<FittedTable> fitted_tables;  // of which tables
  std::vector<PooledRun> runs;
  std::vector<std::string> not_priced;  // "file:line: reason"
};

// `progress`: what is being done, and the share of the fits that are done. Deterministic.
PooledValidation pooled_validation(const std::vector<PublishedTable>& tables,
                                   const std::function<void(const std::string& what, double share)>& progress);

std::vector<AnswerKeys> pooled_answers();
std::string pooled_text(const PooledValidation& validation);
std::string pooled_json(const PooledValidation& validation);
std::string pooled_rows_csv(const PooledValidation& validation);

}  // namespace slipway::scenarios
