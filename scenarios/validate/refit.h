// The constants of one trainer on one machine, fitted again without some of the rows.
//
//   rows ─┬─ part 0 ─┐      for each part: fit on the scored rows of all other parts, predict this part
//         ├─ part 1 ─┤
//         └─ part 2 ─┘      so that no row is predicted by constants that have seen it
//
// Every fit starts from the book values (prior) of the stack profile. Its fitted values have seen all rows.
// Guarded by tests/scenarios/validation_test.cpp.
#pragma once

#include <vector>

#include "models/fit/prior_fit.h"
#include "models/trainers/stack.h"
#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

struct RefitRow {
  const PublishedRow* row = nullptr;
  bool trains = false;  // measured and scored; others are only predicted
};

class Refit {
 public:
  // `rows`: of one trainer on one machine, priceable, not empty. Throws std::invalid_argument as price() does.
  explicit Refit(const std::vector<RefitRow>& rows);

  // Seconds of each row, predicted by a fit without the rows of its part. 0 where no other part has rows to train on.
  std::vector<double> left_out(const std::vector<int>& parts) const;
  // The fit on all training rows, which gives a stack profile its values.
  PriorFit all() const;
  const StackTime& time() const { return *time_; }
  const TimeModel& model() const { return *model_; }

 private:
  PriorFit fit_on(const std::vector<std::size_t>& training) const;
  const TimeModel* model_;
  const StackTime* time_;
  std::vector<StepWork> works_;
  std::vector<double> measured_;  // 0: does not train
  std::vector<PriorParameter> parameters_;
};

}  // namespace slipway::scenarios
