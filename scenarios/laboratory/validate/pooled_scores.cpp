#include "scenarios/laboratory/validate/pooled_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "models/trace/statistics.h"
#include "scenarios/laboratory/tables/price.h"
#include "scenarios/laboratory/validate/scores.h"

namespace slipway::scenarios {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

template <class Item, class Get>
double mean_where_known(const std::vector<Item>& items, const Get& get) {
  std::vector<double> values;
  for (const Item& item : items)
    if (!std::isnan(get(item))) values.push_back(get(item));
  return values.empty() ? nothing : mean(values);
}

// The constants after these runs, as `slipway calibrate --runs` makes them.
PooledConstants with_own(const std::vector<const PublishedRow*>& rows, const PooledConstants& known) {
  PooledRuns own(rows);
  return own.add(own.all(), without_sites(known), std::nullopt);
}

}  // namespace

PooledError error_of(const PooledRuns& runs, const std::vector<std::size_t>& rows, const std::vector<double>& seconds) {
  std::vector<double> sizes, errors;
  for (const std::size_t i : rows) {
    if (std::isnan(seconds[i])) continue;
    errors.push_back(100 * (seconds[i] / runs.row(i).measured_s - 1));
    sizes.push_back(std::abs(errors.back()));
  }
  if (sizes.empty()) return {nothing, nothing, nothing};
  return {mean(sizes), median(sizes), mean(errors)};
}

PooledScore score_of(const PooledRuns& runs, const std::vector<std::size_t>& rows, const std::vector<double>& seconds,
                     const std::vector<double>& widths) {
  PooledScore score{error_of(runs, rows, seconds), nothing, nothing};
  std::vector<double> halves, inside;
  for (const std::size_t i : rows) {
    if (std::isnan(seconds[i])) continue;
    halves.push_back(100 * std::sinh(widths[i]));
    inside.push_back(std::abs(std::log(seconds[i] / runs.row(i).measured_s)) <= widths[i] ? 100 : 0);
  }
  if (!halves.empty()) score.covered = mean(inside), score.half_width = median(halves);
  return score;
}

PooledError mean_of(const std::vector<PooledError>& errors) {
  return {mean_where_known(errors, [](const PooledError& each) { return each.mean; }),
          mean_where_known(errors, [](const PooledError& each) { return each.median; }),
          mean_where_known(errors, [](const PooledError& each) { return each.bias; })};
}

PooledScore mean_of(const std::vector<PooledScore>& scores) {
  std::vector<PooledError> errors;
  for (const PooledScore& score : scores) errors.push_back(score.error);
  return {mean_of(errors), mean_where_known(scores, [](const PooledScore& each) { return each.covered; }),
          mean_where_known(scores, [](const PooledScore& each) { return each.half_width; })};
}

double covered_of_all_runs(const std::vector<PooledScore>& scores, const std::vector<int>& rows) {
  double covered = 0, runs = 0;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (!std::isnan(scores[i].covered)) covered += scores[i].covered * rows[i], runs += rows[i];
  return runs > 0 ? covered / runs : nothing;
}

std::vector<std::vector<std::size_t>> draws_of(const PooledRuns& runs, const std::vector<std::size_t>& table,
                                               std::size_t n) {
  std::map<std::string, std::vector<std::size_t>> layouts;
  for (const std::size_t i : table) layouts[layout_key(runs.published(i))].push_back(i);
  if (layouts.size() < n || table.size() <= n) return {};
  const int times = n < 10 ? 5 : 3;
  std::mt19937_64 random(20261125 + n);
  std::vector<std::vector<std::size_t>> draws;
  for (int time = 0; time < times; ++time) {
    std::vector<std::vector<std::size_t>> left;
    for (const auto& [key, rows] : layouts) left.push_back(rows);
    std::vector<std::size_t>& draw = draws.emplace_back();
    while (draw.size() < n) {
      const std::size_t layout = random() % left.size();
      draw.push_back(left[layout][random() % left[layout].size()]);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(layout));
    }
  }
  return draws;
}

PooledScore after_runs_of_own(const PooledRuns& runs, const std::vector<std::size_t>& table,
                              const PooledConstants& known, std::size_t n) {
  std::vector<PooledScore> scores;
  std::vector<double> seconds(runs.size()), widths(runs.size()), spreads(runs.size());
  for (const std::vector<std::size_t>& draw : draws_of(runs, table, n)) {
    std::vector<const PublishedRow*> own;
    for (const std::size_t i : draw) own.push_back(&runs.published(i));
    const PooledConstants after = with_own(own, known);
    std::vector<std::size_t> others = table;
    std::erase_if(others, [&](std::size_t i) { return std::find(draw.begin(), draw.end(), i) != draw.end(); });
    runs.predict(others, after, seconds, &spreads);
    for (const std::size_t i : others) widths[i] = half_width(after, spreads[i]);
    scores.push_back(score_of(runs, others, seconds, widths));
  }
  return mean_of(scores);
}

PooledChoice choice_among(const std::vector<PooledAlternative>& alternatives) {
  std::map<std::string, std::vector<TableLayout>> tables;
  for (const auto& [row, seconds, fits] : alternatives) {
    const double peak = peak_flops_of(*row);
    tables[row->table].push_back(
        {mfu_of(*row, seconds, peak), fits, row->status == RowStatus::ok ? mfu_of(*row, row->step_s, peak) : 0});
  }
  PooledChoice choice;
  std::vector<double> regrets;
  for (const auto& [name, layouts] : tables) {
    if (std::count_if(layouts.begin(), layouts.end(), [](const TableLayout& each) { return each.measured_mfu > 0; }) <
        2)
      continue;
    const Regret regret = regret_of(layouts);
    regrets.push_back(100 * regret.first);
    if (regret.first_ran_out) ++choice.ran_out;
    if (std::none_of(layouts.begin(), layouts.end(), [](const TableLayout& each) { return each.predicted_to_fit; }))
      ++choice.none;
  }
  choice.tables = static_cast<int>(regrets.size());
  choice.mean = regrets.empty() ? nothing : mean(regrets);
  choice.median = regrets.empty() ? nothing : median(regrets);
  return choice;
}

}  // namespace slipway::scenarios
