// A validation as a report and as JSON.
//
//   hagemann-2023 (Hagemann et al. 2023, arXiv 2311.05610): 547 rows, 222 scored
//                          n   MAPE  median  bias  rank  regret  of 3
//   as built in          222  4.1 %   2.9 %  ...
//   left out by layout   222  ...
//
// Guarded by tests/scenarios/validate_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/laboratory/validate/validation.h"
#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

// Scores as built in and left out, per group; worst rows; regret per table; memory verdicts; and rows without a price,
// with reasons.
std::string report_text(const Validation& validation);

// One object: the scores of all rows as built in; the same under "groups", "tables" and "left_out".
std::string json_text(const std::vector<Validation>& validations);

// The keys of its --json.
std::vector<AnswerKeys> validate_answers();

}  // namespace slipway::scenarios
