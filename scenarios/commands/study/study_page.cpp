#include "scenarios/commands/study/study_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "scenarios/predict/readable.h"
#include "scenarios/predict/step_interval.h"

namespace slipway::scenarios {
namespace {

std::string name_of_row(const Study& study, const StudyRow& row) {
  std::string name;
  for (const std::string& label : labels(study, row)) name += (name.empty() ? "" : ", ") + label;
  return name.empty() ? std::filesystem::path(row.point.path).stem().string() : name;
}

// The rows with numbers: those that fit first, of each the fastest first.
std::vector<const StudyRow*> done_rows(const Study& study) {
  std::vector<const StudyRow*> rows;
  for (const StudyRow& row : study.rows)
    if (row.error.empty()) rows.push_back(&row);
  std::ranges::stable_sort(rows, std::greater(), [](const StudyRow* row) {
    return std::pair(row->number("fits"), row->number("tokens_per_s"));
  });
  return rows;
}

// Two series: rows that fit, and rows that do not.
Plot memory_and_time(const Study& study) {
  PlotSeries fitting{"fits", {}, {}, Mark::points}, others{"does not fit", {}, {}, Mark::points};
  for (const StudyRow* row : done_rows(study)) {
    if (std::isnan(row->number("needed_memory_bytes"))) continue;
    PlotSeries& series = row->number("fits") > 0 ? fitting : others;
    series.x.push_back(row->number("step_time_s")), series.y.push_back(row->number("needed_memory_bytes"));
    series.labels.push_back(name_of_row(study, *row));
  }
  Plot plot{"Memory and time of each point",
            "Left and low is better.",
            {"step time", PlotAxis::Unit::seconds},
            {"memory that it needs", PlotAxis::Unit::bytes},
            {},
            false,
            {}};
  for (PlotSeries* series : {&fitting, &others})
    if (!series->x.empty()) plot.series.push_back(std::move(*series));
  return plot;
}

// Step time over the values of the last variation, where they are numbers: a line for each combination of the others.
Plot over_last_key(const Study& study) {
  Plot plot{"Step time over " + study.keys.back(),
            "",
            {study.keys.back()},
            {"step time", PlotAxis::Unit::seconds},
            {},
            false,
            {}};
  for (const StudyRow& row : study.rows) {
    std::size_t used = 0;
    double x = 0;
    try {
      x = std::stod(row.point.values.back(), &used);
    } catch (const std::exception&) {
    }
    if (used != row.point.values.back().size()) return {};
    if (!row.error.empty()) continue;
    std::vector<std::string> others = labels(study, row);
    others.pop_back();
    std::string name;
    for (const std::string& label : others) name += (name.empty() ? "" : ", ") + label;
    auto at = std::ranges::find(plot.series, name, &PlotSeries::name);
    if (at == plot.series.end()) at = plot.series.insert(at, PlotSeries{name, {}, {}});
    at->x.push_back(x), at->y.push_back(row.number("step_time_s"));
  }
  if (plot.series.size() == 1 && plot.series.front().name.empty()) plot.series.front().name = "step time";
  return plot;
}

bool has_interval(const StudyRow& row) { return row.numbers.contains("step_time_low_s"); }

std::string tokens_note(const Study& study, const StudyRow& row) {
  if (!has_interval(row)) return name_of_row(study, row) + "; " + no_interval;
  const double tokens = row.number("tokens_per_s") * row.number("step_time_s");
  return fmt::format("{}; 90 % interval: {} to {}", name_of_row(study, row),
                     readable_count(tokens / row.number("step_time_high_s")),
                     readable_count(tokens / row.number("step_time_low_s")));
}

std::string step_note(const StudyRow& row) {
  const std::string fits = row.number("fits") > 0 ? "fits" : "does not fit";
  if (!has_interval(row)) return fits + "; " + no_interval;
  return fmt::format("90 % interval: {} to {}; {}", readable_seconds(row.number("step_time_low_s")),
                     readable_seconds(row.number("step_time_high_s")), fits);
}

}  // namespace

Report report_of(const Study& study) {
  const std::vector<const StudyRow*> rows = done_rows(study);
  const StudyRow &best = *rows.front(), &worst = *rows.back();
  Report report;
  report.command = "study";
  report.headline = fmt::format("{} of {}", counted(static_cast<std::int64_t>(study.rows.size()), "point"),
                                std::filesystem::path(study.scenarios.front()).stem().string());
  report.reason = fmt::format(
      "{} is the fastest{}: {} tokens per second, {:.3g} times those of {}.", name_of_row(study, best),
      best.number("fits") > 0 ? " that fits" : ", though nothing fits", readable_count(best.number("tokens_per_s")),
      best.number("tokens_per_s") / worst.number("tokens_per_s"), name_of_row(study, worst));
  report.cards = {{"most tokens per second", readable_count(best.number("tokens_per_s")), tokens_note(study, best)},
                  {"its step time", readable_seconds(best.number("step_time_s")), step_note(best),
                   best.number("fits") > 0 ? Tone::good : Tone::bad},
                  {"its bubble", readable_share(best.number("bubble_share")),
                   "exposed communication " + readable_share(best.number("exposed_comm_share"))}};
  if (!study.keys.empty())
    if (Plot plot = over_last_key(study); !plot.series.empty()) report.sections.push_back(std::move(plot));
  if (Plot plot = memory_and_time(study); !plot.series.empty()) report.sections.push_back(std::move(plot));
  report.sections.push_back(ReportTable{"All points", "", study_rows(study)});
  return report;
}

}  // namespace slipway::scenarios
