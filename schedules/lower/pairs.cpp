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
      first = last;
    }
  });
}

}  // namespace slipway::schedules
