#include "sim/deadlock.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "schedules/draw/grid.h"

namespace slipway::sim {
namespace {

constexpr std::size_t shown_lanes = 40;  // a screen; a thousand ranks usually wait for the same few

bool is_done(const Frontier& frontier, Instance instance) { return frontier.blockers[instance] == 0; }

// "2F0 in step 1"; the step only where there are several.
std::string name_of(const TaskGraph& graph, const Frontier& frontier, Instance instance) {
  const std::string label = label_of(graph, frontier.first_task(instance));
  return frontier.steps == 1 ? label : fmt::format("{} in step {}", label, instance / frontier.units->count + 1);
}

std::string lane_text(const TaskGraph& graph, const Lane& lane) {
  return fmt::format("rank {} {}", lane.rank, lane_name(graph, lane));
}

Instance head_of(const Frontier& frontier, std::size_t lane) {
  const Frontier::Head& head = frontier.heads[lane];
  return head.step * frontier.units->count + frontier.units->of_lane[lane][head.position];
}

bool has_head(const Frontier& frontier, std::size_t lane) {
  return frontier.heads[lane].step < static_cast<std::uint32_t>(frontier.steps);
}

std::vector<std::string> reasons(const TaskGraph& graph, const Frontier& frontier, Instance instance) {
  std::vector<std::string> result;
  const Instance unit = frontier.unit_of(instance), base = instance - unit;
  const auto& unit_of = frontier.units->chains->unit_of;
  for (const TaskId task : frontier.tasks_of(instance))
    for (const TaskId before : graph.predecessors[task])
      if (unit_of[before] != unit && !is_done(frontier, base + unit_of[before]))
        result.push_back(name_of(graph, frontier, base + unit_of[before]));
  if (base > 0)
    for (const auto& [from, to] : graph.carried)
      if (unit_of[to] == unit && !is_done(frontier, base - frontier.units->count + unit_of[from]))
        result.push_back(name_of(graph, frontier, base - frontier.units->count + unit_of[from]));
  for (const std::uint32_t lane : frontier.units->lanes_of[unit])
    if (has_head(frontier, lane) && head_of(frontier, lane) != instance)
      result.push_back(fmt::format("{}, which is at {}", lane_text(graph, frontier.units->lanes[lane]),
                                   name_of(graph, frontier, head_of(frontier, lane))));
  return result;
}

// The rank × step grid around the stuck heads, which are marked; nothing for a graph without actions.
std::string grid_of_heads(const TaskGraph& graph, const Frontier& frontier) {
  constexpr int columns_around = 8;
  GridOptions options{.ranks = {}, .culprits = {}, .around = columns_around};
  for (std::size_t lane = 0; lane < frontier.units->lanes.size() && options.culprits.size() < shown_lanes; ++lane)
    if (has_head(frontier, lane)) options.culprits.push_back(frontier.first_task(head_of(frontier, lane)));
  const bool has_actions =
      std::any_of(graph.tasks.begin(), graph.tasks.end(), [](const Task& task) { return task.micro_batch != none; });
  return has_actions ? "\n" + grid(graph, options) : "";
}

}  // namespace

std::string describe_deadlock(const TaskGraph& graph, const Frontier& frontier) {
  std::string text;
  std::size_t stuck = 0;
  for (std::size_t lane = 0; lane < frontier.units->lanes.size(); ++lane) {
    if (!has_head(frontier, lane) || ++stuck > shown_lanes) continue;
    const Instance head = head_of(frontier, lane);
    fmt::format_to(std::back_inserter(text), "\n  {}: {} waits for {}", lane_text(graph, frontier.units->lanes[lane]),
                   name_of(graph, frontier, head), fmt::join(reasons(graph, frontier, head), "; "));
  }
  if (stuck > shown_lanes) text += fmt::format("\n  ... and {} more lanes", stuck - shown_lanes);
  return text + grid_of_heads(graph, frontier);
}

}  // namespace slipway::sim
