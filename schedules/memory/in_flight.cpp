#include "schedules/memory/in_flight.h"

#include <set>

namespace slipway::schedules {

std::map<int, double> held_at_peak(std::span<const Action> actions, const std::map<int, HeldBytes>& bytes_of_stage) {
  std::set<int> split;  // stages with weight gradients of their own
  for (const Action& action : actions) {
    if (action.pass == Pass::weight_grad) split.insert(action.stage);
  }
  struct Held {
    int whole = 0, for_weights = 0;  // micro-batches
  };
  std::map<int, Held> held, at_peak;
  double live = 0, peak = 0;
  const auto bytes_of = [&](int stage) {
    const auto bytes = bytes_of_stage.find(stage);
    return bytes == bytes_of_stage.end() ? HeldBytes{} : bytes->second;
  };
  const auto change = [&](int stage, int whole, int for_weights) {
    held[stage].whole += whole;
    held[stage].for_weights += for_weights;
    const HeldBytes bytes = bytes_of(stage);
    live += whole * bytes.activations + for_weights * bytes.for_weights;
  };
  for (const Action& action : actions) {
    if (action.pass == Pass::forward) change(action.stage, 1, 0);
    if (action.pass == Pass::backward) change(action.stage, -1, 0);
    if (action.pass == Pass::input_grad) change(action.stage, -1, split.contains(action.stage) ? 1 : 0);
    if (action.pass == Pass::weight_grad) change(action.stage, 0, -1);
    if (live <= peak) continue;
    peak = live;
    at_peak = held;
  }
  std::map<int, double> micro_batches;
  for (const auto& [stage, count] : at_peak) {
    const HeldBytes bytes = bytes_of(stage);
    micro_batches[stage] =
        count.whole + (bytes.activations > 0 ? count.for_weights * bytes.for_weights / bytes.activations : 0);
  }
  return micro_batches;
}

}  // namespace slipway::schedules
