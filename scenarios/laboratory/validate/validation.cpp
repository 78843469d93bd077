#include "scenarios/laboratory/validate/validation.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "models/trace/statistics.h"
#include "scenarios/laboratory/tables/memory_refit.h"
#include "scenarios/laboratory/tables/pooled_runs.h"
#include "schedules/graph/parallel.h"

namespace slipway::scenarios {
namespace {

constexpr std::size_t replay_effort = 1'000'000;  // worth a thread

RowResult priced(const PublishedRow& row) {
  RowResult result{&row, exclusion_of(row), 0, price(row), {}, {}};
  if (result.price.step_s > 0) result.peak_flops = peak_flops_of(row);
  return result;
}

bool scored(const RowResult& result) { return result.exclusion == Exclusion::none; }

// `most`: the number of parts, where the split does not define it.
std::vector<int> parts_of(const std::vector<const PublishedRow*>& rows, Left way, int most) {
  std::vector<std::string> keys;
  for (const PublishedRow* row : rows)
    keys.push_back(way == Left::layout ? layout_key(*row) : way == Left::group ? row->group : row->choice);
  constexpr int layout_folds = 5;
  return folds_of(keys, way == Left::layout ? layout_folds : most);
}

// Candidates of a table's recommendation: all its layouts, also those that ran out of memory.
bool choosable(const RowResult& result) {
  return scored(result) ||
         (result.row->status == RowStatus::out_of_memory && !result.row->excluded.contains(Exclusion::after_pp_fix));
}

// Constants fitted to the published runs of all other trainers. The fit is slow, so the result is kept.
const PooledConstants& known_without(const std::string& trainer) {
  static std::map<std::string, PooledConstants> known;
  if (const auto found = known.find(trainer); found != known.end()) return found->second;
  std::vector<const PublishedRow*> rows;
  for (const PublishedRow& row : published_rows())
    if (row.trainer != trainer && exclusion_of(row) == Exclusion::none) rows.push_back(&row);
  PooledRuns runs(rows);
  return known[trainer] = runs.fit(runs.all(), {});
}

// Predicts the rows of one trainer by all ways of leaving out.
void refit(const std::string& trainer, const std::vector<RowResult*>& results) {
  std::vector<const PublishedRow*> rows;
  std::map<const PublishedRow*, RowResult*> result_of;
  for (RowResult* result : results) rows.push_back(result->row), result_of[result->row] = result;
  PooledRuns runs(rows);
  const std::vector<std::size_t> here = runs.all();
  const PooledConstants& prior = known_without(trainer);
  runs.replay(here, prior);
  PooledOptions options;
  options.prior = &prior;
  options.replays = 0;
  std::vector<const PublishedRow*> rows_here;
  for (const std::size_t i : here) rows_here.push_back(&runs.published(i));
  for (const auto& [way, name] : left_names) {
    constexpr int folds = 10;  // of groups and of choices: a fit takes a second
    const std::vector<int> parts = parts_of(rows_here, way, folds);
    for (const int part : std::set<int>(parts.begin(), parts.end())) {
      std::vector<std::size_t> kept, out;
      for (std::size_t i = 0; i < here.size(); ++i) {
        if (parts[i] == part)
          out.push_back(here[i]);
        else if (exclusion_of(*rows_here[i]) == Exclusion::none)
          kept.push_back(here[i]);
      }
      std::vector<double> seconds(runs.size());
      runs.predict(out, kept.empty() ? prior : runs.fit(kept, options), seconds, nullptr);
      for (const std::size_t i : out)
        result_of[&runs.published(i)]->left_out_s[static_cast<std::size_t>(way)] = seconds[i];
    }
  }
}

TimePair time_pair(const RowResult& result, std::optional<Left> way) {
  return {predicted_seconds(result, way), result.row->step_s};
}

void refit_memory(std::vector<RowResult*>& results) {
  std::vector<const PublishedRow*> rows;
  for (const RowResult* result : results) rows.push_back(result->row);
  const MemoryRefit fit(rows, published_rows());
  for (const auto& [way, name] : left_names) {
    const auto prices = fit.left_out(parts_of(rows, way, static_cast<int>(rows.size())));
    for (std::size_t i = 0; i < results.size(); ++i)
      results[i]->left_out_memory[static_cast<std::size_t>(way)] = prices[i];
  }
}

void score_times(const std::vector<const RowResult*>& rows, std::optional<Left> way, ScoreSet& set) {
  std::vector<TimePair> pairs;
  std::vector<double> predicted, measured;
  for (const RowResult* result : rows) {
    if (!scored(*result)) {
      ++set.excluded[name_of(result->exclusion)];
      continue;
    }
    const TimePair pair = time_pair(*result, way);
    pairs.push_back(pair);
    if (!(pair.predicted > 0)) continue;
    predicted.push_back(mfu_of(*result->row, pair.predicted, result->peak_flops));
    measured.push_back(mfu_of(*result->row, pair.measured, result->peak_flops));
  }
  set.time = time_score(pairs);
  set.priced = set.time.priced;
  set.unpriced = set.time.unpriced;
  set.rank = rank_correlation(predicted, measured);
}

void score_memory(const std::vector<const RowResult*>& rows, std::optional<Left> way, ScoreSet& set) {
  std::vector<MemoryPair> plain, cautious;
  std::vector<TimePair> allocated, reserved;
  for (const RowResult* result : rows) {
    const bool fitted = result->row->status == RowStatus::ok;
    if (!fitted && result->row->status != RowStatus::out_of_memory) continue;
    if (result->row->printed && result->row->excluded.contains(Exclusion::superseded))
      continue;  // the newest row of a case counts
    const std::optional<MemoryPrice>& memory = predicted_memory(*result, way);
    if (!memory) {
      ++set.memory_unpriced;
      continue;
    }
    if (result->row->allocated_bytes > 0) allocated.push_back({memory->static_bytes, result->row->allocated_bytes});
    if (result->row->reserved_bytes > 0) reserved.push_back({memory->first_bytes, result->row->reserved_bytes});
    plain.push_back({memory->fits, fitted});
    cautious.push_back({memory->fits_cautious, fitted});
  }
  set.oom = confusion(plain);
  set.oom_cautious = confusion(cautious);
  set.allocated = time_score(allocated);
  set.reserved = time_score(reserved);
}

void score_regret(const std::vector<const RowResult*>& rows, std::optional<Left> way, ScoreSet& set) {
  std::map<std::string, std::vector<TableLayout>> tables;
  for (const RowResult* result : rows) {
    if (!choosable(*result) || !(result->peak_flops > 0)) continue;
    const double seconds = predicted_seconds(*result, way);
    const bool ran = result->row->status == RowStatus::ok;
    tables[result->row->table].push_back(
        {seconds > 0 ? mfu_of(*result->row, seconds, result->peak_flops) : 0,
         !predicted_memory(*result, way) || predicted_memory(*result, way)->fits_cautious,
         ran ? mfu_of(*result->row, result->row->step_s, result->peak_flops) : 0});
  }
  for (const auto& [name, candidates] : tables) {
    const auto measured =
        std::count_if(candidates.begin(), candidates.end(), [](const TableLayout& c) { return c.measured_mfu > 0; });
    if (measured >= 2) set.regrets.push_back({name, regret_of(candidates)});
  }
}

std::vector<double> firsts(const ScoreSet& set) {
  std::vector<double> values;
  for (const NamedRegret& regret : set.regrets) values.push_back(regret.regret.first);
  return values;
}

double mean(const std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

Validation validate(const PublishedTable& table, bool refit_too) {
  Validation validation{&table, {}, refit_too};
  validation.rows.resize(table.rows.size());
  schedules::each_in_parallel(table.rows.size(), replay_effort,
                              [&](std::size_t i) { validation.rows[i] = priced(table.rows[i]); });
  if (!refit_too) return validation;
  std::map<std::string, std::vector<RowResult*>> sets;
  for (RowResult& result : validation.rows)
    if (choosable(result) && result.price.step_s > 0) sets[result.row->trainer].push_back(&result);
  for (const auto& [trainer, results] : sets) refit(trainer, results);
  std::map<std::string, std::vector<RowResult*>> memories;
  for (RowResult& result : validation.rows) {
    if (has_memory_result(*result.row) && result.price.memory)
      memories[result.row->trainer].push_back(&result);
    else
      result.left_out_memory.fill(result.price.memory);  // no fit has seen it
  }
  for (auto& [key, results] : memories) refit_memory(results);
  return validation;
}

ScoreSet score(const std::vector<const RowResult*>& rows, std::optional<Left> way) {
  ScoreSet set;
  set.rows = static_cast<int>(rows.size());
  score_times(rows, way, set);
  score_memory(rows, way, set);
  // A choice is scored with a fit that has seen nothing of its table.
  score_regret(rows, way ? std::optional(Left::choice) : std::nullopt, set);
  return set;
}

double mean_regret(const ScoreSet& set) { return mean(firsts(set)); }

double median_regret(const ScoreSet& set) {
  return set.regrets.empty() ? std::numeric_limits<double>::quiet_NaN() : median(firsts(set));
}

double mean_regret_of_three(const ScoreSet& set) {
  std::vector<double> values;
  for (const NamedRegret& regret : set.regrets) values.push_back(regret.regret.best_of_three);
  return mean(values);
}

const std::optional<MemoryPrice>& predicted_memory(const RowResult& result, std::optional<Left> way) {
  return way ? result.left_out_memory[static_cast<std::size_t>(*way)] : result.price.memory;
}

double predicted_seconds(const RowResult& result, std::optional<Left> way) {
  return way ? result.left_out_s[static_cast<std::size_t>(*way)] : result.price.step_s;
}

}  // namespace slipway::scenarios
