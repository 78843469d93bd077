#include "schedules/check/findings.h"

#include <algorithm>

namespace slipway::schedules {

std::vector<std::uint32_t> positions_of(const TaskGraph& graph) {
  constexpr std::uint32_t unset = ~0U;
  if (graph.order.size() != graph.tasks.size()) return {};
  std::vector<std::uint32_t> position(graph.tasks.size(), unset);
  for (std::uint32_t at = 0; at < graph.order.size(); ++at) {
    const TaskId id = graph.order[at];
    if (id >= position.size() || position[id] != unset) return {};
    position[id] = at;
  }
  return position;
}

std::string spoken(const TaskGraph& graph, TaskId task) {
  const auto members = members_of(graph, task);
  std::string text = label_of(graph, task) + (members.size() == 1 ? " on rank " : " on ranks ");
  constexpr std::size_t most = 8;
  for (std::size_t i = 0; i < std::min(members.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(members[i]);
  }
  if (members.size() > most) text += " and " + std::to_string(members.size() - most) + " more";
  return text;
}

}  // namespace slipway::schedules
