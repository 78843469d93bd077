#include "scenarios/laboratory/tables/pooled_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "exec/run/checksum.h"
#include "scenarios/files/csv.h"
#include "scenarios/laboratory/tables/memory_refit.h"
#include "scenarios/predict/basis.h"
#include "schedules/graph/parallel.h"

namespace slipway::scenarios {
namespace {

constexpr std::size_t effort = 1'000'000;   // a replay is worth a thread
constexpr std::size_t path_effort = 4'000;  // ten paths are not

// A table of many rows says the same many times over: rows of one table err alike.
constexpr double rows_that_count = 60;

ConstantsOn always(const StepConstants& constants) {
  return [constants](const Machine&) { return constants; };
}

}  // namespace

std::string checksum_of_scored(const PublishedTable& table) {
  std::string text;
  for (const PublishedRow& row : table.rows) {
    if (!row.unpriceable.empty() || exclusion_of(row) != Exclusion::none) continue;
    text += csv_line({row.text, fmt::format("{}", row.step_s)});
  }
  return fmt::format("{:016x}", exec::checksum_of(text));
}

PooledRuns::PooledRuns(const std::vector<const PublishedRow*>& rows) {
  for (const PublishedRow* row : rows) {
    try {
      runs_.emplace_back(*row);
    } catch (const std::invalid_argument& error) {
      not_priced_.push_back({row, error.what()});
      continue;
    }
    published_.push_back(row);
    rows_.push_back(runs_.back().row());
  }
}

std::vector<std::size_t> PooledRuns::all() const {
  std::vector<std::size_t> which(size());
  for (std::size_t i = 0; i < which.size(); ++i) which[i] = i;
  return which;
}

std::vector<std::size_t> PooledRuns::timed() const {
  std::vector<std::size_t> which = all();
  std::erase_if(which, [&](std::size_t i) { return exclusion_of(published(i)) != Exclusion::none; });
  return which;
}

std::vector<PooledRow> PooledRuns::rows_of(const std::vector<std::size_t>& which) const {
  std::vector<PooledRow> rows;
  std::map<std::pair<std::string, std::string>, int> sizes;
  for (const std::size_t i : which) rows.push_back(rows_[i]), ++sizes[{rows_[i].trainer, rows_[i].machine}];
  for (PooledRow& row : rows) row.weight = std::min(1.0, rows_that_count / sizes[{row.trainer, row.machine}]);
  return rows;
}

PooledPrices PooledRuns::prices_of(const std::vector<std::size_t>& which) {
  const auto over = [&which](const auto& work) {
    schedules::queued_in_parallel(which.size(), which.size() * path_effort, work);
  };
  PooledPrices prices;
  prices.replay = [this, &which](const auto& constants) {
    schedules::queued_in_parallel(which.size(), effort,
                                  [&](std::size_t i) { runs_[which[i]].replay(always(constants[i])); });
  };
  prices.seconds = [this, &which, over](const auto& constants) {
    std::vector<double> seconds(which.size());
    over([&](std::size_t i) { seconds[i] = runs_[which[i]].seconds(always(constants[i])); });
    return seconds;
  };
  prices.slopes = [this, &which, over](const auto& constants) {
    std::vector<std::vector<double>> slopes(which.size());
    over([&](std::size_t i) { slopes[i] = runs_[which[i]].slopes(always(constants[i]), rows_[which[i]].machine); });
    return slopes;
  };
  return prices;
}

PooledConstants PooledRuns::fit(const std::vector<std::size_t>& which, const PooledOptions& options) {
  return fit_pooled(rows_of(which), prices_of(which), options);
}

PooledConstants PooledRuns::add(const std::vector<std::size_t>& which, const PooledConstants& known,
                                std::optional<double> noise) {
  return add_runs(rows_of(which), prices_of(which), known, noise);
}

void PooledRuns::replay(const std::vector<std::size_t>& which, const PooledConstants& pooled) {
  schedules::queued_in_parallel(which.size(), effort, [&](std::size_t at) {
    const PooledRow& row = rows_[which[at]];
    runs_[which[at]].replay(always(constants_of(pooled, row.trainer, row.machine)));
  });
}

void PooledRuns::predict(const std::vector<std::size_t>& which, const PooledConstants& pooled,
                         std::vector<double>& seconds, std::vector<double>* spreads) const {
  schedules::queued_in_parallel(which.size(), effort, [&](std::size_t at) {
    const std::size_t i = which[at];
    const ConstantsOn constants = always(constants_of(pooled, rows_[i].trainer, rows_[i].machine));
    PricedRun run = runs_[i];
    seconds[i] = run.replay(constants);
    if (spreads == nullptr) return;
    const std::string& machine = rows_[i].machine;
    (*spreads)[i] = spread_of(pooled, rows_[i].trainer, {{machine, run.slopes(constants, machine)}});
  });
}

std::vector<FittedRuns> fitted_runs(const std::vector<PublishedRow>& rows) {
  std::vector<FittedRuns> seen;
  for (const PublishedRow& row : rows)
    if (row.unpriceable.empty() && exclusion_of(row) == Exclusion::none)
      add_run(row.step, row.trainer, row.machine, FittedOf::times, seen);
  for (const PublishedRow& row : rows)
    if (has_memory_result(row)) add_run(row.step, row.trainer, row.machine, FittedOf::memory, seen);
  return seen;
}

}  // namespace slipway::scenarios
