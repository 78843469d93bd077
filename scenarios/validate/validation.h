// Predictions of a published table beside its measurements, with their scores.
//
//   rows ─┬─ priced with the built-in constants ─────────────► as built in    (fitted rows: the constants saw them)
//         ├─ constants refitted without a fifth of the layouts ► by layout     ┐
//         ├─ ... without a whole group (model, sequence, ...) ─► by group      ├ left out: no fit saw the row
//         └─ ... without the table that a layout is chosen from ► by choice    ┘  (regret)
//
// Every scored row is predicted once per column. A refit begins from what the published runs of all other trainers say,
// and adds the table's rows that are scored (rules of published_row.h) and not left out.
// Deterministic: folds come from a fixed seed.
// Guarded by tests/scenarios/validation_test.cpp.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/fit/folds.h"
#include "models/model/names.h"
#include "scenarios/tables/price.h"
#include "scenarios/tables/table.h"
#include "scenarios/validate/scores.h"

namespace slipway::scenarios {

enum class Left : std::uint8_t { layout, group, choice };
inline constexpr std::array left_names{Named{Left::layout, "layout"}, Named{Left::group, "group"},
                                       Named{Left::choice, "choice"}};
constexpr std::size_t left_ways = left_names.size();
constexpr const char* name_of(Left way) { return name_in(left_names, way); }

struct RowResult {
  const PublishedRow* row = nullptr;
  Exclusion exclusion = Exclusion::none;
  double peak_flops = 0;
  RowPrice price;                                                       // as built in
  std::array<double, left_ways> left_out_s{};                           // 0: not priceable, or no refit was asked for
  std::array<std::optional<MemoryPrice>, left_ways> left_out_memory{};  // unset: no such fit
};

struct NamedRegret {
  std::string table;
  Regret regret;
};

struct ScoreSet {
  int rows = 0, priced = 0, unpriced = 0;
  std::map<std::string, int> excluded;  // rule → rows; rows = priced + unpriced + all of these
  TimeScore time;
  double rank = 0;                   // Spearman's ρ of MFU
  std::vector<NamedRegret> regrets;  // tables with at least two measured layouts
  Confusion oom, oom_cautious;
  TimeScore allocated, reserved;  // bytes after a step and at its peak, where the allocator reported them
  int memory_unpriced = 0;        // rows with an own verdict (ok or oom) and without one of ours
};
double mean_regret(const ScoreSet& set);  // NaN without tables
double median_regret(const ScoreSet& set);
double mean_regret_of_three(const ScoreSet& set);

// Rows of one file, priced, and on request refitted with rows left out.
struct Validation {
  const PublishedTable* table = nullptr;
  std::vector<RowResult> rows;
  bool refitted = false;
  std::string priced_by = "replay";  // an engine of graph_prices.h
};
Validation validate(const PublishedTable& table, bool refit);

// Scores of some rows. `way` unset: as built in.
ScoreSet score(const std::vector<const RowResult*>& rows, std::optional<Left> way);
double predicted_seconds(const RowResult& result, std::optional<Left> way);
const std::optional<MemoryPrice>& predicted_memory(const RowResult& result, std::optional<Left> way);

}  // namespace slipway::scenarios
