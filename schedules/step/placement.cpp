#include "schedules/step/placement.h"

#include <algorithm>

namespace slipway::schedules {

std::vector<std::int32_t> Placement::holders(int part) const {
  std::vector<std::int32_t> ranks;
  for (int stage = part; stage < stages(); stage += parts()) ranks.push_back(rank[stage]);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<int> Placement::by_part() const {
  std::vector<int> list;
  for (int part = 0; part < parts(); ++part)
    for (int stage = part; stage < stages(); stage += parts()) list.push_back(stage);
  return list;
}

Placement placement_of(const ActionLists& lists, const ScheduleShape& shape) {
  const auto stages = static_cast<std::size_t>(shape.stages());
  const std::size_t rows = std::min(lists.size(), static_cast<std::size_t>(shape.pipeline));
  Placement placement{shape.copies, std::vector<std::int32_t>(stages)};
  std::vector<int> most(stages, 0);
  for (std::size_t stage = 0; stage < stages; ++stage)
    placement.rank[stage] = static_cast<std::int32_t>(stage) % shape.pipeline;
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<int> count(stages, 0);
    for (const Action& action : lists[row])
      if (action.stage >= 0 && action.stage < shape.stages()) ++count[action.stage];
    for (std::size_t stage = 0; stage < stages; ++stage) {
      if (count[stage] <= most[stage]) continue;
      most[stage] = count[stage];
      placement.rank[stage] = static_cast<std::int32_t>(row);
    }
  }
  return placement;
}

bool shares_table(const Model& model, const Layout& layout, const Placement& placement) {
  if (!reads_table(model.runs.back().block) || placement.rank.empty()) return false;
  if (layout.zero >= 2 && layout.data * layout.context > 1) return false;
  return placement.rank.front() == placement.rank[placement.parts() - 1];
}

}  // namespace slipway::schedules
