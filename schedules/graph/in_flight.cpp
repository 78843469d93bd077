#include "schedules/graph/in_flight.h"

#include <set>

namespace slipway {

std::map<int, int> held_at_peak(std::span<const Action> actions,
                                const std::map<int, double>& bytes_of_stage) {
  std::set<int> split;  // stages with weight gradients of their own
  for (const Action& action : actions) {
    if (action.pass == Pass::weight_grad) split.insert(action.stage);
  }
  const auto frees = [&](const Action& action) {
    return action.pass == Pass::weight_grad || action.pass == Pass::backward ||
           (action.pass == Pass::input_grad && !split.contains(action.stage));
  };
  std::map<int, int> held, at_peak;
  double live = 0, peak = 0;
  for (const Action& action : actions) {
    const int change = action.pass == Pass::forward ? 1 : frees(action) ? -1 : 0;
    if (change == 0) continue;
    held[action.stage] += change;
    const auto weight = bytes_of_stage.find(action.stage);
    live += change * (weight == bytes_of_stage.end() ? 0 : weight->second);
    if (live <= peak) continue;
    peak = live;
    at_peak = held;
  }
  return at_peak;
}

}  // namespace slipway
