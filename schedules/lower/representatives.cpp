#include "schedules/lower/representatives.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "models/machine/topology.h"

namespace slipway::schedules {
namespace {

// Neighbours of member k in a ring of `degree` members at distance `stride`.
struct Neighbours {
  int next = 0, previous = 0;
};
Neighbours neighbours_of(int k, int stride, int degree) {
  const int place = k / stride % degree, first = k - place * stride;
  return {first + (place + 1) % degree * stride, first + (place + degree - 1) % degree * stride};
}

class Likeness {
 public:
  Likeness(const Cluster& cluster, const Layout& layout, const JoinedRanks& joined,
           const Representatives& representatives)
      : cluster_(cluster),
        layout_(layout),
        joined_(joined),
        representatives_(representatives),
        members_(layout.data * layout.context * layout.tensor) {}

  bool holds() const {
    for (int rank = 0; rank < layout_.pipeline * members_; ++rank)
      if (!is_like(rank, stands_for(rank))) return false;
    return true;
  }

 private:
  int stands_for(int rank) const { return representative_of(layout_, representatives_, rank); }

  bool is_like(int rank, int other) const {
    if (rank == other) return true;
    if (place_of(cluster_, rank).group != place_of(cluster_, other).group) return false;
    if (slowdown_of(cluster_, rank) != slowdown_of(cluster_, other)) return false;
    const int t = layout_.tensor, c = layout_.context, d = layout_.data;
    const int cut = expert_tensor_of(sharding_of(layout_)), e = layout_.expert;
    const int first = rank / members_ * members_, k = rank - first, l = other - first;
    if (joined_.experts && !has_like_mates(rank, other, cut, e)) return false;
    std::vector<std::pair<int, int>> rings{{1, t}, {t, c}, {t, d * c}};
    if (joined_.experts) rings.insert(rings.end(), {{1, cut}, {e * cut, expert_data_of(layout_)}});
    for (const auto& [stride, degree] : rings) {
      if (degree == 1) continue;
      const Neighbours a = neighbours_of(k, stride, degree), b = neighbours_of(l, stride, degree);
      if (!same_edge(rank, first + a.next, other, first + b.next) ||
          !same_edge(rank, first + a.previous, other, first + b.previous))
        return false;
    }
    const int all = layout_.pipeline * members_;
    for (const int ahead : {members_, all - members_})
      if (ahead % all != 0 && !same_edge(rank, (rank + ahead) % all, other, (other + ahead) % all)) return false;
    return is_like_in_embedding_ring(rank, other);
  }

  // Tokens go from each member of an expert group to each: over the same fabrics, to members that the same ones stand
  // for, in any order.
  bool has_like_mates(int rank, int other, int stride, int degree) const {
    const auto mates_of = [&](int of) {
      const int k = of % members_, first = of - k / stride % degree * stride;
      std::vector<std::pair<int, int>> mates;
      for (int i = 0; i < degree; ++i) {
        const int mate = first + i * stride;
        if (mate != of) mates.emplace_back(fabric_between(cluster_, of, mate), stands_for(mate));
      }
      std::sort(mates.begin(), mates.end());
      return mates;
    };
    const bool sound = cluster_.degradation.ports.empty() && cluster_.weak_pairs.empty();
    return degree == 1 || (sound && mates_of(rank) == mates_of(other));
  }

  // That ring goes through the members of one pipeline rank and then through those of the other.
  bool is_like_in_embedding_ring(int rank, int other) const {
    const std::vector<std::int32_t>& ends = joined_.embedding;
    const auto at = std::find(ends.begin(), ends.end(), rank / members_);
    if (at == ends.end()) return true;
    const int replicas = members_ / layout_.tensor, all = replicas * static_cast<int>(ends.size());
    const int first = static_cast<int>(at - ends.begin()) * replicas;
    const auto ahead_of = [&](int from, int ahead) {
      const int place = (first + from % members_ / layout_.tensor + ahead) % all;
      return ends[place / replicas] * members_ + place % replicas * layout_.tensor + from % layout_.tensor;
    };
    return same_edge(rank, ahead_of(rank, 1), other, ahead_of(other, 1)) &&
           same_edge(rank, ahead_of(rank, all - 1), other, ahead_of(other, all - 1));
  }

  // True for two edges over one fabric, as slow or as sound, to members that one member represents.
  bool same_edge(int from, int to, int other_from, int other_to) const {
    const int fabric = fabric_between(cluster_, from, to);
    if (stands_for(to) != stands_for(other_to) || fabric != fabric_between(cluster_, other_from, other_to))
      return false;
    if (cluster_.degradation.ports.empty() && cluster_.weak_pairs.empty()) return true;
    const Place a = place_of(cluster_, from), b = place_of(cluster_, to);
    const Place c = place_of(cluster_, other_from), d = place_of(cluster_, other_to);
    return port_state(cluster_, fabric, a) == port_state(cluster_, fabric, c) &&
           port_state(cluster_, fabric, b) == port_state(cluster_, fabric, d) &&
           pair_share(cluster_, a.node, b.node) == pair_share(cluster_, c.node, d.node);
  }

  const Cluster& cluster_;
  const Layout& layout_;
  const JoinedRanks& joined_;
  const Representatives& representatives_;
  int members_;
};

// Members of a tree are leaves and inner nodes, so nobody represents all of them. Reduce-scatters and all-gathers,
// groups inside one node and the few bytes of the others make no trees. Trees that NCCL would choose load their links
// as rings do (sim/fidelity.h).
bool takes_trees(const Cluster& cluster, const Layout& layout, const JoinedRanks& joined) {
  const auto trees = [&](Axis axis, int members) {
    return cluster.algorithms[static_cast<std::size_t>(axis)] == Algorithm::tree && members > 1 &&
           std::any_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
             return group.gpus_per_node % members != 0;  // a group of neighbours crosses nodes
           });
  };
  const int near = layout.tensor * layout.context;
  if (!joined.embedding.empty()) {  // an all-reduce: its sum is cut into slices that do not match
    const auto [first, last] = std::minmax_element(joined.embedding.begin(), joined.embedding.end());
    if (trees(Axis::embedding, (*last - *first + 1) * near * layout.data)) return true;
  }
  return trees(Axis::tensor, layout.tensor) || (layout.context > 1 && trees(Axis::context, near)) ||
         (layout.zero == 0 && trees(Axis::data, near * layout.data));
}

bool norm_is_traffic(const Cluster& cluster) {
  double start = std::numeric_limits<double>::infinity();
  for (const NodeGroup& group : cluster.groups)
    start = std::min(start, group.machine.trained ? group.machine.constants.node_start : 0);
  return std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                     [&](const Fabric& fabric) { return 8 / fabric.bandwidth >= fabric.latency + start; });
}

// All GPUs behind one port must be there: whole nodes, each within a pipeline rank.
bool splits_ports(const Cluster& cluster, const Layout& layout, const Representatives& representatives) {
  const bool shared = std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                                  [](const Fabric& fabric) { return fabric.gpus_per_port > 1; });
  if (!shared) return false;
  const int lowered = representatives.replicas * layout.tensor, members = layout.data * layout.context * layout.tensor;
  return representatives.tensor != layout.tensor ||
         std::any_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
           return lowered % group.gpus_per_node != 0 || members % group.gpus_per_node != 0;
         });
}

std::vector<int> divisors(int number) {
  std::vector<int> list;
  for (int d = 1; d <= number; ++d)
    if (number % d == 0) list.push_back(d);
  return list;
}

}  // namespace

JoinedRanks joined_ranks(const Step& step) {
  const Layout& layout = step.layout;
  JoinedRanks joined{joins_all_ranks(step), dispatches_tokens(step), {}};
  if (layout.zero < 2 || layout.data * layout.context == 1 || !blocks_of(step.model).back().tied) return joined;
  const Placement placement = placement_of(action_lists(step), schedule_shape(step));
  joined.embedding = {placement.rank.front()};
  if (placement.rank.back() != placement.rank.front()) joined.embedding.push_back(placement.rank.back());
  return joined;
}

const char* why_no_representatives(const Cluster& cluster, const Layout& layout, const JoinedRanks& joined) {
  const auto shares_cores = [](const NodeGroup& group) { return group.machine.cores > 0; };
  const auto shares_links = [&](const Fabric& fabric) { return !is_star(cluster, fabric); };
  if (cluster.ranks_per_gpu > 1) return "ranks share GPUs";
  if (std::any_of(cluster.groups.begin(), cluster.groups.end(), shares_cores))
    return "ranks share the cores of their node";
  if (std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(), shares_links))
    return "messages share links of a fabric's topology";
  if (joined.world && norm_is_traffic(cluster))
    return "the gradient norm is traffic on a fabric with this little latency";
  if (takes_trees(cluster, layout, joined)) return "the members of a tree differ";
  return nullptr;
}

Representatives representatives_of(const Cluster& cluster, const Layout& layout, const JoinedRanks& joined) {
  const int replicas = layout.data * layout.context;
  std::vector<Representatives> list;
  for (const int tensor : divisors(layout.tensor))
    for (const int count : divisors(replicas))
      if (count % layout.context == 0 || layout.context % count == 0) list.push_back({tensor, count});
  std::stable_sort(list.begin(), list.end(), [](const Representatives& a, const Representatives& b) {
    return a.tensor * a.replicas < b.tensor * b.replicas;
  });
  if (why_no_representatives(cluster, layout, joined) != nullptr) list = {{layout.tensor, replicas}};
  const auto found = std::find_if(list.begin(), list.end() - 1, [&](const Representatives& representatives) {
    return !splits_ports(cluster, layout, representatives) &&
           Likeness(cluster, layout, joined, representatives).holds();
  });
  return *found;
}

}  // namespace slipway::schedules
