#include "scenarios/laboratory/validate/validate_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

constexpr const char* how_to_read = "A point on the line is predicted exactly; above it, predicted too slow.";

std::string percent(double value) { return std::isnan(value) ? "-" : fmt::format("{:.1f} %", value); }

std::string name_of_table(const Validation& validation) {
  const std::filesystem::path path(validation.table->file);
  return path.stem() == "runs" && path.has_parent_path() ? path.parent_path().filename().string()
                                                         : path.stem().string();
}

std::string words_for_row(const PublishedRow& row) {
  const Layout& layout = row.scenario->step.layout;
  return fmt::format("line {}: {} GPUs, tensor {}, pipeline {}, data {}, micro-batch {}", row.line, gpus_of(row),
                     layout.tensor, layout.pipeline, layout.data, row.scenario->step.micro_batch);
}

Plot empty_plot(const std::string& title) {
  return {title,
          how_to_read,
          {"measured step time", PlotAxis::Unit::seconds, true},
          {"predicted step time", PlotAxis::Unit::seconds, true},
          {},
          true,
          {}};
}

// A series per group of rows (model, sequence length, ...); one for all where there are too many for colours.
Plot rows_plot(const Validation& validation) {
  constexpr std::size_t most_series = 7;
  std::map<std::string, PlotSeries> groups;
  for (const RowResult& result : validation.rows) {
    const PublishedRow& row = *result.row;
    if (result.exclusion != Exclusion::none || !(row.step_s > 0) || !(result.price.step_s > 0)) continue;
    PlotSeries& series = groups[row.group];
    series.mark = Mark::points;
    series.x.push_back(row.step_s), series.y.push_back(result.price.step_s);
    series.labels.push_back(words_for_row(row) +
                            fmt::format(", error {:+.1f} %", 100 * (result.price.step_s / row.step_s - 1)));
  }
  Plot plot = empty_plot(name_of_table(validation) + ": predicted and measured");
  if (!validation.table->source.empty()) plot.note = validation.table->source + ". " + plot.note;
  if (groups.size() > most_series) {
    PlotSeries all{"runs", {}, {}, Mark::points};
    for (auto& [group, series] : groups)
      for (std::size_t i = 0; i < series.x.size(); ++i)
        all.x.push_back(series.x[i]), all.y.push_back(series.y[i]), all.labels.push_back(series.labels[i]);
    plot.series.push_back(std::move(all));
    return plot;
  }
  for (auto& [group, series] : groups) {
    series.name = group.empty() ? "runs" : group;
    plot.series.push_back(std::move(series));
  }
  return plot;
}

std::vector<const RowResult*> pointers(const Validation& validation) {
  std::vector<const RowResult*> rows;
  for (const RowResult& row : validation.rows) rows.push_back(&row);
  return rows;
}

std::vector<std::string> score_row(const std::string& name, const ScoreSet& set) {
  return {name,
          std::to_string(set.priced),
          percent(set.time.mape),
          percent(set.time.median_ape),
          percent(set.time.bias),
          std::isnan(set.rank) ? "-" : fmt::format("{:.3f}", set.rank),
          std::isnan(mean_regret(set)) ? "-" : readable_share(mean_regret(set))};
}

Card error_card(const TimeScore& score) {
  return {"mean error of step times", percent(score.mape), "median " + percent(score.median_ape)};
}

}  // namespace

Report report_of(const std::vector<Validation>& validations) {
  ReportTable table{"Scores by table",
                    "Rank: correlation of MFU. Regret: of the recommended layout.",
                    {{"table", "runs", "mean error", "median", "bias", "rank", "regret"}}};
  std::vector<const RowResult*> all;
  for (const Validation& validation : validations) {
    const std::vector<const RowResult*> rows = pointers(validation);
    table.rows.push_back(score_row(name_of_table(validation), score(rows, std::nullopt)));
    for (std::size_t way = 0; validation.refitted && way < left_ways; ++way)
      table.rows.push_back(score_row(fmt::format("{}, left out by {}", name_of_table(validation), left_names[way].name),
                                     score(rows, left_names[way].value)));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  const ScoreSet whole = score(all, std::nullopt);
  Report report;
  report.command = "validate";
  report.headline =
      fmt::format("{} of published runs, {} scored", counted(static_cast<std::int64_t>(validations.size()), "table"),
                  counted(whole.priced, "run"));
  report.reason =
      fmt::format("Half of the published step times are predicted to within {}.", percent(whole.time.median_ape));
  report.cards = {error_card(whole.time),
                  {"bias", percent(whole.time.bias), "of the signed error"},
                  {"out of memory or not", readable_share(whole.oom.share_right()), "of verdicts right"},
                  {"not priced", std::to_string(whole.unpriced), "runs; each counts as 100 %"}};
  report.sections.push_back(std::move(table));
  for (const Validation& validation : validations)
    if (Plot plot = rows_plot(validation); !plot.series.empty()) report.sections.push_back(std::move(plot));
  return report;
}

Report report_of(const PooledValidation& validation) {
  const PooledScore& paper = validation.mean.paper;
  Report report;
  report.command = "validate";
  report.headline =
      fmt::format("{} of {}, fitted together", counted(static_cast<std::int64_t>(validation.runs.size()), "run"),
                  counted(static_cast<std::int64_t>(validation.tables.size()), "table"));
  report.reason = fmt::format("Without any run of a trainer, its step times are predicted with a mean error of {}.",
                              percent(paper.error.mean));
  report.cards = {
      {"mean error, nothing of yours", percent(paper.error.mean), "median " + percent(paper.error.median)},
      {"within the 90 % interval", percent(paper.covered), fmt::format("half width {}", percent(paper.half_width))},
      {"regret of the choice", percent(validation.mean.choice.mean), "mean over tables"}};
  std::map<std::string, PlotSeries> trainers;
  for (const PooledRun& run : validation.runs) {
    PlotSeries& series = trainers[run.trainer + " on " + run.machine];
    series.mark = Mark::points;
    series.x.push_back(run.measured_s), series.y.push_back(run.paper_s), series.labels.push_back(run.words);
  }
  for (auto& [name, series] : trainers) {
    Plot plot = empty_plot(name + ": predicted without its runs, and measured");
    series.name = "runs";
    plot.series.push_back(std::move(series));
    report.sections.push_back(std::move(plot));
  }
  return report;
}

}  // namespace slipway::scenarios
