#include "scenarios/laboratory/validate/pooled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "models/fit/folds.h"
#include "scenarios/laboratory/tables/memory_refit.h"
#include "scenarios/laboratory/tables/pooled_runs.h"
#include "scenarios/laboratory/validate/residual_scores.h"

namespace slipway::scenarios {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
// Each run's part: the place of its value among the different ones of its table; −1 where the table has only one.
std::vector<int> parts_by(const PooledRuns& runs, const std::function<std::int64_t(const PublishedRow&)>& value) {
  std::map<std::pair<std::string, std::string>, std::set<std::int64_t>> values;
  for (std::size_t i = 0; i < runs.size(); ++i)
    values[{runs.row(i).trainer, runs.row(i).machine}].insert(value(runs.published(i)));
  std::vector<int> parts;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& of_table = values[{runs.row(i).trainer, runs.row(i).machine}];
    const auto place = std::distance(of_table.begin(), of_table.find(value(runs.published(i))));
    parts.push_back(of_table.size() > 1 ? static_cast<int>(place) : -1);
  }
  return parts;
}

std::vector<int> layout_parts(const PooledRuns& runs) {
  constexpr int fifths = 5;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < runs.size(); ++i) keys.push_back(layout_key(runs.published(i)));
  return folds_of(keys, fifths);
}

using Column = std::vector<double>;

using TableKey = std::pair<std::string, std::string>;  // trainer, machine

// Constants fitted without a trainer, and their predictions of that trainer's runs.
struct WithoutPapers {
  std::map<std::string, PooledConstants> known;  // none where there is no other trainer
  Column seconds, widths;                        // of the intervals, of the logarithm
};

WithoutPapers without_papers(PooledRuns& runs, const PooledConstants& fitted, const std::function<void()>& each) {
  WithoutPapers without{{}, Column(runs.size(), nothing), Column(runs.size(), nothing)};
  PooledOptions options;
  options.start = &fitted;
  options.replays = 0;
  std::map<std::string, std::vector<std::size_t>> papers;
  for (const std::size_t i : runs.all()) papers[runs.row(i).trainer].push_back(i);
  if (papers.size() < 2) return without;
  Column spreads(runs.size());
  for (const auto& [trainer, rows] : papers) {
    std::vector<std::size_t> kept = runs.all();
    std::erase_if(kept, [&](std::size_t i) { return runs.row(i).trainer == trainer; });
    const PooledConstants& known = without.known[trainer] = runs.fit(kept, options);
    runs.predict(rows, known, without.seconds, &spreads);
    for (const std::size_t i : rows) without.widths[i] = half_width(known, spreads[i]);
    each();
  }
  return without;
}

// Verdicts by memory constants that were fitted without the trainer of the run.
std::map<const PublishedRow*, bool> fits_without_papers(const std::vector<PublishedTable>& tables) {
  std::vector<const PublishedRow*> rows;
  std::map<std::string, int> papers;
  std::vector<int> parts;
  for (const PublishedTable& table : tables)
    for (const PublishedRow& row : table.rows)
      if (has_memory_result(row)) {
        rows.push_back(&row);
        parts.push_back(papers.emplace(row.trainer, static_cast<int>(papers.size())).first->second);
      }
  const auto prices = MemoryRefit(rows, {}).left_out(parts);
  std::map<const PublishedRow*, bool> fits;
  for (std::size_t i = 0; i < rows.size(); ++i) fits[rows[i]] = !prices[i] || prices[i]->fits_cautious;
  return fits;
}

std::map<TableKey, PooledChoice> choices(const std::vector<PublishedTable>& tables, const PooledRuns& runs,
                                         const WithoutPapers& without) {
  const auto fits = fits_without_papers(tables);
  std::map<TableKey, std::vector<PooledAlternative>> alternatives;
  const auto add = [&](const PublishedRow& row, double seconds) {
    if (!std::isnan(seconds)) alternatives[{row.trainer, row.machine}].push_back({&row, seconds, fits.at(&row)});
  };
  for (const std::size_t i : runs.all()) add(runs.published(i), without.seconds[i]);
  std::vector<const PublishedRow*> ran_out;
  for (const PublishedTable& table : tables)
    for (const PublishedRow& row : table.rows)
      if (row.status == RowStatus::out_of_memory && !row.excluded.contains(Exclusion::after_pp_fix) &&
          without.known.contains(row.trainer))
        ran_out.push_back(&row);
  const PooledRuns others(ran_out);
  Column seconds(others.size());
  for (const auto& [trainer, known] : without.known) {
    std::vector<std::size_t> rows = others.all();
    std::erase_if(rows, [&](std::size_t i) { return others.row(i).trainer != trainer; });
    others.predict(rows, known, seconds, nullptr);
  }
  for (const std::size_t i : others.all()) add(others.published(i), seconds[i]);
  std::map<TableKey, PooledChoice> result;
  for (const auto& [key, layouts] : alternatives) result[key] = choice_among(layouts);
  return result;
}

std::vector<FittedTable> tables_in_fit(const std::vector<PublishedTable>& tables, const PooledRuns& runs) {
  std::set<const PublishedRow*> fitted;
  for (const std::size_t i : runs.timed()) fitted.insert(&runs.published(i));
  std::vector<FittedTable> result;
  for (const PublishedTable& table : tables) {
    const auto is_fitted = [&](const PublishedRow& row) { return fitted.contains(&row); };
    if (const auto count = std::ranges::count_if(table.rows, is_fitted); count > 0)
      result.push_back({table.file, static_cast<int>(count), checksum_of_scored(table)});
  }
  return result;
}

template <class Item>
auto mean_over(const std::vector<PooledTable>& tables, Item PooledTable::*member) {
  std::vector<Item> items;
  for (const PooledTable& table : tables) items.push_back(table.*member);
  return mean_of(items);
}

PooledTable mean_over(const std::vector<PooledTable>& tables, const std::string& name) {
  PooledTable mean;
  mean.trainer = name;
  mean.paper = mean_over(tables, &PooledTable::paper);
  for (std::size_t way = 0; way < runs_of_own.size(); ++way) {
    std::vector<PooledScore> scores;
    for (const PooledTable& table : tables) scores.push_back(table.after[way]);
    mean.after[way] = mean_of(scores);
  }
  std::vector<PooledError> regrets;
  for (const PooledTable& table : tables) {
    mean.rows += table.rows;
    mean.choice.tables += table.choice.tables, mean.choice.none += table.choice.none;
    mean.choice.ran_out += table.choice.ran_out;
    regrets.push_back({table.choice.mean, table.choice.median, 0});
  }
  const PooledError regret = mean_of(regrets);
  mean.choice.mean = regret.mean, mean.choice.median = regret.median;
  mean.book = mean_over(tables, &PooledTable::book), mean.in_sample = mean_over(tables, &PooledTable::in_sample);
  for (const auto member :
       {&PooledTable::layouts, &PooledTable::groups, &PooledTable::layouts_corrected, &PooledTable::groups_corrected})
    mean.*member = mean_over(tables, member);
  return mean;
}

void set_covered(PooledValidation& result) {
  std::vector<PooledScore> paper, after_3;
  std::vector<int> rows;
  for (const PooledTable& table : result.tables) {
    paper.push_back(table.paper), after_3.push_back(table.after[1]);
    rows.push_back(table.rows);
  }
  result.covered = covered_of_all_runs(paper, rows);
  result.covered_after_3 = covered_of_all_runs(after_3, rows);
}

using RowsByTable = std::map<TableKey, std::vector<std::size_t>>;

// The set without the effect of a constant: times and bytes are 0, and the factor of unfused kernels is 1.
PooledConstants without_effect(PooledConstants pooled, std::size_t constant) {
  constexpr double next_to_nothing = 1e-9;
  const StepConstant& of = step_constants()[constant];
  const double neutral = of.unit == std::string_view("factor") ? 1 : next_to_nothing * of.book;
  for (std::size_t c = 0; c < pooled.coordinates.size(); ++c) {
    const PooledCoordinate& at = pooled.coordinates[c];
    if (at.constant != constant) continue;
    const bool is_shared = at.machine.empty() && at.trainer.empty();
    pooled.values[c] = is_shared ? std::log(neutral / of.book) : 0;
  }
  return pooled;
}

std::vector<PooledEffect> effects_of(const PooledRuns& runs, const RowsByTable& by_table,
                                     const PooledConstants& fitted) {
  std::vector<PooledEffect> effects;
  const auto table = step_constants();
  for (std::size_t j = 0; j < table.size(); ++j) {
    const bool adds = table[j].unit != std::string_view("factor") &&
                      table[j].unit != std::string_view("share of ports") &&
                      table[j].unit != std::string_view("share of peak");
    if (!adds && table[j].value != &StepConstants::eager_traffic) continue;
    Column seconds(runs.size());
    runs.predict(runs.all(), without_effect(fitted, j), seconds, nullptr);
    PooledEffect& effect = effects.emplace_back(PooledEffect{table[j].name, table[j].meaning, {}, {}});
    std::vector<PooledError> errors;
    for (const auto& [key, rows] : by_table) {
      errors.push_back(error_of(runs, rows, seconds));
      effect.tables.push_back({key.first, key.second, errors.back()});
    }
    effect.without = mean_of(errors);
  }
  std::stable_sort(effects.begin(), effects.end(),
                   [](const PooledEffect& a, const PooledEffect& b) { return a.without.mean > b.without.mean; });
  return effects;
}

std::vector<PooledConstant> constants_in(const PooledConstants& pooled) {
  std::vector<PooledConstant> constants;
  const auto table = step_constants();
  for (std::size_t c = 0; c < pooled.coordinates.size(); ++c) {
    const PooledCoordinate& at = pooled.coordinates[c];
    const StepConstant& constant = table[at.constant];
    const bool shared = at.machine.empty() && at.trainer.empty();
    PooledConstant each;
    each.name = constant.name, each.unit = shared ? constant.unit : "factor", each.meaning = constant.meaning;
    each.source = constant.source, each.trainer = at.trainer, each.machine = at.machine;
    each.book = shared ? constant.book : 1;
    each.value = each.book * std::exp(pooled.values[c]);
    each.spread = at.spread;
    each.deviation = std::sqrt(pooled.covariance[c * pooled.coordinates.size() + c]);
    each.from_book = pooled.values[c] / at.spread;
    constants.push_back(each);
  }
  std::stable_partition(constants.begin(), constants.end(),
                        [](const PooledConstant& each) { return each.machine.empty() && each.trainer.empty(); });
  return constants;
}

}  // namespace

PooledValidation pooled_validation(const std::vector<PublishedTable>& tables,
                                   const std::function<void(const std::string&, double)>& progress) {
  PooledValidation result;
  std::vector<const PublishedRow*> rows_of_all;
  std::map<const PublishedRow*, std::string> files;
  for (const PublishedTable& table : tables)
    for (const PublishedRow& row : table.rows)
      if (exclusion_of(row) == Exclusion::none) rows_of_all.push_back(&row), files[&row] = table.file;
  PooledRuns runs(rows_of_all);
  for (const auto& [row, why] : runs.not_priced())
    result.not_priced.push_back(fmt::format("{}:{}: {}", files[row], row->line, why));
  if (runs.size() == 0) return result;
  const auto all = runs.all();
  const std::vector<int> of_layouts = layout_parts(runs);
  const std::pair<const char*, std::vector<int>> ways[] = {
      {"a width",
       parts_by(runs, [](const PublishedRow& row) { return row.scenario->step.model->runs[1].block.hidden; })},
      {"a number of GPUs", parts_by(runs, [](const PublishedRow& row) { return gpus_of(row); })},
      {"a tensor degree", parts_by(runs, [](const PublishedRow& row) { return row.scenario->step.layout.tensor; })}};
  // Fits take nearly all the time.
  std::set<std::string> papers;
  for (const std::size_t i : all) papers.insert(runs.row(i).trainer);
  double fits = 1 + count_of(of_layouts) + static_cast<double>(papers.size()), done = 0;
  for (const auto& [what, parts] : ways) fits += count_of(parts);
  std::string current;
  const auto doing = [&](const std::string& what) { progress(current = what, done / fits); };
  const auto each = [&] { progress(current, ++done / fits); };
  doing("replaying by the book");
  Column book(runs.size()), in_sample(runs.size());
  runs.predict(all, {}, book, nullptr);
  doing("fitting all runs");
  const PooledConstants fitted = runs.fit(all, {});
  each();
  runs.predict(all, fitted, in_sample, nullptr);
  doing("fitting without a fifth of the layouts");
  const LeftOutBothWays layouts = left_out(runs, of_layouts, fitted, each);
  std::vector<LeftOutBothWays> groups;
  for (const auto& [what, parts] : ways) {
    doing(std::string("fitting without ") + what);
    groups.push_back(left_out(runs, parts, fitted, each));
  }
  doing("fitting without a paper");
  const WithoutPapers without = without_papers(runs, fitted, each);

  RowsByTable by_table;
  for (const std::size_t i : all) by_table[{runs.row(i).trainer, runs.row(i).machine}].push_back(i);
  for (const auto& [key, rows] : by_table) {
    PooledTable& table = result.tables.emplace_back();
    table.trainer = key.first, table.machine = key.second, table.rows = static_cast<int>(rows.size());
    table.paper = score_of(runs, rows, without.seconds, without.widths);
    table.book = error_of(runs, rows, book);
    table.in_sample = error_of(runs, rows, in_sample);
    const auto scored = [&](const LeftOut& out) { return score_of(runs, rows, out.seconds, out.widths); };
    table.layouts = scored(layouts.physics), table.layouts_corrected = scored(layouts.corrected);
    std::vector<PooledScore> physics, corrected;
    for (const LeftOutBothWays& way : groups)
      physics.push_back(scored(way.physics)), corrected.push_back(scored(way.corrected));
    table.groups = mean_of(physics), table.groups_corrected = mean_of(corrected);
  }
  doing("adding 1, 3 and 10 runs of one's own");
  for (PooledTable& table : result.tables) {
    const auto known = without.known.find(table.trainer);
    for (std::size_t way = 0; way < runs_of_own.size(); ++way)
      table.after[way] =
          known == without.known.end()
              ? mean_of(std::vector<PooledScore>())
              : after_runs_of_own(runs, by_table.at({table.trainer, table.machine}), known->second, runs_of_own[way]);
  }
  doing("choosing layouts");
  auto chosen = choices(tables, runs, without);
  for (PooledTable& table : result.tables) {
    const auto found = chosen.find({table.trainer, table.machine});
    table.choice = found == chosen.end() ? choice_among({}) : found->second;
  }
  result.mean = mean_over(result.tables, "mean over tables");
  set_covered(result);
  std::vector<PooledTable> larger = result.tables;
  std::erase_if(larger, [](const PooledTable& table) { return std::isnan(table.after.back().error.mean); });
  result.larger = mean_over(larger, "where there are 10");
  doing("leaving out one effect at a time");
  result.effects = effects_of(runs, by_table, fitted);
  result.effective = effective_constants(fitted);
  result.constants = constants_in(fitted);
  result.fitted = fitted;
  result.fitted_tables = tables_in_fit(tables, runs);
  for (const std::size_t i : all) {
    const double paper = without.seconds[i], width = std::exp(without.widths[i]);
    result.runs.push_back({runs.row(i).trainer, runs.row(i).machine, in_words(runs.published(i)),
                           runs.row(i).measured_s, book[i], in_sample[i], layouts.physics.seconds[i],
                           layouts.corrected.seconds[i], paper, paper / width, paper * width});
  }
  return result;
}

}  // namespace slipway::scenarios
