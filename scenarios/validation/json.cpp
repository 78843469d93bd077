#include <cmath>
#include <nlohmann/json.hpp>

#include "scenarios/json_summary.h"
#include "scenarios/validation/report.h"

namespace slipway {
namespace {

using nlohmann::json;
using Rows = std::vector<const RowResult*>;

// NaN is null in JSON.
json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json object(const Confusion& c) {
  return {{"true_fit", c.true_fit}, {"true_oom", c.true_oom}, {"false_fit", c.false_fit}, {"false_oom", c.false_oom}};
}

json bytes_object(const TimeScore& score) {
  return {{"rows", score.priced},
          {"mape", number(score.mape)},
          {"median_ape", number(score.median_ape)},
          {"bias", number(score.bias)}};
}

json excluded(const ScoreSet& set) {
  json counts = json::object();
  for (const Exclusion rule : {Exclusion::status, Exclusion::after_pp_fix, Exclusion::all_reduce_test}) {
    const auto found = set.excluded.find(name_of(rule));
    counts[name_of(rule)] = found == set.excluded.end() ? 0 : found->second;
  }
  return counts;
}

json regrets(const ScoreSet& set) {
  json list = json::array();
  for (const NamedRegret& regret : set.regrets)
    list.push_back({{"table", regret.table},
                    {"regret_mfu", regret.regret.first},
                    {"regret_mfu_of_3", regret.regret.best_of_three},
                    {"ran_out", regret.regret.first_ran_out}});
  return list;
}

// The keys that every set of rows has: the whole, each group, each table, each way of leaving out.
json object(const ScoreSet& set) {
  return {{"rows", set.rows},
          {"priced", set.priced},
          {"unpriced", set.unpriced},
          {"borrowed", set.borrowed},
          {"excluded", excluded(set)},
          {"mape", number(set.time.mape)},
          {"median_ape", number(set.time.median_ape)},
          {"bias", number(set.time.bias)},
          {"rank_correlation", number(set.rank)},
          {"regret_mfu", number(mean_regret(set))},
          {"regret_mfu_median", number(median_regret(set))},
          {"regret_mfu_of_3", number(mean_regret_of_three(set))},
          {"regret_tables", regrets(set)},
          {"oom", object(set.oom)},
          {"oom_cautious", object(set.oom_cautious)},
          {"allocated", bytes_object(set.allocated)},
          {"reserved", bytes_object(set.reserved)},
          {"memory_unpriced", set.memory_unpriced}};
}

json with_groups(const Rows& rows, std::optional<Left> way) {
  json result = object(score(rows, way));
  std::map<std::string, Rows> groups;
  for (const RowResult* row : rows) groups[row->row->group].push_back(row);
  result["groups"] = json::object();
  for (const auto& [name, members] : groups) result["groups"][name] = object(score(members, way));
  std::map<std::string, Rows> machines;
  for (const RowResult* row : rows) machines[row->row->machine].push_back(row);
  result["machines"] = json::object();
  for (const auto& [name, members] : machines) result["machines"][name] = object(score(members, way));
  return result;
}

json assumed_rows(const Validation& validation) {
  json list = json::array();
  for (const RowResult& result : validation.rows)
    if (result.exclusion == Exclusion::none && !result.row->assumed.empty())
      list.push_back({{"file", validation.table->file}, {"line", result.row->line}, {"assumed", result.row->assumed}});
  return list;
}

json unpriced_rows(const Validation& validation) {
  json list = json::array();
  for (const RowResult& result : validation.rows)
    if (result.exclusion == Exclusion::none && !(result.price.step_s > 0))
      list.push_back({{"file", validation.table->file}, {"line", result.row->line}, {"reason", result.price.cannot}});
  return list;
}

json left_out(const Rows& rows) {
  json result = json::object();
  for (const Left way : {Left::layout, Left::group, Left::choice}) result[name_of(way)] = with_groups(rows, way);
  return result;
}

}  // namespace

std::string json_text(const std::vector<Validation>& validations) {
  Rows all;
  json tables = json::object(), unpriced = json::array(), assumed = json::array();
  bool refitted = !validations.empty();
  for (const Validation& validation : validations) {
    Rows rows;
    for (const RowResult& row : validation.rows) rows.push_back(&row);
    all.insert(all.end(), rows.begin(), rows.end());
    json table = with_groups(rows, std::nullopt);
    if (validation.refitted) table["left_out"] = left_out(rows);
    tables[validation.table->file] = std::move(table);
    for (json& row : unpriced_rows(validation)) unpriced.push_back(std::move(row));
    for (json& row : assumed_rows(validation)) assumed.push_back(std::move(row));
    refitted = refitted && validation.refitted;
  }
  JsonSummary summary(validate_json_keys());
  const json whole = with_groups(all, std::nullopt);
  for (const auto& [key, value] : whole.items()) summary.set(key, value);
  summary.set("priced_by", validations.empty() ? "formula" : validations.front().priced_by);
  summary.set("unpriced_rows", unpriced);
  summary.set("assumed_rows", assumed);
  summary.set("tables", tables);
  if (refitted) summary.set("left_out", left_out(all));
  return summary.text();
}

}  // namespace slipway
