#include "scenarios/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/predict/readable.h"
#include "scenarios/report/timeline_reduction.h"

namespace slipway::scenarios {

const char* name_of(SpanColour colour) {
  constexpr std::array<const char*, 7> names{"forward",   "backward",      "weight-grad", "recompute",
                                             "optimizer", "communication", "other"};
  return names.at(static_cast<std::size_t>(colour));
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < ranks.size(); first = last + 1) {
    for (last = first; last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1;) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[first]);
    if (last > first) text += (last == first + 1 ? ", " : "–") + std::to_string(ranks[last]);
  }
  return text;
}

TimelineSection timeline_section(TimelineView view, const std::string& title) {
  const auto rows = static_cast<std::int64_t>(view.rows.size());
  std::string note = fmt::format("Step {}, {}", view.step + 1, counted(view.ranks, "rank"));
  if (rows == 1 && view.ranks > 1)
    note += ", which all do the same and are one row";
  else if (rows < view.ranks)
    note += fmt::format(" that do {} different things; ranks that do the same are one row", rows);
  note += "; " + counted(static_cast<std::int64_t>(view.tasks), "task") + ".";
  if (view.causes_by_dates) note += " What a task waited for is judged by dates: the trace does not name it.";
  return {title, note, reduced(std::move(view))};
}

Bar path_bar(const TimelineView& view) {
  Bar bar{
      "What the step waits for: the critical path",
      "The chain of tasks of which each waited for the one before, from the first start to the last end of the step.",
      {}};
  constexpr double little = 0.01;
  double rest_s = 0;
  for (const PathShare& share : view.path) {
    if (share.seconds < little * view.seconds)
      rest_s += share.seconds;
    else
      bar.shares.push_back(
          {share.name, readable_seconds(share.seconds), share.seconds / view.seconds, name_of(share.colour)});
  }
  if (rest_s > 0)
    bar.shares.push_back({"the rest", readable_seconds(rest_s), rest_s / view.seconds, name_of(SpanColour::other)});
  return bar;
}

std::vector<Plot> training_plots(const std::vector<LossPoint>& losses) {
  if (losses.empty()) return {};
  PlotSeries loss{"loss", {}, {}}, held_out{"held-out data", {}, {}, Mark::points}, batch{"batch", {}, {}, Mark::steps};
  for (const LossPoint& point : losses) {
    const double step = point.step + 1;
    loss.x.push_back(step), loss.y.push_back(point.loss);
    if (point.evaluation_loss) held_out.x.push_back(step), held_out.y.push_back(*point.evaluation_loss);
    if (point.batch) batch.x.push_back(step), batch.y.push_back(static_cast<double>(*point.batch));
  }
  Plot losses_plot{"Loss", "Mean over the tokens of a step.", {"step"}, {"loss in nats"}, {std::move(loss)}, false, {}};
  if (!held_out.x.empty()) losses_plot.series.push_back(std::move(held_out));
  std::vector<Plot> plots{std::move(losses_plot)};
  if (!batch.x.empty())
    plots.push_back({"Batch", "Sequences of a step.", {"step"}, {"batch in sequences"}, {std::move(batch)}, false, {}});
  return plots;
}

Plot memory_plot(const TimelineView& view, const std::vector<double>& capacities) {
  constexpr std::size_t most_curves = 8;
  std::vector<std::pair<double, const RankView*>> peaks;
  for (const RankView& row : view.rows) {
    if (row.memory.empty()) continue;
    peaks.push_back({std::ranges::max_element(row.memory, {}, &MemoryPoint::bytes)->bytes, &row});
  }
  std::ranges::stable_sort(peaks, std::greater(), [](const auto& peak) { return peak.first; });
  Plot plot;
  plot.title = "Memory per rank over time";
  plot.x = {"time in the step", PlotAxis::Unit::seconds};
  plot.y = {"memory", PlotAxis::Unit::bytes};
  if (peaks.size() > most_curves)
    plot.note = fmt::format("The {} fullest of {} different ranks.", most_curves, peaks.size());
  peaks.resize(std::min(peaks.size(), most_curves));
  double capacity = 0;
  for (const auto& [peak, row] : peaks) {
    PlotSeries series{(row->ranks.size() == 1 ? "rank " : "ranks ") + ranks_text(row->ranks), {}, {}, Mark::steps};
    for (const MemoryPoint& point : thinned(row->memory, view.seconds))
      series.x.push_back(point.at_s), series.y.push_back(point.bytes);
    plot.series.push_back(std::move(series));
    const auto rank = static_cast<std::size_t>(row->ranks.front());
    if (rank < capacities.size() && (capacity == 0 || capacities[rank] < capacity)) capacity = capacities[rank];
  }
  if (capacity > 0 && !peaks.empty())
    plot.levels.push_back({"capacity " + readable_bytes(capacity), {0, view.seconds}, {capacity, capacity}});
  return plot;
}

}  // namespace slipway::scenarios
