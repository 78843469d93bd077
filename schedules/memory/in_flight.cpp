#include "schedules/memory/in_flight.h"

namespace slipway::schedules {
namespace {

// The moment at which a rank holds most.
struct Peak {
  std::size_t actions = 0;  // so many are done
  int pair_of = -1;         // with a layer more of this stage, while a pair alternates
};

class Live {
 public:
  Live(std::span<const HeldBytes> of_stage, const std::vector<char>& splits) : of_stage_(of_stage), splits_(splits) {}

  void run(const Action& action) {
    const HeldBytes& bytes = of_stage_[action.stage];
    if (action.pass == Pass::forward) live_ += bytes.activations;
    if (action.pass == Pass::backward) live_ -= bytes.activations;
    if (action.pass == Pass::input_grad)
      live_ += -bytes.activations + (splits_[action.stage] != 0 ? bytes.for_weights : 0);
    if (action.pass == Pass::weight_grad) live_ -= bytes.for_weights;
  }
  double bytes() const { return live_; }

 private:
  std::span<const HeldBytes> of_stage_;
  const std::vector<char>& splits_;  // stages with separate weight gradients
  double live_ = 0;
};

// The stage whose layer a pair that begins with action i holds besides; -1: no layers alternate.
int stage_of_pair(std::span<const Action> actions, std::size_t i, std::span<const HeldBytes> of_stage) {
  if (!actions[i].with_next || i + 1 == actions.size()) return -1;
  const int one = actions[i].stage, other = actions[i + 1].stage;
  const int larger = of_stage[one].layer_of_pair >= of_stage[other].layer_of_pair ? one : other;
  return of_stage[larger].layer_of_pair > 0 ? larger : -1;
}

Peak peak_of(std::span<const Action> actions, std::span<const HeldBytes> of_stage, const std::vector<char>& splits) {
  Live live(of_stage, splits);
  double most = 0;
  Peak peak;
  const auto keep = [&](double bytes, Peak at) {
    if (bytes > most) most = bytes, peak = at;
  };
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const int pair = stage_of_pair(actions, i, of_stage);
    const double layer = pair >= 0 ? of_stage[pair].layer_of_pair : 0;
    if (pair >= 0) {
      keep(live.bytes() + layer, {i, pair});
      live.run(actions[i++]);
    }
    live.run(actions[i]);
    keep(live.bytes() + layer, {i + 1, pair});
  }
  return peak;
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
  const Peak peak = peak_of(actions, of_stage, splits);
  for (const Action& action : actions.first(peak.actions)) {
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
    if (static_cast<int>(s) == peak.pair_of && bytes.activations > 0)
      micro_batches[s] += bytes.layer_of_pair / bytes.activations;
  }
  return micro_batches;
}

}  // namespace slipway::schedules
