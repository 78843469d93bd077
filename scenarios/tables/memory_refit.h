// The memory constants of one trainer on one machine, fitted again without some of the rows (as refit.h does for
// times). It fits to verdicts of runs that fitted or ran out of memory, and to measured peaks. Guarded by
// tests/scenarios/memory_refit_test.cpp: the bars of the published tables, and that a row left out does not move its
// own prediction.
#pragma once

#include <optional>
#include <vector>

#include "models/fit/memory_fit.h"
#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

class MemoryRefit {
 public:
  // `rows`: of one trainer on one machine, each of which fitted or ran out of memory; not empty. Throws
  // std::invalid_argument as price() does, or when the trainer has no memory constants for the machine.
  explicit MemoryRefit(const std::vector<const PublishedRow*>& rows);

  // The prediction of each row by a fit without the rows of its part; unset where no other part has rows.
  std::vector<std::optional<MemoryPrice>> left_out(const std::vector<int>& parts) const;
  // The fit on all rows, which gives a stack profile its values.
  MemoryFit all() const { return fit_memory(runs_, *memory_); }
  const StackMemory& memory() const { return *memory_; }
  const std::vector<MemoryRun>& runs() const { return runs_; }

 private:
  const StackMemory* memory_;
  std::vector<MemoryRun> runs_;
};

// True for a row that fitted or ran out of memory.
bool has_memory_result(const PublishedRow& row);
bool has_memory_constants(const PublishedRow& row);

}  // namespace slipway::scenarios
