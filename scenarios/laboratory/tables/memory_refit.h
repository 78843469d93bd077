// The shared memory constants, fitted again to all published runs but some: how well a verdict does on runs that no fit
// has seen. Runs of all other trainers stay in the fit.
//
//   published runs − those left out ──fit_memory──► constants ──► prediction of those left out
//
// Guarded by tests/scenarios/memory_refit_test.cpp: the bars of the published tables, and that a row left out does not
// move its own prediction.
#pragma once

#include <optional>
#include <vector>

#include "models/fit/memory_fit.h"
#include "scenarios/laboratory/tables/published_row.h"

namespace slipway::scenarios {

// True for a row that fitted or ran out of memory.
bool has_memory_result(const PublishedRow& row);

class MemoryRefit {
 public:
  // `rows`: each of which fitted or ran out of memory. `others`: what the fit sees besides; rows of the same trainer and
  // group as one of `rows` are taken for the same runs and not counted twice. Rows that cannot be priced are left out.
  MemoryRefit(const std::vector<const PublishedRow*>& rows, const std::vector<PublishedRow>& others);

  // The prediction of each row by a fit without the rows of its part; unset where it cannot be priced.
  std::vector<std::optional<MemoryPrice>> left_out(const std::vector<int>& parts) const;
  // The fit on all rows, and how many they are.
  PooledMemory all() const;
  std::size_t runs() const;

 private:
  std::vector<std::optional<MemoryRun>> runs_;
  std::vector<MemoryRun> others_;
};

}  // namespace slipway::scenarios
