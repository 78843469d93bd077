// Runs, published or of the user's, that one model of all trainers and machines is fitted to (models/fit/pooled_fit.h),
// and predicts.
//
//   rows ──► PricedRun each ──► fit(which) ──► PooledConstants ──► predict(others)
//
// Guarded by tests/scenarios/pooled_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/fit/pooled_fit.h"
#include "scenarios/laboratory/tables/priced_run.h"
#include "scenarios/laboratory/tables/table.h"

namespace slipway::scenarios {

// Checksum of a table's scored rows, as a fit reads them: scenarios and seconds, not bytes of memory or remarks. Where it
// changes, constants that were fitted to the table are stale.
std::string checksum_of_scored(const PublishedTable& table);

class PooledRuns {
 public:
  struct NotPriced {
    const PublishedRow* row;
    std::string why;
  };

  // The rows must outlive this. Those that cannot be priced are left out and named.
  explicit PooledRuns(const std::vector<const PublishedRow*>& rows);

  std::size_t size() const { return runs_.size(); }
  const PooledRow& row(std::size_t i) const { return rows_[i]; }
  const PublishedRow& published(std::size_t i) const { return *published_[i]; }
  const std::vector<NotPriced>& not_priced() const { return not_priced_; }
  std::vector<std::size_t> all() const;
  // Those whose measured time takes part (rules of published_row.h).
  std::vector<std::size_t> timed() const;

  // To timed runs.
  PooledConstants fit(const std::vector<std::size_t>& which, const PooledOptions& options);
  // To timed runs, beside what is known (add_runs of pooled_fit.h).
  PooledConstants add(const std::vector<std::size_t>& which, const PooledConstants& known, std::optional<double> noise);
  // Paths of these runs' replays, for fits that make none.
  void replay(const std::vector<std::size_t>& which, const PooledConstants& pooled);
  // Replays of these runs, in seconds by run; also the spread of each from its constants, where not null. Paths of fits
  // stay.
  void predict(const std::vector<std::size_t>& which, const PooledConstants& pooled, std::vector<double>& seconds,
               std::vector<double>* spreads) const;

 private:
  std::vector<PooledRow> rows_of(const std::vector<std::size_t>& which) const;
  // `which` must outlive it.
  PooledPrices prices_of(const std::vector<std::size_t>& which);
  std::vector<PricedRun> runs_;
  std::vector<PooledRow> rows_;
  std::vector<const PublishedRow*> published_;
  std::vector<NotPriced> not_priced_;
};

// Ranges of the rows that a fit of times, and one of memory, may read (models/fit/fitted_runs.h).
std::vector<FittedRuns> fitted_runs(const std::vector<PublishedRow>& rows);

}  // namespace slipway::scenarios
