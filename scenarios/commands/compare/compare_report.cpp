#include "scenarios/commands/compare/compare_report.h"

#include <fmt/format.h>

#include <cmath>

#include "scenarios/predict/readable.h"
#include "scenarios/report/sections.h"
#include "schedules/time/replay.h"

namespace slipway::scenarios {
namespace {

std::string error_text(double error) { return fmt::format("{:+.1f} %", 100 * error); }

Plot kinds_plot(const Comparison& comparison) {
  PlotSeries kinds{"kind of task", {}, {}, Mark::points};
  for (const KindComparison& kind : comparison.kinds) {
    if (!(kind.measured_s > 0) || !(kind.predicted_s > 0)) continue;
    kinds.x.push_back(kind.measured_s), kinds.y.push_back(kind.predicted_s);
    kinds.labels.push_back(kind.kind + ", " + error_text(kind.error()));
  }
  return {"Work by kind of task",
          "Sum over ranks, without waiting. Above the line: predicted too long.",
          {"measured", PlotAxis::Unit::seconds, true},
          {"predicted", PlotAxis::Unit::seconds, true},
          {std::move(kinds)},
          true,
          {}};
}

// The kind whose error is the most seconds.
std::string reason_of(const Comparison& c) {
  std::string text = fmt::format("The step was predicted {} {} than measured.",
                                 readable_share(std::abs(c.step_error())), c.step_error() < 0 ? "shorter" : "longer");
  const KindComparison* most = nullptr;
  for (const KindComparison& kind : c.kinds)
    if (most == nullptr ||
        std::abs(kind.predicted_s - kind.measured_s) > std::abs(most->predicted_s - most->measured_s))
      most = &kind;
  if (most == nullptr) return text;
  return text + fmt::format(" Of the work, {} differs most: predicted {}, measured {} over all ranks.", most->kind,
                            readable_seconds(most->predicted_s), readable_seconds(most->measured_s));
}

void add_trace(Report& report, const Trace& trace, int step, const std::string& side,
               const std::vector<double>& capacities) {
  TimelineView view = view_of(trace, step);
  if (view.spans.empty()) return;
  Bar path = path_bar(view);
  path.title += ", " + side;
  report.sections.push_back(std::move(path));
  Plot memory = memory_plot(view, capacities);
  memory.title += ", " + side;
  report.sections.push_back(timeline_section(std::move(view), "Timeline, " + side));
  if (!memory.series.empty()) report.sections.push_back(std::move(memory));
}

}  // namespace

Card error_card(double error, bool is_inside, double low_s, double high_s) {
  Card card{"error of the step", error_text(error), ""};
  if (high_s <= 0) return card;
  card.note = fmt::format("{} the 90 % interval, {} to {}", is_inside ? "inside" : "outside", readable_seconds(low_s),
                          readable_seconds(high_s));
  card.tone = is_inside ? Tone::good : Tone::bad;
  return card;
}

std::vector<Card> comparison_cards(const Comparison& c) {
  std::vector<Card> cards{
      {"measured step time", readable_seconds(c.measured_step_s), "predicted " + readable_seconds(c.predicted_step_s)},
      error_card(c.step_error(), c.is_inside(), c.low_s, c.high_s)};
  cards.push_back(
      {"compute lanes wait", readable_seconds(c.measured_idle_s), "predicted " + readable_seconds(c.predicted_idle_s)});
  return cards;
}

void add_comparison(Report& report, const Trace& predicted, const Trace& measured, const Comparison& comparison,
                    const std::vector<double>& capacities) {
  Plot kinds = kinds_plot(comparison);
  if (!kinds.series.front().x.empty()) report.sections.push_back(std::move(kinds));
  report.sections.push_back(ReportTable{"Work by kind of task, in numbers",
                                        "Sum over ranks; waiting for other members beside it.", kind_rows(comparison)});
  report.sections.push_back(ReportTable{"The tasks with the largest difference", "", worst_rows(comparison)});
  add_trace(report, predicted, comparison.predicted_step, "predicted", capacities);
  add_trace(report, measured, typical_step(measured), "measured", capacities);
  if (!comparison.memory.empty())
    report.sections.push_back(ReportTable{"Peak memory of tensors by rank", "", peak_rows(comparison)});
}

Report report_of(const Trace& predicted, const Trace& measured, const Comparison& comparison,
                 const std::vector<double>& capacities) {
  Report report;
  report.command = "compare";
  report.headline = fmt::format("{}: predicted beside measured, {}, {}", measured.scenario,
                                counted(measured.ranks, "rank"), counted(comparison.joined, "joined task"));
  report.reason = reason_of(comparison);
  report.cards = comparison_cards(comparison);
  add_comparison(report, predicted, measured, comparison, capacities);
  for (Plot& plot : training_plots(measured.losses)) report.sections.push_back(std::move(plot));
  return report;
}

}  // namespace slipway::scenarios
