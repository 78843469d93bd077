// The answer of `slipway plan` for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/basis.h"
#include "scenarios/plan.h"
#include "scenarios/readable.h"
#include "scenarios/search/search.h"
#include "scenarios/search/table.h"
#include "scenarios/search/variants.h"

namespace slipway {
namespace {

const char* recompute_name(Recompute recompute) {
  constexpr const char* names[] = {"none", "selective", "full"};
  return names[static_cast<std::size_t>(recompute)];
}

// "0-3, 6, 4-5": what ascends by ones is written as a range.
std::string ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0, end = 0; i < numbers.size(); i = end) {
    for (end = i + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (end > i + 1) text += fmt::format("-{}", numbers[end - 1]);
  }
  return text;
}

std::string where_text(const Scenario& scenario, const Layout& layout) {
  const Variant variant = variant_of(scenario, layout);
  return fmt::format("layers per stage {}; nodes {}", joined(variant.layers), ranges(variant.nodes));
}

std::string refinement_text(const Scenario& scenario, const SearchResult& result) {
  if (result.refined == 0) return "";
  std::string text = fmt::format(
      "\nNodes or links are not alike: where the stages are and what they hold. The first {} were refined by {} of other\n"
      "orders of nodes and splits of layers; before that the fastest took {}.\n",
      result.refined, counted(result.refinements, "simulation"), readable_seconds(result.unrefined_s));
  for (std::size_t i = 0; i < result.best.size(); ++i)
    text += fmt::format("  {}  {}\n", i + 1, where_text(scenario, result.best[i].choice.layout));
  return text;
}

std::string excluded_text(const SearchResult& result, const SearchOptions& options) {
  if (result.too_large == 0) return "";
  std::string text =
      fmt::format("\n{} more than {} of a GPU's memory and {} left out.",
                  counted(result.too_large, "layout") + (result.too_large == 1 ? " needs" : " need"),
                  readable_share(options.memory_share), result.too_large == 1 ? "is" : "are");
  const PricedLayout& row = *result.best_too_large;
  text += fmt::format(" The fastest of them would take {}{} a step and needs {}{} ({}):\n  {}\n",
                      row.simulated ? "" : "at least ", readable_seconds(row.step_time_s),
                      row.judged ? "" : "at least ", readable_bytes(row.memory_bytes),
                      readable_share(row.memory_share), layout_text(row.choice));
  return text;
}

}  // namespace

std::string layout_text(const LayoutChoice& choice) {
  const Layout& l = choice.layout;
  return fmt::format(
      "tensor {}{}, pipeline {}, chunks {}, context {}, data {}, zero {}; {}, micro-batch {}, "
      "recompute {}{}",
      l.tensor, l.sequence_parallel ? " with sequence parallel" : "", l.pipeline, l.chunks, l.context,
      l.data, l.zero, choice.schedule->name, choice.micro_batch, recompute_name(choice.recompute),
      l.split_list.empty() ? "" : ", layers per stage " + joined(l.split_list));
}

namespace {

struct Part {
  std::string what;
  double gain_s;
};

// Where there is no pipeline, idle ranks wait for others, whose micro-batches or reductions are not done.
std::string idle_name(const PricedLayout& a, const PricedLayout& b) {
  const bool piped = a.choice.layout.pipeline > 1, other_piped = b.choice.layout.pipeline > 1;
  if (piped && other_piped) return "bubble";
  return piped || other_piped ? "bubble and waiting for other GPUs" : "waiting for other GPUs";
}

std::vector<Part> parts_of(const PricedLayout& row, const PricedLayout& next) {
  const auto gain = [&](double PricedLayout::*share) { return next.*share * next.step_time_s - row.*share * row.step_time_s; };
  return {{"compute", gain(&PricedLayout::compute_share)},
          {idle_name(row, next), gain(&PricedLayout::bubble_share)},
          {"exposed communication", gain(&PricedLayout::exposed_comm_share)}};
}

}  // namespace

std::string why(const PricedLayout& row, const PricedLayout& next) {
  const double gain = next.step_time_s - row.step_time_s;
  if (gain <= 1e-3 * next.step_time_s) {
    const double bytes = next.memory_bytes - row.memory_bytes;
    if (bytes > 0.01 * next.memory_bytes) return "as fast, with " + readable_bytes(bytes) + " less memory";
    return gain > 0 ? "faster by less than 0.1 %" : "equal";
  }
  std::vector<Part> parts = parts_of(row, next);
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.gain_s > b.gain_s; });
  const std::string text = fmt::format("{} faster (-{}): less {} (-{})", readable_share(gain / next.step_time_s),
                                 readable_seconds(gain), parts.front().what, readable_seconds(parts.front().gain_s));
  std::string losses;
  for (auto part = parts.rbegin(); part != parts.rend() && part->gain_s < -0.05 * gain; ++part)
    losses += (losses.empty() ? " against more " : ", ") + part->what + " (+" + readable_seconds(-part->gain_s) + ")";
  return text + losses;
}

std::string search_text(const Scenario& scenario, const SearchResult& result,
                        const SearchOptions& options) {
  std::string text =
      fmt::format("{}: {}, global batch {} of {} tokens, on {}{}\n", scenario.name, scenario.model.name,
                  scenario.schedule.global_batch, scenario.model.sequence, machines_text(scenario.cluster),
                  pace_text(scenario));
  text += fmt::format("{} screened in {}, {} simulated in {}{}\n", counted(result.legal, "legal layout"),
                      readable_seconds(result.screening_s), result.simulated,
                      readable_seconds(result.simulation_s),
                      result.complete ? "" : "; INTERRUPTED: the best so far, not of all");
  if (!result.best.empty()) {
    std::vector<Basis> rows;
    for (const PricedLayout& row : result.best) rows.push_back(basis_of(with_layout(scenario, row.choice)));
    text += empty_line_first(basis_text(rows, "row"));
    text += "\nThe best, of all that fit:\n" + table_of(scenario, result.best, options.columns) + "\nWhy each wins over the next:\n";
    for (std::size_t i = 0; i + 1 < result.best.size(); ++i)
      text += fmt::format("  {}  {}\n", i + 1, why(result.best[i], result.best[i + 1]));
    text += refinement_text(scenario, result);
    text += "\nLess memory for more time (the front of both):\n" + table_of(scenario, result.pareto, options.columns);
  }
  text += excluded_text(result, options);
  return text;
}

}  // namespace slipway
