#include "schedules/lower/pairs.h"

#include <algorithm>

#include "schedules/graph/parallel.h"

namespace slipway::schedules {
namespace {

using Placed = std::vector<std::pair<std::uint32_t, TaskId>>;

// Tasks [first, last) are those of one pair.
void interleave(const TaskGraph& graph, Placed::iterator first, Placed::iterator last) {
  Placed forwards, backwards;
  for (auto at = first; at != last; ++at)
    (graph.work(at->second).pass == Pass::forward ? forwards : backwards).push_back(*at);
  const std::size_t n = forwards.size(), k = backwards.size();
  // Segment i of n stands at (2i + 1) / 2n of the pair.
  for (std::size_t i = 0, j = 0; i < n || j < k;) {
    const bool forward = j == k || (i < n && (2 * i + 1) * k <= (2 * j + 1) * n);
    *first++ = forward ? forwards[i++] : backwards[j++];
  }
}

// [first, middle) has input gradients, [middle, last) their weight gradients, both from the last segment to the first.
// Puts each weight gradient behind its input gradient, and in the same action.
void put_weights_behind(const TaskGraph& graph, Placed::iterator first, Placed::iterator middle,
                        Placed::iterator last) {
  Placed merged;
  auto weight = middle;
  const auto belongs = [&](const auto& placed) {
    const Work& work = graph.work(placed.second);
    return work.pass == Pass::input_grad && work.first_op == graph.work(weight->second).first_op;
  };
  for (auto at = first; at != middle; ++at) {
    merged.push_back(*at);
    if (weight != last && belongs(*at)) merged.emplace_back(at->first, (weight++)->second);
  }
  for (; weight != last; ++weight) merged.emplace_back(first->first, weight->second);
  std::copy(merged.begin(), merged.end(), first);
}

}  // namespace

void interleave_pairs(LoweringState& state) {
  if (!has_pairs(state.actions)) return;
  const Layout& layout = state.step.layout;
  each_in_parallel(state.placed.size(), state.graph.tasks.size(), [&](std::size_t rank) {
    const auto& actions =
        state.actions[static_cast<std::size_t>(coordinates_of(layout, static_cast<int>(rank)).pipeline)];
    auto& list = state.placed[rank];
    for (auto first = list.begin(); first != list.end();) {
      const auto last = std::find_if(first, list.end(), [&](const auto& each) { return each.first != first->first; });
      if (actions[first->first].with_next) interleave(state.graph, first, last);
      const bool is_delayed =
          state.step.delay_weight_grads && last != list.end() && actions[last->first].pass == Pass::weight_grad;
      const auto next =
          is_delayed ? std::find_if(last, list.end(), [&](const auto& each) { return each.first != last->first; })
                     : last;
      if (is_delayed) put_weights_behind(state.graph, first, last, next);
      first = next;
    }
  });
}

}  // namespace slipway::schedules
