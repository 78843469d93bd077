// What a scenario's schedule.csv must be: a whole step of the scenario's shape.
#include <algorithm>
#include <map>
#include <set>

#include "scenarios/language/check_scenario.h"
#include "schedules/graph/checks_actions.h"

namespace slipway {
namespace {

// Every micro-batch on half of the stages: what Chimera's rows look like to a schedule with one copy.
bool looks_bidirectional(const ActionLists& lists, const ScheduleShape& shape) {
  if (shape.copies > 1 || shape.chunks != 2) return false;
  std::map<int, std::set<int>> stages_of;  // of each micro-batch
  for (const auto& row : lists)
    for (const Action& action : row) stages_of[action.micro_batch].insert(action.stage);
  return std::all_of(stages_of.begin(), stages_of.end(), [&](const auto& each) {
    return static_cast<int>(each.second.size()) == shape.pipeline;
  });
}

}  // namespace

void check_csv(Settings& settings, const Scenario& scenario, const ScheduleShape& shape) {
  constexpr std::size_t most = 3;
  const ActionLists& lists = *scenario.schedule.actions;
  const std::vector<ActionDefect> defects = check_actions(lists, shape);
  const std::string file = settings.text("schedule.csv");  // a refused key has none any more
  if (!defects.empty() && looks_bidirectional(lists, shape)) {
    settings.refuse(
        "schedule.csv", "every micro-batch goes through half of the stages only",
        "if that is one copy of the model for each direction, set schedule.name to chimera; otherwise "
        "correct " +
            file + "\n" + grid(lists, {}, {}, shape.pipeline * shape.chunks));
    return;
  }
  for (std::size_t i = 0; i < std::min(most, defects.size()); ++i) {
    const ActionDefect& defect = defects[i];
    const bool cut = i + 1 == most && defects.size() > most;
    settings.refuse("schedule.csv", defect.message,
                    "correct " + file + ", or leave schedule.csv out" +
                        (cut ? " (" + std::to_string(defects.size() - most) + " more)" : "") + "\n" +
                        grid(lists, defect.culprits, defect.missing, shape.pipeline * shape.chunks));
  }
}

int chunks_of(const ActionLists& lists, int copies) {
  std::set<int> seen;
  for (const auto& row : lists)
    for (const Action& action : row) seen.insert(action.stage);
  int stages = 0;
  while (seen.contains(stages)) ++stages;
  const int rows = std::max(1, static_cast<int>(lists.size())) * copies;
  return std::max(stages - 1, 0) / rows + 1;
}

}  // namespace slipway
