#include "scenarios/commands/plan/plan_page.h"

#include <fmt/format.h>

#include "scenarios/commands/plan/table.h"
#include "scenarios/commands/simulate/simulate_report.h"
#include "scenarios/predict/readable.h"
#include "scenarios/report/sections.h"
#include "scenarios/search/layout_text.h"
#include "schedules/time/replay.h"

namespace slipway::scenarios {
namespace {

// "tensor 8, pipeline 4, data 2"
std::string degrees_text(const Step& choice) {
  const Layout& layout = choice.layout;
  std::string text = fmt::format("tensor {}, pipeline {}, data {}", layout.tensor, layout.pipeline, layout.data);
  if (layout.context > 1) text += fmt::format(", context {}", layout.context);
  if (layout.expert > 1) text += fmt::format(", expert {}", layout.expert);
  if (layout.zero > 0) text += fmt::format(", ZeRO {}", layout.zero);
  return text + fmt::format(", micro-batch {}, {}", choice.micro_batch, schedule_text(choice));
}

PlotSeries series_of(const char* name, const std::vector<PricedLayout>& rows, Mark mark) {
  PlotSeries series{name, {}, {}, mark};
  for (const PricedLayout& row : rows) {
    if (!row.simulated) continue;
    series.x.push_back(row.step_time_s), series.y.push_back(row.memory_bytes);
    series.labels.push_back(degrees_text(row.choice));
  }
  return series;
}

Plot pareto_plot(const PlanAnswer& answer) {
  Plot plot{"Memory and time of layouts",
            "Left and low is better. On the front, every layout that is faster needs more memory. "
            "Memory: what 99 % of needs stay below.",
            {"step time", PlotAxis::Unit::seconds},
            {"memory of the fullest rank", PlotAxis::Unit::bytes},
            {},
            false,
            {}};
  plot.series.push_back(series_of("Pareto front", answer.result.pareto, Mark::steps));
  plot.series.push_back(series_of("on the front", answer.result.pareto, Mark::points));
  plot.series.push_back(series_of("the fastest that fit", answer.result.best, Mark::points));
  std::erase_if(plot.series, [](const PlotSeries& series) { return series.x.empty(); });
  if (answer.result.best.empty() || plot.series.empty()) return plot;
  const PricedLayout& best = answer.result.best.front();
  const double capacity = best.memory_share > 0 ? best.memory_bytes / best.memory_share : 0;
  double least = best.step_time_s, most = least;
  for (const PlotSeries& series : plot.series)
    for (const double x : series.x) least = std::min(least, x), most = std::max(most, x);
  if (capacity > 0)
    plot.levels.push_back({"capacity " + readable_bytes(capacity), {least, most}, {capacity, capacity}});
  return plot;
}

ReportTable table_of(const PlanAnswer& answer, const std::vector<PricedLayout>& rows, const char* title) {
  std::vector<PlanRow> items;
  for (std::size_t i = 0; i < rows.size(); ++i)
    items.push_back({answer.scenario, rows[i], i + 1 < rows.size() ? &rows[i + 1] : nullptr});
  return {title, "", plan_row_keys().table(items)};
}

std::string reason_of(const PricedLayout& best) {
  const bool exposed = best.exposed_comm_share > best.bubble_share;
  return fmt::format("The fastest layout that fits: {}. Compute fills {} of its step; its largest loss is {}, {}.",
                     degrees_text(best.choice), readable_share(best.compute_share),
                     exposed ? "communication that nothing hides" : "the bubble",
                     readable_share(exposed ? best.exposed_comm_share : best.bubble_share));
}

}  // namespace

Report report_of(const PlanAnswer& answer, const SimulatedStep* winner) {
  const SearchResult& result = answer.result;
  Report report;
  report.command = "plan";
  report.headline = fmt::format("{}: the best layout of {} on {}", answer.scenario.name,
                                answer.scenario.step.model->name, machines_text(answer.scenario.cluster));
  if (result.best.empty()) {
    report.reason = result.complete ? "No layout fits." : "The search was interrupted before a layout was simulated.";
    report.cards = {{"layouts that fit", "0", "of " + readable_count(static_cast<double>(result.legal)), Tone::bad}};
    return report;
  }
  const PricedLayout& best = result.best.front();
  report.reason = reason_of(best);
  report.cards = {
      {"step time of the fastest", readable_seconds(best.step_time_s), interval_note(best.interval)},
      {"MFU", best.mfu > 0 ? readable_share(best.mfu) : "-", ""},
      {"memory", readable_bytes(best.memory_bytes), readable_share(best.memory_share) + " of a GPU", Tone::good},
      {"layouts", readable_count(static_cast<double>(result.legal)),
       fmt::format("{} too large, {} simulated", readable_count(static_cast<double>(result.too_large)),
                   readable_count(static_cast<double>(result.simulated)))}};
  if (!result.complete) report.cards.push_back({"search", "interrupted", "the best so far", Tone::bad});
  report.sections.push_back(pareto_plot(answer));
  report.sections.push_back(table_of(answer, result.best, "The fastest layouts that fit"));
  report.sections.push_back(table_of(answer, result.pareto, "Less memory for more time: the Pareto front"));
  if (winner == nullptr) return report;
  TimelineView view = view_of(winner->prepared.graph, winner->simulation.timeline);
  report.sections.push_back(path_bar(view));
  Plot memory = memory_plot(view, memory_capacities(winner->prepared.scenario));
  report.sections.push_back(timeline_section(std::move(view), "Timeline of the fastest"));
  if (!memory.series.empty()) report.sections.push_back(std::move(memory));
  return report;
}

}  // namespace slipway::scenarios
