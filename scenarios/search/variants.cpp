#include "scenarios/search/variants.h"

#include <algorithm>
#include <numeric>

#include "schedules/graph/balanced_split.h"

namespace slipway {
namespace {

using Lists = std::vector<std::vector<int>>;

bool are_alike(const Cluster& cluster, int a, int b) {
  const auto weak = [&](int node) {
    return std::any_of(cluster.weak_pairs.begin(), cluster.weak_pairs.end(),
                       [&](const WeakPair& pair) { return pair.node_a == node || pair.node_b == node; });
  };
  return group_of_node(cluster, a) == group_of_node(cluster, b) && !weak(a) && !weak(b);
}

// More than `most` where there are more.
Lists every_split(std::size_t stages, int layers, std::size_t most) {
  Lists list;
  std::vector<int> split(stages, 0);
  const auto fill = [&](const auto& again, std::size_t stage, int left) -> void {
    if (list.size() > most) return;
    if (stage + 1 == stages) {
      split[stage] = left;
      list.push_back(split);
      return;
    }
    for (int n = fewest_layers(static_cast<int>(stage), static_cast<int>(stages)); n <= left; ++n)
      split[stage] = n, again(again, stage + 1, left - n);
  };
  fill(fill, 0, layers);
  return list;
}

// Of orders that differ by nodes that are alike only the one in which those ascend.
Lists every_order(const Cluster& cluster, std::vector<int> order) {
  std::sort(order.begin(), order.end());
  Lists list;
  do {
    bool ascends = true;
    for (std::size_t i = 0; i < order.size(); ++i)
      for (std::size_t j = i + 1; j < order.size(); ++j)
        ascends = ascends && !(order[i] > order[j] && are_alike(cluster, order[i], order[j]));
    if (ascends) list.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return list;
}

}  // namespace

Variant variant_of(const Scenario& scenario, const Layout& layout) {
  Variant variant;
  for (const BlockRange& range : split_blocks(scenario.model, layout))
    variant.layers.push_back(range.last - range.first);
  variant.layers.front() -= 1, variant.layers.back() -= 1;  // embedding and head
  variant.nodes = layout.placement;
  if (variant.nodes.empty()) {
    variant.nodes.resize(static_cast<std::size_t>(node_count(scenario.cluster)));
    std::iota(variant.nodes.begin(), variant.nodes.end(), 0);
  }
  return variant;
}

std::optional<std::vector<Variant>> every_variant(const Cluster& cluster, const Variant& own, Freedom free,
                                                  std::size_t most) {
  constexpr std::size_t most_nodes = 6;  // 720 orders
  if (free.orders && own.nodes.size() > most_nodes) return std::nullopt;
  const int layers = std::accumulate(own.layers.begin(), own.layers.end(), 0);
  const Lists splits = free.splits ? every_split(own.layers.size(), layers, most) : Lists{own.layers};
  const Lists orders = free.orders ? every_order(cluster, own.nodes) : Lists{own.nodes};
  if (splits.size() * orders.size() > most) return std::nullopt;
  std::vector<Variant> all;
  for (const std::vector<int>& split : splits)
    for (const std::vector<int>& order : orders) all.push_back({split, order});
  return all;
}

std::vector<Variant> in_other_group_orders(const Cluster& cluster, const Variant& own) {
  constexpr std::size_t most_groups = 4;
  std::vector<Variant> list;
  std::vector<int> groups(cluster.groups.size());
  std::iota(groups.begin(), groups.end(), 0);
  if (groups.size() > most_groups) return list;
  while (std::next_permutation(groups.begin(), groups.end())) {
    const auto place = [&](int node) {
      return std::find(groups.begin(), groups.end(), group_of_node(cluster, node));
    };
    list.push_back(own);
    std::stable_sort(list.back().nodes.begin(), list.back().nodes.end(),
                     [&](int a, int b) { return place(a) < place(b); });
  }
  return list;
}

std::vector<Variant> moves_of(const Cluster& cluster, const Variant& from, Freedom free, std::size_t most,
                              std::uint64_t seed, std::uint64_t draw) {
  std::vector<Variant> list;
  for (std::size_t i = 0; free.splits && i < from.layers.size(); ++i)
    for (std::size_t j = 0; j < from.layers.size(); ++j) {
      if (i == j || from.layers[i] <= fewest_layers(static_cast<int>(i), static_cast<int>(from.layers.size()))) continue;
      list.push_back(from);
      --list.back().layers[i], ++list.back().layers[j];
    }
  for (std::size_t i = 0; free.orders && i < from.nodes.size(); ++i)
    for (std::size_t j = i + 1; j < from.nodes.size(); ++j) {
      if (are_alike(cluster, from.nodes[i], from.nodes[j])) continue;
      list.push_back(from);
      std::swap(list.back().nodes[i], list.back().nodes[j]);
    }
  if (list.size() <= most) return list;
  for (std::size_t i = 0; i < most; ++i)
    std::swap(list[i], list[i + random_bits(seed, draw * most + i) % (list.size() - i)]);
  list.resize(most);
  return list;
}

}  // namespace slipway
