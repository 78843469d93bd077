#include "scenarios/validate/pooled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "models/fit/folds.h"
#include "models/trace/statistics.h"
#include "scenarios/validate/pooled_rows.h"
#include "schedules/graph/parallel.h"

namespace slipway::scenarios {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t effort = 1'000'000;  // a replay is worth a thread

// A table of many rows says the same many times over: rows of one table err alike.
constexpr double rows_that_count = 60;

// A row errs as Student's t with five degrees of freedom, beyond what the constants leave open.
constexpr double table_spread = 0.06, row_spread = 0.085, quantile = 2.015;

class PooledRuns {
 public:
  PooledRuns(const std::vector<PublishedTable>& tables, std::vector<std::string>& not_priced) {
    std::map<std::pair<std::string, std::string>, int> sizes;
    for (const PublishedTable& table : tables)
      for (const PublishedRow& row : table.rows) {
        if (exclusion_of(row) != Exclusion::none) continue;
        try {
          runs_.emplace_back(row);
          published_.push_back(&row);
          ++sizes[{row.trainer, row.machine}];
        } catch (const std::invalid_argument& error) {
          not_priced.push_back(fmt::format("{}:{}: {}", table.file, row.line, error.what()));
        }
      }
    for (const PricedRun& run : runs_) {
      rows_.push_back(run.row());
      rows_.back().weight = std::min(1.0, rows_that_count / sizes[{run.row().trainer, run.row().machine}]);
    }
  }

  std::size_t size() const { return runs_.size(); }
  const PooledRow& row(std::size_t i) const { return rows_[i]; }
  const PublishedRow& published(std::size_t i) const { return *published_[i]; }
  std::vector<std::size_t> all() const {
    std::vector<std::size_t> which(size());
    for (std::size_t i = 0; i < which.size(); ++i) which[i] = i;
    return which;
  }

  PooledConstants fit(const std::vector<std::size_t>& which, const PooledOptions& options) {
    std::vector<PooledRow> rows;
    for (const std::size_t i : which) rows.push_back(rows_[i]);
    const auto over = [&](const auto& work) { schedules::each_in_parallel(which.size(), effort, work); };
    PooledPrices prices;
    prices.replay = [&](const auto& constants) { over([&](std::size_t i) { runs_[which[i]].replay(constants[i]); }); };
    prices.seconds = [&](const auto& constants) {
      std::vector<double> seconds(which.size());
      over([&](std::size_t i) { seconds[i] = runs_[which[i]].seconds(constants[i], nullptr); });
      return seconds;
    };
    prices.slopes = [&](const auto& constants) {
      std::vector<std::vector<double>> slopes(which.size());
      over([&](std::size_t i) { runs_[which[i]].seconds(constants[i], &slopes[i]); });
      return slopes;
    };
    return fit_pooled(rows, prices, options);
  }

  // Replays of these runs; also the spread of each from its constants, where not null.
  void predict(const std::vector<std::size_t>& which, const PooledConstants& pooled, std::vector<double>& seconds,
               std::vector<double>* spreads) const {
    schedules::each_in_parallel(which.size(), effort, [&](std::size_t at) {
      const std::size_t i = which[at];
      const StepConstants constants = constants_of(pooled, rows_[i].trainer, rows_[i].machine);
      PricedRun run = runs_[i];  // its path stays that of the fit
      seconds[i] = run.replay(constants);
      if (spreads == nullptr) return;
      std::vector<double> slopes;
      run.seconds(constants, &slopes);
      (*spreads)[i] = spread_of(pooled, rows_[i].trainer, rows_[i].machine, slopes);
    });
  }

 private:
  std::vector<PricedRun> runs_;
  std::vector<PooledRow> rows_;
  std::vector<const PublishedRow*> published_;
};

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

std::vector<int> paper_parts(const PooledRuns& runs) {
  std::map<std::string, int> papers;
  for (std::size_t i = 0; i < runs.size(); ++i) papers.emplace(runs.row(i).trainer, 0);
  int next = 0;
  for (auto& [trainer, part] : papers) part = next++;
  std::vector<int> parts;
  for (std::size_t i = 0; i < runs.size(); ++i) parts.push_back(papers[runs.row(i).trainer]);
  return parts;
}

using Column = std::vector<double>;

// Predicts each part by a fit to the others.
Column left_out(PooledRuns& runs, const std::vector<int>& parts, const PooledConstants& fitted, Column* spreads) {
  Column seconds(runs.size(), nothing);
  const int last = *std::max_element(parts.begin(), parts.end());
  PooledOptions options;
  options.start = &fitted;
  options.replays = 0;
  for (int part = 0; part <= last; ++part) {
    std::vector<std::size_t> kept, out;
    for (std::size_t i = 0; i < runs.size(); ++i) (parts[i] == part ? out : kept).push_back(i);
    if (out.empty() || kept.empty()) continue;
    runs.predict(out, runs.fit(kept, options), seconds, spreads);
  }
  return seconds;
}

PooledError error_of(const PooledRuns& runs, const std::vector<std::size_t>& rows, const Column& seconds) {
  std::vector<double> sizes;
  double sum = 0, bias = 0;
  for (const std::size_t i : rows) {
    if (std::isnan(seconds[i])) continue;
    const double error = 100 * (seconds[i] / runs.row(i).measured_s - 1);
    sizes.push_back(std::abs(error));
    sum += std::abs(error), bias += error;
  }
  if (sizes.empty()) return {nothing, nothing, nothing};
  const double n = static_cast<double>(sizes.size());
  return {sum / n, median(sizes), bias / n};
}

// The mean of those that are there.
PooledError mean_of(const std::vector<PooledError>& errors) {
  PooledError mean;
  int count = 0;
  for (const PooledError& error : errors) {
    if (std::isnan(error.mean)) continue;
    mean.mean += error.mean, mean.median += error.median, mean.bias += error.bias;
    ++count;
  }
  if (count == 0) return {nothing, nothing, nothing};
  return {mean.mean / count, mean.median / count, mean.bias / count};
}

double half_width(double spread) {
  return quantile * std::sqrt(spread * spread + table_spread * table_spread + row_spread * row_spread);
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
                                   const std::function<void(const std::string&)>& progress) {
  PooledValidation result;
  PooledRuns runs(tables, result.not_priced);
  if (runs.size() == 0) return result;
  const auto all = runs.all();
  progress("replaying by the book");
  Column book(runs.size()), in_sample(runs.size()), spreads(runs.size());
  runs.predict(all, {}, book, nullptr);
  progress("fitting all runs");
  const PooledConstants fitted = runs.fit(all, {});
  runs.predict(all, fitted, in_sample, nullptr);
  progress("fitting without a fifth of the layouts");
  const Column layouts = left_out(runs, layout_parts(runs), fitted, nullptr);
  std::vector<Column> groups;
  const std::pair<const char*, std::function<std::int64_t(const PublishedRow&)>> ways[] = {
      {"a width", [](const PublishedRow& row) { return row.step.model->runs[1].block.hidden; }},
      {"a number of GPUs", [](const PublishedRow& row) { return row.gpus; }},
      {"a tensor degree", [](const PublishedRow& row) { return row.step.layout.tensor; }}};
  for (const auto& [what, value] : ways) {
    progress(std::string("fitting without ") + what);
    groups.push_back(left_out(runs, parts_by(runs, value), fitted, nullptr));
  }
  progress("fitting without a paper");
  const Column paper = left_out(runs, paper_parts(runs), fitted, &spreads);

  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> by_table;
  for (const std::size_t i : all) by_table[{runs.row(i).trainer, runs.row(i).machine}].push_back(i);
  std::vector<PooledError> of_book, of_sample, of_layouts, of_groups, of_paper;
  for (const auto& [key, rows] : by_table) {
    PooledTable table{key.first, key.second, static_cast<int>(rows.size()), {}, {}, {}, {}, {}, 0, 0};
    table.book = error_of(runs, rows, book);
    table.in_sample = error_of(runs, rows, in_sample);
    table.layouts = error_of(runs, rows, layouts);
    std::vector<PooledError> each;
    for (const Column& column : groups) each.push_back(error_of(runs, rows, column));
    table.groups = mean_of(each);
    table.paper = error_of(runs, rows, paper);
    std::vector<double> widths;
    int inside = 0;
    for (const std::size_t i : rows) {
      if (std::isnan(paper[i])) continue;
      const double width = half_width(spreads[i]);
      widths.push_back(100 * std::sinh(width));
      if (std::abs(std::log(paper[i] / runs.row(i).measured_s)) <= width) ++inside;
    }
    table.covered = widths.empty() ? nothing : 100.0 * inside / static_cast<double>(widths.size());
    table.half_width = widths.empty() ? nothing : median(widths);
    of_book.push_back(table.book), of_sample.push_back(table.in_sample), of_layouts.push_back(table.layouts);
    of_groups.push_back(table.groups), of_paper.push_back(table.paper);
    result.mean.rows += table.rows;
    result.mean.covered += table.covered, result.mean.half_width += table.half_width;
    result.tables.push_back(table);
  }
  result.mean.trainer = "mean over tables";
  result.mean.book = mean_of(of_book), result.mean.in_sample = mean_of(of_sample);
  result.mean.layouts = mean_of(of_layouts), result.mean.groups = mean_of(of_groups);
  result.mean.paper = mean_of(of_paper);
  result.mean.covered /= static_cast<double>(result.tables.size());
  result.mean.half_width /= static_cast<double>(result.tables.size());
  result.effective = effective_constants(fitted);
  result.constants = constants_in(fitted);
  for (const std::size_t i : all) {
    const double width = std::exp(half_width(spreads[i]));
    result.runs.push_back({runs.row(i).trainer, runs.row(i).machine, in_words(runs.published(i)),
                           runs.row(i).measured_s, book[i], in_sample[i], layouts[i], paper[i], paper[i] / width,
                           paper[i] * width});
  }
  return result;
}

}  // namespace slipway::scenarios
