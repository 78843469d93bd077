#include "models/machine/collectives.h"

#include <algorithm>

namespace slipway::models {

namespace {

int rounded_log2(int number) {
  int log = 0;
  while ((1 << log) < number) ++log;
  return log;
}

// Bandwidth at which all of a node's ports send together, in `messages` of the same size of which none is faster than
// `cap`.
double node_bandwidth(const Span& span, double messages, double cap) {
  return span.nodes > 1 ? std::min(span.rails * span.between.bandwidth, messages * cap)
                        : std::numeric_limits<double>::infinity();
}
double bandwidth_inside(const Span& span) {
  return span.per_node > 1 ? span.inside.bandwidth : std::numeric_limits<double>::infinity();
}

Links multi_ring(const Span& span) {
  const double n = span.members(), nodes = span.nodes;
  return {((n - nodes) * span.inside.latency + (nodes - 1) * span.between.latency) / (n - 1),
          std::min(bandwidth_inside(span), node_bandwidth(span, span.per_node, span.next_cap))};
}

Links tree(const Span& span) {
  const double n = span.members(), g = span.per_node;
  const double latency = 2 * ((g - 1) * span.inside.latency + rounded_log2(span.nodes) * span.between.latency);
  const double bytes = tree_bytes_of_a_node(span.nodes),
               messages = 2 * g * bytes;  // half of a member's part on each tree
  const double slowest = std::min(g > 1 ? g / (g - 1) * bandwidth_inside(span) : bandwidth_inside(span),
                                  2 / bytes * node_bandwidth(span, messages, span.tree_cap));
  return {latency / (2 * (n - 1)), (n - 1) / n * tree_efficiency * slowest};
}

Links hierarchical(const Span& span) {
  const double n = span.members(), g = span.per_node, nodes = span.nodes;
  const double latency = (g - 1) * span.inside.latency + (nodes - 1) * span.between.latency;
  const double seconds_per_byte =
      (g - 1) / g / bandwidth_inside(span) + (nodes - 1) / nodes / node_bandwidth(span, g, span.next_cap);
  return {latency / (n - 1), (n - 1) / n / seconds_per_byte};
}

// In order: odd numbers are leaves, and the lowest set bit is a node's height.
int parent_of(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = node & -node, above = (node ^ bit) | (bit << 1);
  return above < nodes ? above : node ^ bit;
}

}  // namespace

double tree_bytes_of_a_node(int nodes) { return std::min(nodes, 4) / 2.0; }

Links as_ring(Algorithm algorithm, const Span& span) {
  if (algorithm == Algorithm::tree) return tree(span);
  return algorithm == Algorithm::hierarchical ? hierarchical(span) : multi_ring(span);
}

Links pairwise_as_ring(const Span& span, double inside, double between) {
  const double n = span.members(), g = span.per_node;
  const double latency = (g - 1) * span.inside.latency + (n - g) * span.between.latency;
  const double seconds_per_byte =
      std::max(inside * (g - 1) / n / bandwidth_inside(span),
               between * g * (n - g) / n / node_bandwidth(span, g * (n - g), span.pair_cap));
  return {latency / (n - 1), (n - 1) / n / seconds_per_byte};
}

// The second tree is the first one of mirrored numbers, or of shifted ones where mirroring would keep a node inner.
DoubleTree double_binary_tree(int nodes) {
  DoubleTree trees;
  const auto other = [&](int node) { return nodes % 2 == 0 ? nodes - 1 - node : (node + 1) % nodes; };
  const auto back = [&](int node) { return nodes % 2 == 0 ? nodes - 1 - node : (node + nodes - 1) % nodes; };
  for (int node = 0; node < nodes; ++node) {
    trees.parent[0].push_back(parent_of(node, nodes));
    const int parent = parent_of(back(node), nodes);
    trees.parent[1].push_back(parent < 0 ? -1 : other(parent));
  }
  return trees;
}

}  // namespace slipway::models
