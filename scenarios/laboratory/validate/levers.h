// The effect of one lever: two rows of a study that differ in one key of a scenario, measured and predicted.
//
//   row A ─┐  same study, one key differs          measured:  seconds of B / seconds of A
//   row B ─┘  (recompute_modules, dispatcher, ...)  predicted: the same of the two predictions
//
// The pairs follow from the table alone; nothing predicted decides which there are.
// Guarded by tests/scenarios/studies_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/laboratory/validate/validation.h"

namespace slipway::scenarios {

struct LeverPair {
  const RowResult *from = nullptr, *to = nullptr;
  std::string key, before, after;  // "none": the key is not there
  double measured() const { return to->row->step_s / from->row->step_s; }
  // 0: one of the two has no prediction.
  double predicted() const;
};
// All of them, in the order of the table: of rows that ended, with times.
std::vector<LeverPair> lever_pairs(const std::vector<RowResult>& rows);

struct LeverScore {
  int pairs = 0, priced = 0, signs = 0;
  double middle_share = 0;  // median of predicted gain / measured gain; a gain is 1 - ratio. NaN without pairs
};
LeverScore score_of(const std::vector<LeverPair>& pairs);

// Empty without pairs.
std::string levers_text(const Validation& validation);

}  // namespace slipway::scenarios
