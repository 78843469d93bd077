#include "scenarios/commands/execute/confirm_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/commands/compare/compare_report.h"
#include "scenarios/predict/readable.h"
#include "scenarios/report/sections.h"

namespace slipway::scenarios {
namespace {

Card step_card(const Execution& run) {
  const auto [fastest, slowest] = std::ranges::minmax(run.times.period_s);
  return {"step time", readable_seconds(run.times.median_period_s),
          fmt::format("median of {}, {} to {}", counted(static_cast<std::int64_t>(run.times.period_s.size()), "step"),
                      readable_seconds(fastest), readable_seconds(slowest))};
}

std::string reason_of(const Execution& run, const TimelineView& view) {
  std::string text =
      fmt::format("Compute lanes are without work for {} of the time.", readable_share(run.times.idle_share));
  if (view.path.empty()) return text;
  const PathShare& most = view.path.front();
  return text + fmt::format(" Of the critical path of a typical step, {} is {}.",
                            readable_share(most.seconds / view.seconds), most.name);
}

Plot periods_plot(const Execution& run) {
  PlotSeries measured{"measured", {}, {}};
  for (std::size_t i = 0; i < run.times.period_s.size(); ++i) {
    measured.x.push_back(run.times.first + 1 + static_cast<double>(i) * run.trace.window);
    measured.y.push_back(run.times.period_s[i]);
  }
  return {"Step time over the run", "",    {"step"}, {"step time", PlotAxis::Unit::seconds},
          {std::move(measured)},    false, {}};
}

double error_of(const ConfirmedCase& one) { return std::abs(one.predicted_s / one.measured_s - 1); }

// The case with the median error; of an even number, the larger of the middle two.
const ConfirmedCase& middle_of(std::vector<ConfirmedCase> cases, const Confirmation& confirmation) {
  std::ranges::stable_sort(cases, {}, error_of);
  return *std::ranges::find(confirmation.cases, cases[cases.size() / 2].name, &ConfirmedCase::name);
}

Plot cases_plot(const Confirmation& confirmation) {
  PlotSeries predicted{"predicted", {}, {}, Mark::points}, scaled{"by FLOPs alone", {}, {}, Mark::points};
  for (const ConfirmedCase& one : confirmation.cases) {
    predicted.x.push_back(one.measured_s), predicted.y.push_back(one.predicted_s), predicted.labels.push_back(one.name);
    scaled.x.push_back(one.measured_s), scaled.y.push_back(one.scaled_s), scaled.labels.push_back(one.name);
  }
  return {"Predicted and measured step time",
          "A point on the line is predicted exactly.",
          {"measured", PlotAxis::Unit::seconds, true},
          {"predicted", PlotAxis::Unit::seconds, true},
          {std::move(predicted), std::move(scaled)},
          true,
          {}};
}

}  // namespace

Report report_of(const PreparedStep& prepared, const Execution& run, const Trace* predicted,
                 const Comparison* comparison) {
  TimelineView view = view_of(run.trace, typical_step(run.trace));
  Report report;
  report.command = "execute";
  report.headline = headline(prepared);
  report.reason = reason_of(run, view);
  report.cards = {step_card(run)};
  if (comparison != nullptr) {
    const std::vector<Card> cards = comparison_cards(*comparison);
    report.cards.insert(report.cards.end(), cards.begin() + 1, cards.end());
  }
  report.cards.push_back(
      {"tokens per second", readable_count(tokens_per_s(prepared, run)), counted(run.trace.ranks, "rank")});
  if (!run.trace.losses.empty())
    report.cards.push_back({"loss at the end", fmt::format("{:.4f}", run.trace.losses.back().loss),
                            fmt::format("{:.4f} at the beginning", run.trace.losses.front().loss)});
  for (Plot& plot : training_plots(run.trace.losses)) report.sections.push_back(std::move(plot));
  if (comparison != nullptr) {
    add_comparison(report, *predicted, run.trace, *comparison, memory_capacities(prepared.scenario));
  } else {
    report.sections.push_back(path_bar(view));
    Plot memory = memory_plot(view, memory_capacities(prepared.scenario));
    report.sections.push_back(timeline_section(std::move(view)));
    if (!memory.series.empty()) report.sections.push_back(std::move(memory));
  }
  report.sections.push_back(periods_plot(run));
  return report;
}

Report report_of(const std::string& baseline_name, const Confirmation& confirmation) {
  const ConfirmedCase& middle = middle_of(confirmation.cases, confirmation);
  Report report;
  report.command = "confirm";
  report.headline =
      fmt::format("{}, from the baseline \"{}\"",
                  counted(static_cast<std::int64_t>(confirmation.cases.size()), "unseen case"), baseline_name);
  const ConfirmedCase& worst = *std::ranges::max_element(confirmation.cases, {}, error_of);
  report.reason = fmt::format("The median case is predicted {}, measured {}. The largest error is {}, of \"{}\".",
                              readable_seconds(middle.predicted_s), readable_seconds(middle.measured_s),
                              readable_share(error_of(worst)), worst.name);
  report.cards = {{"median error", readable_share(error_of(middle)), "of \"" + middle.name + "\""},
                  {"largest error", readable_share(error_of(worst)), "of \"" + worst.name + "\""},
                  {"baseline", readable_seconds(confirmation.baseline_measured_s),
                   "simulated " + readable_seconds(confirmation.baseline_simulated_s)}};
  report.sections.push_back(cases_plot(confirmation));
  report.sections.push_back(ReportTable{
      "Cases", "Both predictions start from the baseline as measured in the same rounds.", case_rows(confirmation)});
  return report;
}

}  // namespace slipway::scenarios
