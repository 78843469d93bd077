#include "schedules/memory/in_flight.h"

namespace slipway::schedules {
namespace {

// Number of actions after which the rank holds most. `splits`: stages with weight gradients of their own.
std::size_t actions_to_peak(std::span<const Action> actions, std::span<const HeldBytes> of_stage,
                            const std::vector<char>& splits) {
  double live = 0, peak = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const int stage = actions[i].stage;
    const HeldBytes& bytes = of_stage[stage];
    const Pass pass = actions[i].pass;
    if (pass == Pass::forward) live += bytes.activations;
    if (pass == Pass::backward) live -= bytes.activations;
    if (pass == Pass::input_grad) live += -bytes.activations + (splits[stage] != 0 ? bytes.for_weights : 0);
    if (pass == Pass::weight_grad) live -= bytes.for_weights;
    if (live > peak) peak = live, at = i + 1;
  }
  return at;
}

}  // namespace

std::vector<double> held_at_peak(std::span<const Action> actions, std::span<const HeldBytes> of_stage) {
  std::vector<char> splits(of_stage.size());
  for (const Action& action : actions)
    if (action.pass == Pass::weight_grad) splits[action.stage] = 1;
  struct Held {
    int whole = 0, for_weights = 0;  // micro-batches
  };
  std::vector<Held> held(of_stage.size());
  for (const Action& action : actions.first(actions_to_peak(actions, of_stage, splits))) {
    Held& of = held[action.stage];
    of.whole += action.pass == Pass::forward;
    of.whole -= action.pass == Pass::backward || action.pass == Pass::input_grad;
    of.for_weights += action.pass == Pass::input_grad && splits[action.stage] != 0;
    of.for_weights -= action.pass == Pass::weight_grad;
  }
  std::vector<double> micro_batches(of_stage.size());
  for (std::size_t s = 0; s < of_stage.size(); ++s) {
    const HeldBytes& bytes = of_stage[s];
    micro_batches[s] =
        held[s].whole + (bytes.activations > 0 ? held[s].for_weights * bytes.for_weights / bytes.activations : 0);
  }
  return micro_batches;
}

}  // namespace slipway::schedules
