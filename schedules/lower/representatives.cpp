#include "schedules/lower/representatives.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <optional>
#include <vector>

#include "models/machine/topology.h"

namespace slipway::schedules {
namespace {

// The far end of an edge of a rank.
struct Neighbour {
  int fabric = 0, rank = 0;
  auto operator<=>(const Neighbour&) const = default;
};

// To whom each rank sends, and from whom it receives: the edges of all its groups' patterns (sim/patterns.h) in an
// order that like ranks share, and, in any order, the members of its expert group.
struct Neighbours {
  std::vector<Neighbour> to, from, mates;
};

// The ranks of each group of a data axis that joins these pipeline ranks, or of one inside a pipeline rank.
template <typename Each>
void visit_groups(int members, const std::vector<int>& pipelines, int stride, int degree, Each each) {
  for (int first = 0; first < members; ++first) {
    if (first / stride % degree != 0) continue;
    std::vector<std::int32_t> ranks;
    for (const int pipeline : pipelines)
      for (int i = 0; i < degree; ++i) ranks.push_back(pipeline * members + first + i * stride);
    each(ranks);
  }
}

class NeighbourTable {
 public:
  NeighbourTable(const Cluster& cluster, const Layout& layout, const JoinedRanks& joined)
      : cluster_(cluster),
        layout_(layout),
        joined_(joined),
        members_(member_count(layout)),
        of_rank_(static_cast<std::size_t>(rank_count(layout))) {
    const int t = layout.tensor, cut = expert_tensor_of(sharding_of(layout));
    add_inner(Axis::tensor, 1, t);
    for (const int copies : joined.kv_copies) add_inner(Axis::tensor, 1, copies);
    add_inner(Axis::context, t, layout.context);
    add_data(Axis::data, t, shards_of(layout));
    if (layout.replicate > 1) add_data(Axis::data, t * shards_of(layout), layout.replicate);
    add_inner(Axis::data, t * layout.context, joined.balanced);
    if (joined.experts) {
      add_inner(Axis::expert_tensor, 1, cut);
      add_data(Axis::expert_data, layout.expert * cut, expert_data_of(layout));
      add_mates(cut, layout.expert);
      if (layout.dispatcher == Dispatcher::allgather) add_inner(Axis::expert, cut, layout.expert);
    }
    add_pipeline();
    add_embedding();
  }

  const Neighbours& of(int rank) const { return of_rank_[static_cast<std::size_t>(rank)]; }

 private:
  void add_edge(int from, int to) {
    const int fabric = fabric_between(cluster_, from, to);
    of_rank_[static_cast<std::size_t>(from)].to.push_back({fabric, to});
    of_rank_[static_cast<std::size_t>(to)].from.push_back({fabric, from});
  }

  void add_ring(const std::vector<std::int32_t>& ranks) {
    for (std::size_t i = 0; i < ranks.size(); ++i) add_edge(ranks[i], ranks[(i + 1) % ranks.size()]);
  }

  // Rings on all ports leave each node by the member that they entered next, so that equal members of all nodes are
  // neighbours, and those of a node among themselves. All other algorithms' edges are among these, but for trees.
  void add_rails(const std::vector<std::int32_t>& ranks, std::size_t per_node) {
    const std::size_t g = per_node, n = ranks.size();
    for (std::size_t i = 0; g > 1 && i < n; ++i) add_edge(ranks[i], ranks[i / g * g + (i + 1) % g]);
    for (std::size_t i = 0; g < n && i < n; ++i) add_edge(ranks[i], ranks[(i + g) % n]);
  }

  void add_group(Axis axis, const std::vector<std::int32_t>& ranks) {
    if (ranks.size() < 2) return;
    const bool on_all_ports =
        axis == Axis::expert || cluster_.algorithms[static_cast<std::size_t>(axis)] != Algorithm::ring;
    const auto per_node = on_all_ports ? ranks_per_node(cluster_, ranks) : std::nullopt;
    if (per_node) add_rails(ranks, static_cast<std::size_t>(*per_node));
    const bool shifts = axis == Axis::context && layout_.context_exchange == ContextExchange::ring;
    if (!per_node || shifts) add_ring(ranks);
  }

  void add_inner(Axis axis, int stride, int degree) {
    for (int pipeline = 0; pipeline < layout_.pipeline && degree > 1; ++pipeline)
      visit_groups(members_, {pipeline}, stride, degree, [&](const auto& ranks) { add_group(axis, ranks); });
  }

  // Copies of the model on mirrored pipeline ranks share their gradients.
  void add_data(Axis axis, int stride, int degree) {
    if (!joined_.mirrored) return add_inner(axis, stride, degree);
    for (int pipeline = 0; pipeline < layout_.pipeline / 2; ++pipeline)
      visit_groups(members_, {pipeline, layout_.pipeline - 1 - pipeline}, stride, degree,
                   [&](const auto& ranks) { add_group(axis, ranks); });
  }

  void add_mates(int stride, int degree) {
    for (int pipeline = 0; pipeline < layout_.pipeline && degree > 1; ++pipeline)
      visit_groups(members_, {pipeline}, stride, degree, [&](const auto& ranks) {
        for (const std::int32_t rank : ranks)
          for (const std::int32_t mate : ranks)
            if (mate != rank)
              of_rank_[static_cast<std::size_t>(rank)].mates.push_back({fabric_between(cluster_, rank, mate), mate});
      });
  }

  // Ahead and behind; where the second half of the ranks mirrors the first, the other way round there.
  void add_pipeline() {
    const int all = rank_count(layout_);
    for (int rank = 0; rank < all && layout_.pipeline > 1; ++rank) {
      const bool swaps = joined_.mirrored && rank / members_ >= layout_.pipeline / 2;
      for (const int ahead : {swaps ? all - members_ : members_, swaps ? members_ : all - members_}) {
        const int other = (rank + ahead) % all;
        of_rank_[static_cast<std::size_t>(rank)].to.push_back({fabric_between(cluster_, rank, other), other});
      }
    }
  }

  // That ring goes through the members of one pipeline rank and then through those of the other.
  void add_embedding() {
    for (int t = 0; t < layout_.tensor && !joined_.embedding.empty(); ++t) {
      std::vector<std::int32_t> ranks;
      for (const std::int32_t end : joined_.embedding)
        for (int place = t; place < members_; place += layout_.tensor) ranks.push_back(end * members_ + place);
      if (ranks.size() > 1) add_ring(ranks), add_group(Axis::embedding, ranks);
    }
  }

  const Cluster& cluster_;
  const Layout& layout_;
  const JoinedRanks& joined_;
  int members_;
  std::vector<Neighbours> of_rank_;
};

class Likeness {
 public:
  Likeness(const Cluster& cluster, const Layout& layout, const JoinedRanks& joined, const NeighbourTable& neighbours,
           const Representatives& representatives)
      : cluster_(cluster),
        layout_(layout),
        joined_(joined),
        neighbours_(neighbours),
        representatives_(representatives),
        members_(member_count(layout)) {}

  bool holds() const {
    for (int rank = 0; rank < rank_count(layout_); ++rank)
      if (!is_like(rank, stands_for(rank))) return false;
    return true;
  }

 private:
  // The representative; in mirrored pipelines, the one of the first half that does the same.
  int stands_for(int rank) const {
    const int representative = representative_of(layout_, representatives_, rank);
    const int pipeline = representative / members_, mirror = layout_.pipeline - 1 - pipeline;
    return joined_.mirrored && mirror < pipeline ? representative + (mirror - pipeline) * members_ : representative;
  }

  bool is_like(int rank, int other) const {
    if (rank == other) return true;
    if (place_of(cluster_, rank).group != place_of(cluster_, other).group) return false;
    if (slowdown_of(cluster_, rank) != slowdown_of(cluster_, other)) return false;
    const Neighbours &a = neighbours_.of(rank), &b = neighbours_.of(other);
    return same_edges(rank, a.to, other, b.to) && same_edges(rank, a.from, other, b.from) && has_like_mates(a, b);
  }

  bool same_edges(int rank, const std::vector<Neighbour>& edges, int other,
                  const std::vector<Neighbour>& others) const {
    if (edges.size() != others.size()) return false;
    for (std::size_t i = 0; i < edges.size(); ++i)
      if (!same_edge(rank, edges[i], other, others[i])) return false;
    return true;
  }

  // Tokens go from each member of an expert group to each: over the same fabrics, to members that the same ones stand
  // for, in any order.
  bool has_like_mates(const Neighbours& a, const Neighbours& b) const {
    if (a.mates.empty() && b.mates.empty()) return true;
    if (!cluster_.degradation.ports.empty() || !cluster_.weak_pairs.empty()) return false;
    const auto classes_of = [&](const Neighbours& of) {
      std::vector<Neighbour> classes;
      for (const Neighbour& mate : of.mates) classes.push_back({mate.fabric, stands_for(mate.rank)});
      std::sort(classes.begin(), classes.end());
      return classes;
    };
    return classes_of(a) == classes_of(b);
  }

  // True for two edges over one fabric, as slow or as sound, with an end that one member represents.
  bool same_edge(int rank, const Neighbour& end, int other, const Neighbour& other_end) const {
    if (end.fabric != other_end.fabric || stands_for(end.rank) != stands_for(other_end.rank)) return false;
    if (cluster_.degradation.ports.empty() && cluster_.weak_pairs.empty()) return true;
    const Place a = place_of(cluster_, rank), b = place_of(cluster_, end.rank);
    const Place c = place_of(cluster_, other), d = place_of(cluster_, other_end.rank);
    return port_state(cluster_, end.fabric, a) == port_state(cluster_, end.fabric, c) &&
           port_state(cluster_, end.fabric, b) == port_state(cluster_, end.fabric, d) &&
           pair_share(cluster_, a.node, b.node) == pair_share(cluster_, c.node, d.node);
  }

  const Cluster& cluster_;
  const Layout& layout_;
  const JoinedRanks& joined_;
  const NeighbourTable& neighbours_;
  const Representatives& representatives_;
  int members_;
};

// Gloo's pairs reach ranks over a node's own fabric and over the network, in other numbers for each rank's place.
bool sends_in_pairs(const Cluster& cluster) {
  return std::ranges::any_of(cluster.algorithms, [](Algorithm algorithm) { return algorithm == Algorithm::gloo; });
}

// Members of a tree are leaves and inner nodes, so no member represents all of them. Reduce-scatters and all-gathers,
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
  const bool reduces_experts = joined.experts && layout.zero == 0 && expert_data_of(layout) > 1;
  if (reduces_experts && trees(Axis::expert_data, near * layout.data)) return true;
  if (joined.balanced > 1 && trees(Axis::data, near * joined.balanced)) return true;
  return trees(Axis::tensor, layout.tensor) || (layout.context > 1 && trees(Axis::context, near)) ||
         ((layout.zero == 0 || layout.replicate > 1) && trees(Axis::data, near * layout.data));
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

// True if rank p−1−r runs for one copy of the model what rank r runs for the other, in the same order.
bool mirrors(const ActionLists& actions, const ScheduleShape& shape) {
  if (shape.copies != 2 || shape.pipeline % 2 != 0) return false;
  const int stages = shape.stages(), ranks = shape.pipeline;
  std::vector<int> twin(static_cast<std::size_t>(shape.micro_batches), none);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& list = actions[static_cast<std::size_t>(rank)];
    const auto& other = actions[static_cast<std::size_t>(ranks - 1 - rank)];
    if (list.size() != other.size()) return false;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Action mirrored = list[i];
      mirrored.stage = (mirrored.stage + stages / 2) % stages;
      int& micro_batch = twin[static_cast<std::size_t>(mirrored.micro_batch)];
      if (micro_batch == none) micro_batch = other[i].micro_batch;
      mirrored.micro_batch = micro_batch;
      if (mirrored != other[i]) return false;
    }
  }
  return true;
}

}  // namespace

JoinedRanks joined_ranks(const Step& step) {
  const Layout& layout = step.layout;
  JoinedRanks joined;
  joined.world = joins_all_ranks(step);
  joined.experts = dispatches_tokens(step);
  joined.kv_copies = kv_copies(step.model, layout.tensor);
  joined.balanced = balanced_replicas(step);
  const ScheduleShape shape = schedule_shape(step);
  joined.copies = shape.copies;
  const bool tied = reads_table(blocks_of(step.model).back());
  const bool rings = tied && layout.zero >= 2 && layout.data * layout.context > 1;
  if (!rings && shape.copies == 1) return joined;
  const ActionLists actions = action_lists(step);
  joined.mirrored = !tied && mirrors(actions, shape);
  if (!rings) return joined;
  const Placement placement = placement_of(actions, shape);
  joined.embedding = {placement.rank.front()};
  if (placement.rank.back() != placement.rank.front()) joined.embedding.push_back(placement.rank.back());
  return joined;
}

const char* why_no_representatives(const PricedCluster& cluster, const Layout& layout, const JoinedRanks& joined) {
  const auto shares_cores = [](const NodeGroup& group) { return group.machine.cores > 0; };
  const auto shares_links = [&](const Fabric& fabric) { return !is_star(cluster, fabric); };
  if (cluster.ranks_per_gpu > 1) return "ranks share GPUs";
  if (std::any_of(cluster.groups.begin(), cluster.groups.end(), shares_cores))
    return "ranks share the cores of their node";
  if (std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(), shares_links))
    return "messages share links of a fabric's topology";
  if (joined.copies > 1 && !joined.mirrored)
    return "the copies of the model do not mirror each other, or both have a tied table";
  if (joined.world && norm_is_traffic(cluster))
    return "the gradient norm is traffic on a fabric with this little latency";
  if (takes_trees(cluster, layout, joined)) return "the members of a tree differ";
  if (sends_in_pairs(cluster)) return "Gloo's exchanges are between all pairs of members";
  return nullptr;
}

Representatives representatives_of(const PricedCluster& cluster, const Layout& layout, const JoinedRanks& joined) {
  const int replicas = layout.data * layout.context;
  std::vector<Representatives> list;
  for (const int tensor : divisors(layout.tensor))
    for (const int count : divisors(replicas))
      if (count % layout.context == 0 || layout.context % count == 0) list.push_back({tensor, count});
  std::stable_sort(list.begin(), list.end(), [](const Representatives& a, const Representatives& b) {
    return a.tensor * a.replicas < b.tensor * b.replicas;
  });
  if (why_no_representatives(cluster, layout, joined) != nullptr) return {layout.tensor, replicas};
  const NeighbourTable neighbours(cluster, layout, joined);
  const auto found = std::find_if(list.begin(), list.end() - 1, [&](const Representatives& representatives) {
    return !splits_ports(cluster, layout, representatives) &&
           Likeness(cluster, layout, joined, neighbours, representatives).holds();
  });
  return *found;
}

}  // namespace slipway::schedules
