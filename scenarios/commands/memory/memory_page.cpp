#include "scenarios/commands/memory/memory_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "scenarios/predict/readable.h"
#include "scenarios/report/sections.h"

namespace slipway::scenarios {
namespace {

// The larger of both ways, as the verdict takes it.
const MemoryParts& parts_of(const StageReport& stage) {
  return stage.need.way == MemoryWay::timeline ? stage.timeline : stage.estimate;
}

// The parts of one GPU's memory; little ones together. What is free is not coloured. `colour_of`: of the parts so far.
Bar parts_bar(const StageReport& stage, std::map<std::string, std::string>& colour_of) {
  constexpr double little = 0.01;
  constexpr std::array colours{"forward",   "exposed",       "weight-grad", "optimizer",
                               "recompute", "communication", "backward"};
  const MemoryParts& parts = parts_of(stage);
  const double whole = std::max(stage.capacity, sum(parts));
  Bar bar{fmt::format("Pipeline rank {}: {} of {}", stage.stage, readable_bytes(sum(parts)),
                      readable_bytes(stage.capacity)),
          fmt::format("Rank {}, peak in {}.", stage.rank, stage.peak_task),
          {}};
  double rest = 0;
  for (std::size_t i = 0; i < memory_parts; ++i) {
    const auto part = static_cast<MemoryPart>(i);
    if (parts[part] < little * whole)
      rest += parts[part];
    else
      bar.shares.push_back({words_for(part), readable_bytes(parts[part]), parts[part] / whole, ""});
  }
  std::ranges::stable_sort(bar.shares, std::greater(), &Share::share);
  for (Share& share : bar.shares)
    share.colour = colour_of.try_emplace(share.name, colours.at(colour_of.size() % colours.size())).first->second;
  if (rest > 0) bar.shares.push_back({"the rest", readable_bytes(rest), rest / whole, "other"});
  return bar;
}

std::string reason_of(const MemoryReport& report) {
  const Verdict& verdict = report.verdict;
  const StageReport& stage = report.stages[static_cast<std::size_t>(verdict.fullest)];
  const MemoryParts& parts = parts_of(stage);
  std::size_t most = 0;
  for (std::size_t i = 0; i < memory_parts; ++i)
    if (parts[static_cast<MemoryPart>(i)] > parts[static_cast<MemoryPart>(most)]) most = i;
  std::string text =
      fmt::format("{}. Pipeline rank {} is least likely to fit; its largest part is {}: {}.",
                  verdict.fits ? "It fits" : "It does not fit", verdict.fullest,
                  words_for(static_cast<MemoryPart>(most)), readable_bytes(parts[static_cast<MemoryPart>(most)]));
  if (verdict.fits || !report.search || report.search->tried.empty()) return text;
  const TriedChange& best = report.search->tried.front();
  const bool helps = best.refused.empty() && best.memory.fits();
  return text + (helps ? " The cheapest change that fits: " + best.variation.words + "."
                       : " No change that was tried makes it fit.");
}

}  // namespace

Report report_of(const SimulatedStep& step, const MemoryReport& memory) {
  const Verdict& verdict = memory.verdict;
  Report report;
  report.command = "memory";
  report.headline = headline(step.prepared);
  report.reason = reason_of(memory);
  report.cards = {{"memory of the fullest rank", readable_bytes(verdict.odds.bytes),
                   fmt::format("90 % interval: {} to {}", readable_bytes(verdict.odds.least()),
                               readable_bytes(verdict.odds.most())),
                   verdict.fits ? Tone::good : Tone::bad},
                  {"of a GPU with", readable_bytes(verdict.capacity), readable_share(verdict.share()) + " of it"},
                  {"probability to fit", readable_share(verdict.probability),
                   verdict.fits_cautious ? "99 % and more" : "less than 99 %"}};
  TimelineView view = view_of(step.prepared.graph, step.simulation.timeline);
  if (Plot plot = memory_plot(view, memory_capacities(step.prepared.scenario)); !plot.series.empty()) {
    plot.note += " Tensors of the simulated timeline; libraries and the allocator's waste come on top.";
    report.sections.push_back(std::move(plot));
  }
  constexpr std::size_t most_bars = 16;
  std::map<std::string, std::string> colour_of;
  for (std::size_t i = 0; i < std::min(memory.stages.size(), most_bars); ++i)
    report.sections.push_back(parts_bar(memory.stages[i], colour_of));
  report.sections.push_back(ReportTable{"By pipeline rank", "", stage_table(memory)});
  if (memory.search)
    report.sections.push_back(ReportTable{"Changes that save memory",
                                          "Step times replayed. Now " + readable_seconds(memory.step_time_s) + "; " +
                                              interval_note(memory.interval) + ".",
                                          change_table(memory)});
  report.sections.push_back(timeline_section(std::move(view)));
  return report;
}

}  // namespace slipway::scenarios
