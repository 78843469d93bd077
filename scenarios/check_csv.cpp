// What a scenario's schedule.csv must be: a whole step of the scenario's shape.
#include <algorithm>

#include "scenarios/check_scenario.h"
#include "schedules/graph/checks_actions.h"

namespace slipway {

void check_csv(Settings& settings, const Scenario& scenario, const ScheduleShape& shape) {
  constexpr std::size_t most = 3;
  const ActionLists& lists = *scenario.schedule.actions;
  const std::vector<ActionDefect> defects = check_actions(lists, shape);
  const std::string file = settings.text("schedule.csv");  // a refused key has none any more
  for (std::size_t i = 0; i < std::min(most, defects.size()); ++i) {
    const ActionDefect& defect = defects[i];
    const bool cut = i + 1 == most && defects.size() > most;
    settings.refuse("schedule.csv", defect.message,
                    "correct " + file + ", or leave schedule.csv out" +
                        (cut ? " (" + std::to_string(defects.size() - most) + " more)" : "") +
                        "\n" + grid(lists, defect.culprits, defect.missing, shape.pipeline * shape.chunks));
  }
}

int chunks_of(const ActionLists& lists, int copies) {
  int stages = 1;
  for (const auto& row : lists)
    for (const Action& action : row) stages = std::max(stages, action.stage + 1);
  const int rows = std::max(1, static_cast<int>(lists.size())) * copies;
  return (stages - 1) / rows + 1;
}

}  // namespace slipway
