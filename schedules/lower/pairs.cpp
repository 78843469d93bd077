#include "schedules/lower/pairs.h"

#include <algorithm>
#include <optional>
#include <utility>

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
// Puts each weight gradient behind its input gradient, and in the same action. The last one of a block, behind which its
// gradient is reduced, stands behind all of the block's input gradients: norms have their weights' gradients there.
void put_weights_behind(const TaskGraph& graph, Placed::iterator first, Placed::iterator middle,
                        Placed::iterator last) {
  using Task = Placed::value_type;
  Placed merged;
  auto weight = middle;
  const auto block_of = [&](const Task& placed) {
    const Work& work = graph.work(placed.second);
    return graph.operators(work)[static_cast<std::size_t>(work.first_op)].block;
  };
  const auto is_input = [&](const Task& placed) { return graph.work(placed.second).pass == Pass::input_grad; };
  const auto belongs = [&](const Task& placed) {
    return is_input(placed) && graph.work(placed.second).first_op == graph.work(weight->second).first_op;
  };
  std::optional<Task> held;
  for (auto at = first; at != middle; ++at) {
    merged.push_back(*at);
    if (weight != last && belongs(*at)) {
      const bool is_last_of_block = weight + 1 == last || block_of(weight[1]) != block_of(*weight);
      const Task placed{at->first, (weight++)->second};
      if (is_last_of_block)
        held = placed;
      else
        merged.push_back(placed);
    }
    const auto has_more = [&](const Task& later) { return is_input(later) && block_of(later) == block_of(*held); };
    if (held && std::none_of(at + 1, middle, has_more)) merged.push_back(*std::exchange(held, std::nullopt));
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
