// Every action of the schedule, stage by stage: forwards from first to last, backwards from last to first.
#include <algorithm>

#include "schedules/graph/action_lowering.h"
#include "schedules/graph/parallel.h"

namespace slipway {
namespace {

// A backward is about as many tasks as its forward, twice as many with recomputation. More than that costs a copy.
void make_room_for_all(LoweringState& state) {
  std::size_t actions = 0;
  for (const auto& list : state.actions) actions += list.size();
  state.builder.make_room(1.6 * static_cast<double>(actions));
}

void lower_stage_actions(LoweringState& state, int stage, Pass pass) {
  constexpr auto absent = std::numeric_limits<std::uint32_t>::max();
  for (int micro_batch = 0; micro_batch < state.graph.micro_batches; ++micro_batch) {
    for (int i = 0; i < state.input.slices; ++i) {
      const int slice = pass == Pass::forward ? i : state.input.slices - 1 - i;
      const Action action{pass, stage, micro_batch, slice};
      if (state.index_of(action) == absent) continue;
      ActionLowering lowering(state, action);
      const bool is_first = state.graph.tasks.empty();
      if (pass == Pass::forward)
        lowering.forward();
      else if (pass == Pass::weight_grad)
        lowering.weight_grad();
      else
        lowering.backward();
      if (is_first) make_room_for_all(state);
    }
  }
}

}  // namespace

void lower_passes(LoweringState& state) {
  for (int stage = 0; stage < state.stages(); ++stage) lower_stage_actions(state, stage, Pass::forward);
  for (int stage = state.stages() - 1; stage >= 0; --stage) {
    for (const Pass pass : {Pass::backward, Pass::input_grad, Pass::weight_grad}) {
      lower_stage_actions(state, stage, pass);
    }
  }
}

void place_compute_order(LoweringState& state) {
  each_in_parallel(state.placed.size(), state.graph.tasks.size(), [&](std::size_t rank) {
    auto& list = state.placed[rank];
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  });
}

}  // namespace slipway
