// The answer of `slipway plan` for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/readable.h"
#include "scenarios/search.h"
#include "scenarios/search_variants.h"

namespace slipway {
namespace {

const char* recompute_name(Recompute recompute) {
  constexpr const char* names[] = {"none", "selective", "full"};
  return names[static_cast<std::size_t>(recompute)];
}

std::vector<std::string> cells_of(const PricedLayout& row) {
  const Layout& l = row.choice.layout;
  return {std::to_string(l.tensor) + (l.sequence_parallel ? " sp" : ""),
          std::to_string(l.pipeline),
          std::to_string(l.chunks),
          std::to_string(l.context),
          std::to_string(l.data),
          std::to_string(row.choice.micro_batch),
          std::to_string(l.zero),
          recompute_name(row.choice.recompute),
          row.choice.schedule->name,
          readable_seconds(row.step_time_s),
          readable_share(row.mfu),
          readable_bytes(row.memory_bytes) + " (" + readable_share(row.memory_share) + ")",
          readable_share(row.bubble_share),
          readable_share(row.exposed_comm_share)};
}

const std::vector<std::string> heading = {"tensor", "pipeline", "chunks",    "context",  "data",
                                          "batch",  "zero",     "recompute", "schedule", "step",
                                          "MFU",    "memory",   "bubble",    "exposed"};

std::string table_of(const std::vector<PricedLayout>& rows) {
  std::vector<std::vector<std::string>> cells;
  cells.push_back({"#"});
  cells.back().insert(cells.back().end(), heading.begin(), heading.end());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    cells.push_back({std::to_string(i + 1)});
    const auto more = cells_of(rows[i]);
    cells.back().insert(cells.back().end(), more.begin(), more.end());
  }
  return aligned_table(cells, "  ");
}

struct Part {
  const char* less;
  double gain_s;
};

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

std::string why(const PricedLayout& row, const PricedLayout& next) {
  const double gain = next.step_time_s - row.step_time_s;
  if (gain <= 1e-3 * next.step_time_s) {
    const double bytes = next.memory_bytes - row.memory_bytes;
    if (bytes > 0.01 * next.memory_bytes) return "as fast, with " + readable_bytes(bytes) + " less memory";
    return gain > 0 ? "faster by less than 0.1 %" : "equal";
  }
  const auto seconds = [](const PricedLayout& r, double share) { return share * r.step_time_s; };
  const Part parts[] = {
      {"less compute", seconds(next, next.compute_share) - seconds(row, row.compute_share)},
      {"less bubble", seconds(next, next.bubble_share) - seconds(row, row.bubble_share)},
      {"less exposed communication",
       seconds(next, next.exposed_comm_share) - seconds(row, row.exposed_comm_share)}};
  const Part* most = std::max_element(std::begin(parts), std::end(parts),
                                      [](const Part& a, const Part& b) { return a.gain_s < b.gain_s; });
  return fmt::format("{} faster: {} (-{})", readable_share(gain / next.step_time_s), most->less,
                     readable_seconds(most->gain_s));
}

std::string search_text(const Scenario& scenario, const SearchResult& result,
                        const SearchOptions& options) {
  std::string text =
      fmt::format("{}: {}, global batch {} of {} tokens, on {} GPUs\n", scenario.name, scenario.model.name,
                  scenario.schedule.global_batch, scenario.model.sequence, rank_capacity(scenario.cluster));
  text += fmt::format("{} screened in {}, {} simulated in {}{}\n", counted(result.legal, "legal layout"),
                      readable_seconds(result.screening_s), result.simulated,
                      readable_seconds(result.simulation_s),
                      result.complete ? "" : "; INTERRUPTED: the best so far, not of all");
  if (!result.best.empty()) {
    text += "\nThe best, of all that fit:\n" + table_of(result.best) + "\nWhy each wins over the next:\n";
    for (std::size_t i = 0; i + 1 < result.best.size(); ++i)
      text += fmt::format("  {}  {}\n", i + 1, why(result.best[i], result.best[i + 1]));
    text += refinement_text(scenario, result);
    text += "\nLess memory for more time (the front of both):\n" + table_of(result.pareto);
  }
  text += excluded_text(result, options);
  return text;
}

}  // namespace slipway
