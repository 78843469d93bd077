#include "scenarios/laboratory/validate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <tuple>

#include "models/model/megatron_flops.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/laboratory/tables/table.h"
#include "scenarios/laboratory/validate/graph_prices.h"
#include "scenarios/laboratory/validate/levers.h"
#include "scenarios/laboratory/validate/pooled.h"
#include "scenarios/language/load_constants.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"

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
std::string share_percent(double share) { return percent(100 * share); }
std::string rank_text(double rank) { return std::isfinite(rank) ? fmt::format("{:.3f}", rank) : "-"; }

Description<ScoreSet> excluded_keys() {
  Description<ScoreSet> description;
  const auto add = [&](Exclusion rule, const char* meaning) {
    description.key(name_of(rule), "count", meaning, [rule](const ScoreSet& set) {
      const auto found = set.excluded.find(name_of(rule));
      return found == set.excluded.end() ? 0 : found->second;
    });
  };
  add(Exclusion::status, "did not end");
  add(Exclusion::after_pp_fix, "older version of the trainer");
  add(Exclusion::all_reduce_test, "< 300 GB/s");
  add(Exclusion::no_layout, "its source gives no layout");
  add(Exclusion::memory_only, "its time says nothing of the model");
  add(Exclusion::superseded, "measured again later, or taken back by its authors");
  add(Exclusion::unknown_recipe, "what decides the time is not in the table");
  add(Exclusion::contradiction, "its figures contradict each other");
  return description;
}

Description<NamedRegret> regret_keys() {
  const auto regret = [](auto get) { return of(&NamedRegret::regret, get); };
  return Description<NamedRegret>()
      .key("table", "text", "of alternatives", &NamedRegret::table)
      .key("regret_mfu", "0..1", "of the recommended layout", regret(&Regret::first))
      .key("regret_mfu_of_3", "0..1", "of the best of the first three recommended", regret(&Regret::best_of_three))
      .key("ran_out", "bool", "the recommended layout was OOM", regret(&Regret::first_ran_out));
}

Description<Confusion> confusion_keys() {
  const auto count = [](int number) { return std::to_string(number); };
  return Description<Confusion>()
      .key("true_fit", "count", "called to fit, and did", &Confusion::true_fit)
      .column("true fit", count)
      .key("true_oom", "count", "called to run out, and did", &Confusion::true_oom)
      .column("true OOM", count)
      .key("false_fit", "count", "called to fit, ran out", &Confusion::false_fit)
      .column("false fit", count)
      .key("false_oom", "count", "called to run out, fitted", &Confusion::false_oom)
      .column("false OOM", count);
}

Description<TimeScore> bytes_keys() {
  return Description<TimeScore>()
      .key("rows", "count", "with such a measurement", &TimeScore::priced)
      .key("mape", "%", "mean of |predicted / measured - 1|", &TimeScore::mape)
      .key("median_ape", "%", "its median", &TimeScore::median_ape)
      .key("bias", "%", "mean of predicted / measured - 1", &TimeScore::bias);
}

// The keys that every set of rows has: the whole, each group, each table, each way of leaving out.
const Description<ScoreSet>& score_keys() {
  const auto itself = [](const ScoreSet& set) -> const ScoreSet& { return set; };
  const auto time = [](auto get) { return of(&ScoreSet::time, get); };
  static const Description<ScoreSet> description =
      Description<ScoreSet>()
          .key("rows", "count", "rows read; = priced + unpriced + excluded", &ScoreSet::rows)
          .key("priced", "count", "scored rows that have a predicted step time", &ScoreSet::priced)
          .key("unpriced", "count", "scored rows that cannot be priced: each counts as an error of 100 %",
               &ScoreSet::unpriced)
          .object("excluded", "rows without a time score, per rule", itself, excluded_keys())
          .key("mape", "%", "mean of |predicted / measured step time - 1|", time(&TimeScore::mape))
          .column("MAPE", percent)
          .key("median_ape", "%", "its median", time(&TimeScore::median_ape))
          .column("median", percent)
          .key("bias", "%", "mean of predicted / measured - 1 over priced rows", time(&TimeScore::bias))
          .column("bias", signed_percent)
          .key("rank_correlation", "-1..1", "Spearman's, of predicted and measured MFU", &ScoreSet::rank)
          .column("rank", rank_text)
          .key("regret_mfu", "0..1",
               "1 - measured MFU of the recommended layout / best measured MFU, mean over tables of alternatives",
               mean_regret)
          .column("regret", share_percent)
          .key("regret_mfu_median", "0..1", "the same, median over tables", median_regret)
          .column("median", share_percent)
          .key("regret_mfu_of_3", "0..1", "of the best of the first three recommended, mean over tables",
               mean_regret_of_three)
          .column("best of 3", share_percent)
          .list("regret_tables", "one object per table of alternatives", &ScoreSet::regrets, regret_keys())
          .object("oom", "verdicts on rows of status ok and OOM, all versions of the trainer", &ScoreSet::oom,
                  confusion_keys())
          .object("oom_cautious", "the same for layouts that fit with a probability of at least 99 %",
                  &ScoreSet::oom_cautious, confusion_keys())
          .listed_elsewhere()
          .object("allocated",
                  "predicted weights, gradients, optimizer and tables against what was allocated after a step",
                  &ScoreSet::allocated, bytes_keys())
          .object("reserved", "the same of the first stage's predicted peak against the allocator's",
                  &ScoreSet::reserved, bytes_keys())
          .listed_elsewhere()
          .key("memory_unpriced", "count", "rows of status ok or OOM that get no memory verdict",
               &ScoreSet::memory_unpriced);
  return description;
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& cells) {
  first.insert(first.end(), cells.begin(), cells.end());
  return first;
}

std::vector<std::string> score_line(const std::string& name, const ScoreSet& set) {
  return joined({name, std::to_string(set.priced + set.unpriced)}, score_keys().cells(set));
}

std::string built_in_name(const Validation& validation) {
  return validation.priced_by == name_of(GraphEngine::replay) ? "as built in" : "by " + validation.priced_by;
}

// The number of rows with a price, unscored ones included, and the unmodelled features of the others.
std::string coverage_text(const Validation& validation) {
  std::map<std::string, int> effects;
  std::int64_t priced = 0, other = 0, all = 0;
  for (const RowResult& result : validation.rows) {
    if (result.exclusion == Exclusion::status || result.exclusion == Exclusion::no_layout) continue;
    ++all;
    priced += result.price.step_s > 0;
    other += !(result.price.step_s > 0) && result.row->not_modelled.empty();
    for (const std::string& effect : result.row->not_modelled) ++effects[effect];
  }
  if (effects.empty()) return "";
  std::vector<std::pair<std::string, int>> sorted(effects.begin(), effects.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = fmt::format(
      "  priced: {} of {} with a step time and a layout ({:.0f} %); not modelled, some rows have several:\n", priced,
      counted(all, "row"), 100.0 * static_cast<double>(priced) / static_cast<double>(all));
  for (const auto& [effect, count] : sorted) text += fmt::format("    {:4} {}\n", count, effect);
  if (other > 0) text += fmt::format("    {:4} refused for other reasons, below\n", other);
  return text;
}

// "The built-in constants were fitted to 125 runs: fujii-2024 103, megatron-2021 22."
std::string tables_of_constants() {
  std::int64_t runs = 0;
  std::string names;
  for (const FittedTable& table : tables_of_built_in_constants()) {
    runs += table.runs;
    const std::string study = std::filesystem::path(table.file).parent_path().filename().string();
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", study.empty() ? table.file : study, table.runs);
  }
  return fmt::format("  The built-in constants were fitted to {}: {}.\n", counted(runs, "run"), names);
}

// Errors of rows that the built-in constants have seen are smaller than those of a stranger's.
std::string fitted_text(const Validation& validation) {
  if (validation.priced_by == name_of(GraphEngine::book)) return "  Constants of the book: fitted to no run.\n";
  const auto key = [](const PublishedRow& row) {
    return std::tuple(row.trainer, row.machine, gpus_of(row), row.scenario->step.global_batch, row.step_s);
  };
  std::set<std::tuple<std::string, std::string, int, std::int64_t, double>> fitted;
  for (const PublishedRow& row : published_rows())
    if (row.scenario && exclusion_of(row) == Exclusion::none) fitted.insert(key(row));
  std::int64_t priced = 0, seen = 0;
  for (const RowResult& result : validation.rows) {
    if (result.exclusion != Exclusion::none || !(result.price.step_s > 0)) continue;
    ++priced;
    seen += fitted.contains(key(*result.row));
  }
  if (priced == 0) return "";
  if (seen == 0) return tables_of_constants() + "  None of the rows priced here is among them.\n";
  return tables_of_constants() +
         fmt::format(
             "  {} of the {} priced here {} among them: in sample. Of rows that no fit has seen: --refit, --pooled.\n",
             seen == priced ? "All" : fmt::format("{}", seen), counted(priced, "row"), seen == 1 ? "is" : "are");
}

std::string title(const Validation& validation) {
  const ScoreSet set = score(pointers(validation.rows), std::nullopt);
  std::string text = fmt::format("{}: {}\n  {}: {} scored", validation.table->file, validation.table->source,
                                 counted(set.rows, "row"), set.priced + set.unpriced);
  for (const auto& [rule, count] : set.excluded) text += fmt::format(", {} excluded by {}", count, rule);
  return text + '\n' + fitted_text(validation) + coverage_text(validation) + '\n';
}

std::string scores_text(const Validation& validation) {
  const std::vector<const RowResult*> rows = pointers(validation.rows);
  std::vector<std::vector<std::string>> lines{joined({"step time", "n"}, score_keys().headings())};
  lines.push_back(score_line(built_in_name(validation), score(rows, std::nullopt)));
  const auto refused = [](const RowResult* row) { return !row->row->not_modelled.empty(); };
  std::vector<const RowResult*> modelled;
  std::remove_copy_if(rows.begin(), rows.end(), std::back_inserter(modelled), refused);
  if (modelled.size() < rows.size())
    lines.push_back(score_line("  what is modelled alone", score(modelled, std::nullopt)));
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
  std::vector<std::vector<std::string>> lines{joined({way ? "left out group" : "group", "n"}, score_keys().headings())};
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

// Predicted and published speed side by side, both by the FLOPs that Megatron-LM counts (models/model/megatron_flops.h):
// the published one, and what the measured seconds mean by that formula. They differ where the authors count otherwise.
std::string tflops_text(const Validation& validation) {
  constexpr std::size_t shown = 16;
  std::vector<std::vector<std::string>> lines{
      {"TFLOP/s per GPU, by Megatron-LM's FLOP formula", "line", "predicted", "of the measured seconds", "published"}};
  std::size_t all = 0;
  for (const RowResult& result : validation.rows) {
    const PublishedRow& row = *result.row;
    if (result.exclusion != Exclusion::none || !(row.tflops_per_gpu > 0) || !(result.price.step_s > 0)) continue;
    if (++all > shown) continue;
    const double flops = tokens_per_step(row) * megatron_flops_per_token(megatron_count(*row.scenario->step.model));
    const auto speed = [&](double seconds) { return fmt::format("{:.0f}", flops / (gpus_of(row) * seconds * 1e12)); };
    lines.push_back({in_words(row), std::to_string(row.line), speed(result.price.step_s), speed(row.step_s),
                     fmt::format("{:.0f}", row.tflops_per_gpu)});
  }
  if (all == 0) return "";
  return aligned_table(lines, "  ") +
         (all > shown ? fmt::format("  ... of {}\n", counted(static_cast<std::int64_t>(all), "row")) : "") + '\n';
}

std::vector<std::string> verdict_line(const std::string& name, const Confusion& c) {
  std::vector<std::string> line = joined({name}, confusion_keys().cells(c));
  return joined(line, {share_percent(c.share_right()), share_percent(c.share_of_safe_oom())});
}

std::string memory_text(const Validation& validation) {
  const std::vector<const RowResult*> rows = pointers(validation.rows);
  const ScoreSet set = score(rows, std::nullopt);
  if (set.oom.rows() == 0) return "";
  std::vector<std::vector<std::string>> lines{
      joined(joined({"memory verdict"}, confusion_keys().headings()), {"right", "OOM of those that fit"})};
  std::vector<std::vector<std::string>> bytes{{"bytes", "n", "after a step: MAPE", "median", "peak: MAPE", "median"}};
  const auto add = [&](const std::string& name, const ScoreSet& each) {
    lines.push_back(verdict_line(name, each.oom));
    lines.push_back(verdict_line("  at 99 %", each.oom_cautious));
    if (each.reserved.priced > 0)
      bytes.push_back({name, std::to_string(each.reserved.priced), percent(each.allocated.mape),
                       percent(each.allocated.median_ape), percent(each.reserved.mape),
                       percent(each.reserved.median_ape)});
  };
  add("as built in", set);
  if (validation.refitted)
    for (const Left way : all_ways) add(fmt::format("left out by {}", name_of(way)), score(rows, way));
  std::string text = aligned_table(lines, "  ");
  constexpr std::size_t listed = 12;
  std::size_t ran_out = 0;
  for (const RowResult* result : rows) {  // the few of a table without a choice of layouts, by name
    if (result->row->status != RowStatus::out_of_memory || ++ran_out > listed) continue;
    text += fmt::format("  ran out of memory, line {}: {}: {}\n", result->row->line, in_words(*result->row),
                        !result->price.memory
                            ? result->price.cannot_memory
                            : fmt::format("fits with {:.0f} %, {}", 100 * result->price.memory->probability,
                                          result->price.memory->fits_cautious ? "called safe" : "not called safe"));
  }
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

using Rows = std::vector<const RowResult*>;

// Scores of rows, of each of their groups and of each of their machines.
struct GroupedScores {
  ScoreSet all;
  std::map<std::string, ScoreSet> groups, machines;
};

std::map<std::string, ScoreSet> scores_by(const Rows& rows, std::string PublishedRow::*name, std::optional<Left> way) {
  std::map<std::string, Rows> parts;
  for (const RowResult* row : rows) parts[row->row->*name].push_back(row);
  std::map<std::string, ScoreSet> scores;
  for (const auto& [part, members] : parts) scores.emplace(part, score(members, way));
  return scores;
}

GroupedScores grouped(const Rows& rows, std::optional<Left> way = std::nullopt) {
  return {score(rows, way), scores_by(rows, &PublishedRow::group, way), scores_by(rows, &PublishedRow::machine, way)};
}

using LeftOutScores = std::map<std::string, GroupedScores>;  // by way of leaving out

LeftOutScores left_out(const Rows& rows) {
  LeftOutScores scores;
  for (const Left way : all_ways) scores.emplace(name_of(way), grouped(rows, way));
  return scores;
}

struct TableScores {
  GroupedScores scores;
  std::optional<LeftOutScores> left_out;  // where constants were refitted
};

struct NamedRow {
  std::string file;
  const RowResult& result;
};

struct Answer {
  std::string priced_by = name_of(GraphEngine::replay);
  TableScores whole;
  std::vector<NamedRow> unpriced, assumed;
  std::map<std::string, TableScores> tables;  // by file
};

Answer answer_of(const std::vector<Validation>& validations) {
  Answer answer;
  Rows all;
  bool refitted = !validations.empty();
  for (const Validation& validation : validations) {
    const Rows rows = pointers(validation.rows);
    all.insert(all.end(), rows.begin(), rows.end());
    answer.tables.insert_or_assign(
        validation.table->file,
        TableScores{grouped(rows), validation.refitted ? std::optional(left_out(rows)) : std::nullopt});
    for (const RowResult& result : validation.rows) {
      if (result.exclusion != Exclusion::none) continue;
      if (!(result.price.step_s > 0)) answer.unpriced.push_back({validation.table->file, result});
      if (!result.row->assumed.empty()) answer.assumed.push_back({validation.table->file, result});
    }
    refitted = refitted && validation.refitted;
  }
  answer.whole = {grouped(all), refitted ? std::optional(left_out(all)) : std::nullopt};
  if (!validations.empty()) answer.priced_by = validations.front().priced_by;
  return answer;
}

Description<GroupedScores> grouped_keys() {
  return Description<GroupedScores>()
      .include(score_keys(), &GroupedScores::all)
      .map("groups", "the keys above per group (model, sequence length, layout: as the table has it)",
           &GroupedScores::groups, score_keys())
      .listed_elsewhere()
      .map("machines", "the same per machine profile", &GroupedScores::machines, score_keys())
      .listed_elsewhere();
}

Description<TableScores> left_out_keys() {
  return Description<TableScores>()
      .map("left_out",
           "layout, group, choice: the keys above with every row predicted by constants fitted without it; present "
           "when refitted",
           &TableScores::left_out, grouped_keys())
      .listed_elsewhere();
}

Description<NamedRow> row_keys(const char* what, const char* meaning, std::string (*get)(const RowResult& result)) {
  return Description<NamedRow>()
      .key("file", "path", "of the table", &NamedRow::file)
      .key("line", "number", "of the file", [](const NamedRow& row) { return row.result.row->line; })
      .key(what, "text", meaning, [get](const NamedRow& row) { return get(row.result); });
}

const Description<Answer>& description() {
  const auto grouped_in = [](const Answer& answer) -> const GroupedScores& { return answer.whole.scores; };
  static const Description<Answer> description =
      Description<Answer>()
          .key("priced_by", "text", "replay, simulation or book: of the task graph (validate --help)",
               &Answer::priced_by)
          .include(grouped_keys(), grouped_in)
          .list("unpriced_rows", "scored rows that cannot be priced", &Answer::unpriced,
                row_keys("reason", "why", [](const RowResult& result) { return result.price.cannot; }))
          .list(
              "assumed_rows", "scored rows of which the table does not say all", &Answer::assumed,
              row_keys("assumed", "what was taken for it", [](const RowResult& result) { return result.row->assumed; }))
          .map("tables", "the keys above per file; left_out when refitted", &Answer::tables,
               Description<TableScores>()
                   .include(grouped_keys(), &TableScores::scores)
                   .include(left_out_keys(), [](const TableScores& scores) -> const TableScores& { return scores; }))
          .listed_elsewhere()
          .include(left_out_keys(), &Answer::whole);
  return description;
}

}  // namespace

std::string report_text(const Validation& validation) {
  return title(validation) + scores_text(validation) + groups_text(validation) + memory_text(validation) +
         levers_text(validation) + regret_text(validation) + worst_text(validation) + tflops_text(validation) +
         assumed_text(validation) + unpriced_text(validation);
}

std::vector<AnswerKeys> validate_answers() {
  std::vector<AnswerKeys> answers{{"validate --json", description().keys()}};
  for (AnswerKeys& answer : pooled_answers()) answers.push_back(std::move(answer));
  return answers;
}

std::string json_text(const std::vector<Validation>& validations) { return description().text(answer_of(validations)); }

}  // namespace slipway::scenarios
