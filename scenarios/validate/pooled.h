// Published tables predicted by one model of all trainers and machines (models/fit/pooled_fit.h), and what a stranger
// should expect of it.
//
//   book        nothing fitted: kernels as measured, facts of trainers, book values
//   in sample   fitted to all rows
//   layouts     fitted without a fifth of each table's layouts
//   groups      without one of the table's widths (hidden), numbers of GPUs, tensor degrees: the mean of the three
//   paper       without any row of the trainer: what a trainer and a cluster have that nobody has seen
//
// Guarded by tests/scenarios/pooled_test.cpp.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "models/fit/pooled_fit.h"
#include "scenarios/answers/answer_keys.h"
#include "scenarios/tables/formats.h"

namespace slipway::scenarios {

struct PooledError {
  double mean = 0, median = 0, bias = 0;  // percent, of step times; NaN without rows
};

// The rows of one trainer on one machine.
struct PooledTable {
  std::string trainer, machine;
  int rows = 0;
  PooledError book, in_sample, layouts, groups, paper;
  double covered = 0;     // percent of the rows within the 90 % interval, without the paper
  double half_width = 0;  // percent, median: (high - low) / (2 · prediction)
};

struct PooledConstant {
  std::string name, unit, meaning, source, trainer, machine;
  double book = 0, value = 0;        // of a deviation: factors
  double spread = 0, deviation = 0;  // of the logarithm: prior, and after the fit
  double from_book = 0;              // ln(value / book) / spread
};

struct PooledRun {
  std::string trainer, machine, words;
  double measured_s = 0, book_s = 0, in_sample_s = 0, layouts_s = 0, paper_s = 0, low_s = 0, high_s = 0;
};

struct PooledValidation {
  std::vector<PooledTable> tables;
  PooledTable mean;                       // over tables
  double effective = 0;                   // constants: Σ 1 − posterior variance / prior variance
  std::vector<PooledConstant> constants;  // shared ones, then deviations
  std::vector<PooledRun> runs;
  std::vector<std::string> not_priced;  // "file:line: reason"
};

// `progress`: what is being done. Deterministic.
PooledValidation pooled_validation(const std::vector<PublishedTable>& tables,
                                   const std::function<void(const std::string&)>& progress);

std::vector<AnswerKeys> pooled_answers();
std::string pooled_text(const PooledValidation& validation);
std::string pooled_json(const PooledValidation& validation);
std::string pooled_rows_csv(const PooledValidation& validation);

}  // namespace slipway::scenarios
