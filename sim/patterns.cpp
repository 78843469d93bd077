#include "sim/patterns.h"

namespace slipway::sim {
namespace {

std::vector<MemberEdge> ring_of(std::size_t members) {
  std::vector<MemberEdge> edges;
  for (std::size_t i = 0; i < members; ++i) edges.push_back({i, (i + 1) % members, 1});
  return edges;
}

// Around each node's own ring, `share` to the next member and as much back if `both`.
void add_inside(std::vector<MemberEdge>& edges, const Span& span, double share, bool both) {
  const std::size_t g = span.per_node;
  if (g < 2) return;
  for (std::size_t first = 0; first < g * span.nodes; first += g)
    for (std::size_t i = 0; i < g; ++i) {
      edges.push_back({first + i, first + (i + 1) % g, share});
      if (both) edges.push_back({first + (i + 1) % g, first + i, share});
    }
}

void add_between(std::vector<MemberEdge>& edges, const Span& span, double share) {
  const std::size_t g = span.per_node, n = g * span.nodes;
  if (span.nodes < 2) return;
  for (std::size_t i = 0; i < n; ++i) edges.push_back({i, (i + g) % n, share});
}

// One half of each member's part S/g on each tree, up and down. S = n/(2(n−1))·X.
void add_trees(std::vector<MemberEdge>& edges, const Span& span) {
  const double n = span.members(), g = span.per_node;
  const double whole = n / (2 * (n - 1)) * (1 / tree_efficiency);
  add_inside(edges, span, whole * (g - 1) / g, true);
  for (const std::vector<int>& parent : double_binary_tree(span.nodes).parent) {
    for (std::size_t node = 0; node < parent.size(); ++node) {
      if (parent[node] < 0) continue;
      for (int member = 0; member < span.per_node; ++member) {
        const std::size_t child = node * span.per_node + member;
        const std::size_t above = parent[node] * span.per_node + member;
        edges.push_back({child, above, whole / g / 2});
        edges.push_back({above, child, whole / g / 2});
      }
    }
  }
}

std::vector<MemberEdge> pairs_of(std::size_t members) {
  std::vector<MemberEdge> edges;
  for (std::size_t i = 0; i < members; ++i)
    for (std::size_t ahead = 1; ahead < members; ++ahead)
      edges.push_back({i, (i + ahead) % members, 1.0 / static_cast<double>(members - 1)});
  return edges;
}

}  // namespace

std::vector<MemberEdge> edges_of(Pattern pattern, std::size_t members, const Span& span) {
  if (members < 2) return {};
  std::vector<MemberEdge> edges;
  switch (pattern) {
    case Pattern::line:
      for (std::size_t i = 0; i + 1 < members; ++i) edges.push_back({i, i + 1, 1});
      return edges;
    case Pattern::ring:
      return ring_of(members);
    case Pattern::rails:
      add_inside(edges, span, 1, false);
      add_between(edges, span, 1.0 / span.per_node);
      return edges;
    case Pattern::between:  // 2(N−1)/N·S/g of X = 2(n−1)/n·S
      add_between(edges, span, static_cast<double>(span.nodes - 1) / static_cast<double>(members - 1));
      return edges;
    case Pattern::trees:
      add_trees(edges, span);
      return edges;
    case Pattern::pairs:
      return pairs_of(members);
  }
  return edges;
}

}  // namespace slipway::sim
