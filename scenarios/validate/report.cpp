#include "scenarios/validate/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "scenarios/answers/json_summary.h"
#include "scenarios/answers/readable.h"

namespace slipway::scenarios {

namespace {

constexpr Left all_ways[] = {Left::layout, Left::group, Left::choice};

std::vector<const RowResult*> pointers(const std::vector<RowResult>& rows) {
  std::vector<const RowResult*> result;
  for (const RowResult& row : rows) result.push_back(&row);
  return result;
}

std::string percent(double value) { return std::isfinite(value) ? fmt::format("{:.1f} %", value) : "-"; }
std::string signed_percent(double value) { return std::isfinite(value) ? fmt::format("{:+.1f} %", value) : "-"; }

std::vector<std::string> score_line(const std::string& name, const ScoreSet& set) {
  return {name,
          std::to_string(set.priced + set.unpriced),
          percent(set.time.mape),
          percent(set.time.median_ape),
          signed_percent(set.time.bias),
          std::isfinite(set.rank) ? fmt::format("{:.3f}", set.rank) : "-",
          percent(100 * mean_regret(set)),
          percent(100 * median_regret(set)),
          percent(100 * mean_regret_of_three(set))};
}

std::string built_in_name(const Validation& validation) {
  return validation.priced_by == "formula" ? "as built in" : "by " + validation.priced_by;
}

std::string title(const Validation& validation) {
  const ScoreSet set = score(pointers(validation.rows), std::nullopt);
  std::string text = fmt::format("{}: {}\n  {}: {} scored", validation.table->file, validation.table->source,
                                 counted(set.rows, "row"), set.priced + set.unpriced);
  for (const auto& [rule, count] : set.excluded) text += fmt::format(", {} excluded by {}", count, rule);
  return text + "\n\n";
}

std::string scores_text(const Validation& validation) {
  const std::vector<const RowResult*> rows = pointers(validation.rows);
  std::vector<std::vector<std::string>> lines{
      {"step time", "n", "MAPE", "median", "bias", "rank", "regret", "median", "best of 3"}};
  lines.push_back(score_line(built_in_name(validation), score(rows, std::nullopt)));
  if (validation.refitted)
    for (const Left way : all_ways)
      lines.push_back(score_line(fmt::format("left out by {}", name_of(way)), score(rows, way)));
  std::map<std::string, std::vector<const RowResult*>> machines;
  for (const RowResult* row : rows) machines[row->row->machine].push_back(row);
  for (const auto& [machine, members] : machines) {
    if (machines.size() < 2) break;
    lines.push_back(score_line(machine + " " + built_in_name(validation), score(members, std::nullopt)));
    for (const Left way : all_ways)
      if (validation.refitted)
        lines.push_back(score_line(fmt::format("  left out by {}", name_of(way)), score(members, way)));
  }
  return aligned_table(lines, "  ") + '\n';
}

std::map<std::string, std::vector<const RowResult*>> by_group(const Validation& validation) {
  std::map<std::string, std::vector<const RowResult*>> groups;
  for (const RowResult& row : validation.rows) groups[row.row->group].push_back(&row);
  return groups;
}

std::string groups_text(const Validation& validation) {
  const std::optional<Left> way = validation.refitted ? std::optional(Left::group) : std::nullopt;
  std::vector<std::vector<std::string>> lines{
      {way ? "left out group" : "group", "n", "MAPE", "median", "bias", "rank", "regret", "median", "best of 3"}};
  for (const auto& [name, rows] : by_group(validation)) {
    const ScoreSet set = score(rows, way);
    if (set.priced + set.unpriced > 0) lines.push_back(score_line(name, set));
  }
  return aligned_table(lines, "  ") + '\n';
}

double error_of(const RowResult& result, std::optional<Left> way) {
  return predicted_seconds(result, way) / result.row->step_s - 1;
}

std::string worst_text(const Validation& validation) {
  constexpr std::size_t shown = 8;
  const std::optional<Left> way = validation.refitted ? std::optional(Left::layout) : std::nullopt;
  std::vector<const RowResult*> worst;
  for (const RowResult& result : validation.rows)
    if (result.exclusion == Exclusion::none && predicted_seconds(result, way) > 0) worst.push_back(&result);
  const auto size = [&](const RowResult* r) { return std::abs(std::log1p(error_of(*r, way))); };
  std::stable_sort(worst.begin(), worst.end(),
                   [&](const RowResult* a, const RowResult* b) { return size(a) > size(b); });
  worst.resize(std::min(worst.size(), shown));
  const std::string title =
      "worst rows, " + (way ? fmt::format("left out by {}", name_of(*way)) : built_in_name(validation));
  std::vector<std::vector<std::string>> lines{{title, "line", "predicted", "measured", "error"}};
  for (const RowResult* result : worst)
    lines.push_back({in_words(*result->row), std::to_string(result->row->line),
                     readable_seconds(predicted_seconds(*result, way)), readable_seconds(result->row->step_s),
                     signed_percent(100 * error_of(*result, way))});
  return worst.empty() ? "" : aligned_table(lines, "  ") + '\n';
}

std::vector<std::string> verdict_line(const std::string& name, const Confusion& c) {
  return {name,
          std::to_string(c.true_fit),
          std::to_string(c.true_oom),
          std::to_string(c.false_fit),
          std::to_string(c.false_oom),
          percent(100 * c.share_right()),
          percent(100 * c.share_of_safe_oom())};
}

std::string memory_text(const Validation& validation) {
  const std::vector<const RowResult*> rows = pointers(validation.rows);
  const ScoreSet set = score(rows, std::nullopt);
  if (set.oom.rows() == 0) return "";
  std::vector<std::vector<std::string>> lines{
      {"memory verdict", "true fit", "true OOM", "false fit", "false OOM", "right", "OOM of those called safe"}};
  std::vector<std::vector<std::string>> bytes{{"bytes", "n", "after a step: MAPE", "median", "peak: MAPE", "median"}};
  const auto add = [&](const std::string& name, const ScoreSet& each) {
    lines.push_back(verdict_line(name, each.oom));
    lines.push_back(verdict_line("  cautious", each.oom_cautious));
    if (each.reserved.priced > 0)
      bytes.push_back({name, std::to_string(each.reserved.priced), percent(each.allocated.mape),
                       percent(each.allocated.median_ape), percent(each.reserved.mape),
                       percent(each.reserved.median_ape)});
  };
  add("as built in", set);
  if (validation.refitted)
    for (const Left way : all_ways) add(fmt::format("left out by {}", name_of(way)), score(rows, way));
  std::string text = aligned_table(lines, "  ");
  if (set.memory_unpriced > 0) text += fmt::format("  without a verdict: {}\n", counted(set.memory_unpriced, "row"));
  if (bytes.size() > 1) text += '\n' + aligned_table(bytes, "  ");
  return text + '\n';
}

// The tables with the largest regret.
std::string regret_text(const Validation& validation) {
  constexpr std::size_t shown = 8;
  ScoreSet set = score(pointers(validation.rows), validation.refitted ? std::optional(Left::choice) : std::nullopt);
  std::stable_sort(set.regrets.begin(), set.regrets.end(),
                   [](const NamedRegret& a, const NamedRegret& b) { return a.regret.first > b.regret.first; });
  const std::size_t all = set.regrets.size();
  set.regrets.resize(std::min(all, shown));
  std::vector<std::vector<std::string>> lines{{"recommended layout", "regret", "best of 3"}};
  for (const NamedRegret& regret : set.regrets)
    lines.push_back({regret.table, percent(100 * regret.regret.first) + (regret.regret.first_ran_out ? " (OOM)" : ""),
                     percent(100 * regret.regret.best_of_three)});
  if (set.regrets.empty()) return "";
  return aligned_table(lines, "  ") + (all > shown ? fmt::format("  ... of {} tables\n", all) : "") + '\n';
}

// Rows on machines that their trainer was not fitted on, with the machine of the constants used.
std::string borrowed_text(const Validation& validation) {
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const RowResult& result : validation.rows)
    if (result.exclusion == Exclusion::none && !result.price.borrowed_from.empty() && result.price.step_s > 0)
      ++counts[{result.row->trainer + " was never fitted on " + result.row->machine, result.price.borrowed_from}];
  std::string text;
  for (const auto& [what, count] : counts)
    text += fmt::format("  outside the fitted range: {} priced by constants of {}, because {}\n", counted(count, "row"),
                        what.second, what.first);
  return text;
}

std::string lines_text(const std::vector<int>& lines) {
  constexpr std::size_t shown = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), shown); ++i) text += fmt::format(" {}", lines[i]);
  return text + (lines.size() > shown ? " ... (--json names all)\n" : "\n");
}

// Values that a reader assumed because the table lacks them.
std::string assumed_text(const Validation& validation) {
  std::map<std::string, std::vector<int>> what;
  for (const RowResult& result : validation.rows)
    if (result.exclusion == Exclusion::none && !result.row->assumed.empty())
      what[result.row->assumed].push_back(result.row->line);
  std::string text;
  for (const auto& [assumed, lines] : what)
    text += fmt::format("  assumed in {}: {}: line{}", counted(static_cast<std::int64_t>(lines.size()), "row"), assumed,
                        lines_text(lines));
  return text;
}

// Reasons with the lines of their rows: all rows that a score needed and that have no price.
std::string unpriced_text(const Validation& validation) {
  std::map<std::string, std::vector<int>> reasons;
  for (const RowResult& result : validation.rows)
    if (result.exclusion == Exclusion::none && !(result.price.step_s > 0))
      reasons[result.price.cannot].push_back(result.row->line);
  std::string text;
  for (const auto& [reason, lines] : reasons) {
    text += fmt::format("  cannot be priced, counted as 100 % error: {} because {}: line{}",
                        counted(static_cast<std::int64_t>(lines.size()), "row"), reason, lines_text(lines));
  }
  return text;
}

}  // namespace

std::string report_text(const Validation& validation) {
  return title(validation) + scores_text(validation) + groups_text(validation) + memory_text(validation) +
         regret_text(validation) + worst_text(validation) + borrowed_text(validation) + assumed_text(validation) +
         unpriced_text(validation);
}

namespace {

using nlohmann::json;
using Rows = std::vector<const RowResult*>;

// NaN becomes null in JSON.
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

// The keys of every set of rows: the whole, each group, each table, each way of leaving out.
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

}  // namespace slipway::scenarios
