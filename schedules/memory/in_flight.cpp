#include "schedules/memory/in_flight.h"

#include <array>

namespace slipway::schedules {
namespace {

// What each pass adds to the bytes of its stage, by Pass.
using Added = std::array<double, 6>;

Added added_by_pass(const HeldBytes& bytes, bool splits) {
  Added added{};
  added[static_cast<std::size_t>(Pass::forward)] = bytes.activations;
  added[static_cast<std::size_t>(Pass::backward)] = -bytes.activations;
  added[static_cast<std::size_t>(Pass::input_grad)] = -bytes.activations + (splits ? bytes.for_weights : 0);
  added[static_cast<std::size_t>(Pass::weight_grad)] = -bytes.for_weights;
  return added;
}

// Number of actions after which the rank holds most.
std::size_t actions_to_peak(std::span<const Action> actions, const std::vector<Added>& added) {
  double live = 0, peak = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    live += added[actions[i].stage][static_cast<std::size_t>(actions[i].pass)];
    if (live > peak) peak = live, at = i + 1;
  }
  return at;
}

}  // namespace

std::vector<double> held_at_peak(std::span<const Action> actions, std::span<const HeldBytes> of_stage) {
  std::vector<char> splits(of_stage.size());  // the stage has weight gradients of its own
  for (const Action& action : actions)
    if (action.pass == Pass::weight_grad) splits[action.stage] = 1;
  std::vector<Added> added;
  for (std::size_t s = 0; s < of_stage.size(); ++s) added.push_back(added_by_pass(of_stage[s], splits[s] != 0));
  std::vector<int> whole(of_stage.size()), for_weights(of_stage.size());  // micro-batches
  for (const Action& action : actions.first(actions_to_peak(actions, added))) {
    const int stage = action.stage;
    whole[stage] += action.pass == Pass::forward;
    whole[stage] -= action.pass == Pass::backward || action.pass == Pass::input_grad;
    for_weights[stage] += action.pass == Pass::input_grad && splits[stage] != 0;
    for_weights[stage] -= action.pass == Pass::weight_grad;
  }
  std::vector<double> micro_batches;
  for (std::size_t s = 0; s < of_stage.size(); ++s) {
    const HeldBytes& bytes = of_stage[s];
    micro_batches.push_back(whole[s] +
                            (bytes.activations > 0 ? for_weights[s] * bytes.for_weights / bytes.activations : 0));
  }
  return micro_batches;
}

}  // namespace slipway::schedules
