#include "scenarios/validation/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/readable.h"

namespace slipway {
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
  return {name, std::to_string(set.priced + set.unpriced), percent(set.time.mape), percent(set.time.median_ape),
          signed_percent(set.time.bias), std::isfinite(set.rank) ? fmt::format("{:.3f}", set.rank) : "-",
          percent(100 * mean_regret(set)), percent(100 * median_regret(set)),
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
  const std::string title = "worst rows, " + (way ? fmt::format("left out by {}", name_of(*way)) : built_in_name(validation));
  std::vector<std::vector<std::string>> lines{{title, "line", "predicted", "measured", "error"}};
  for (const RowResult* result : worst)
    lines.push_back({in_words(*result->row), std::to_string(result->row->line),
                     readable_seconds(predicted_seconds(*result, way)), readable_seconds(result->row->step_s),
                     signed_percent(100 * error_of(*result, way))});
  return worst.empty() ? "" : aligned_table(lines, "  ") + '\n';
}

std::vector<std::string> verdict_line(const std::string& name, const Confusion& c) {
  return {name, std::to_string(c.true_fit), std::to_string(c.true_oom), std::to_string(c.false_fit),
          std::to_string(c.false_oom), percent(100 * c.share_right()), percent(100 * c.share_of_safe_oom())};
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

// The tables where the recommendation lost most.
std::string regret_text(const Validation& validation) {
  constexpr std::size_t shown = 8;
  ScoreSet set = score(pointers(validation.rows), validation.refitted ? std::optional(Left::choice) : std::nullopt);
  std::stable_sort(set.regrets.begin(), set.regrets.end(), [](const NamedRegret& a, const NamedRegret& b) {
    return a.regret.first > b.regret.first;
  });
  const std::size_t all = set.regrets.size();
  set.regrets.resize(std::min(all, shown));
  std::vector<std::vector<std::string>> lines{{"recommended layout", "regret", "best of 3"}};
  for (const NamedRegret& regret : set.regrets)
    lines.push_back({regret.table, percent(100 * regret.regret.first) + (regret.regret.first_ran_out ? " (OOM)" : ""),
                     percent(100 * regret.regret.best_of_three)});
  if (set.regrets.empty()) return "";
  return aligned_table(lines, "  ") + (all > shown ? fmt::format("  ... of {} tables\n", all) : "") + '\n';
}

// Rows outside of what their trainer was fitted to.
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

// What the table does not tell and its reader took for it.
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

// Reasons with their rows' lines; every row that a score needed and that has no price is here.
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

}  // namespace slipway
