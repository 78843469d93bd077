#include "schedules/bound/balanced_split.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

#include "schedules/bound/estimate_parts.h"
#include "schedules/lower/static_bytes.h"
#include "schedules/time/link_path.h"

namespace slipway::schedules {

namespace {

using Parts = StepEstimator::Parts;
double seconds_of(const BlockPrice& price, double overhead, const LinkPath& tensor, const LinkPath& context) {
  return price.forward_s + price.backward_s + 2 * price.cuts * overhead + seconds_over(tensor, price.tensor_forward) +
         seconds_over(tensor, price.tensor_backward) + seconds_over(context, price.context_forward) +
         seconds_over(context, price.context_backward);
}

std::vector<std::vector<double>> block_seconds(Parts& parts, const Step& step, const Placement& placement) {
  const Wiring& wires = parts.wiring(step.layout);
  const std::vector<std::vector<int>>& groups = parts.groups_of(step.layout);
  const std::vector<BlockRun>& runs = parts.base.model->runs;
  std::vector<std::vector<double>> seconds(placement.parts(),
                                           std::vector<double>(blocks_of(parts.base.model).size(), 0));
  for (int stage = 0; stage < placement.stages(); ++stage) {
    const std::size_t q = placement.rank[stage];
    std::vector<double>& row = seconds[placement.part_of(stage)];
    for (const int group : groups[q]) {
      const std::vector<BlockPrice>& prices = parts.prices_of(step, group);
      const double overhead = overhead_of(parts.cluster.groups[group].machine);
      for (std::size_t run = 0; run < runs.size(); ++run) {
        const double one = seconds_of(prices[run], overhead, wires.tensor[q], wires.context[q]);
        const auto first = row.begin() + parts.first_block[run];
        for (auto block = first; block != first + runs[run].count; ++block) *block = std::max(*block, one);
      }
    }
  }
  return seconds;
}

// Copies of a part sit on several ranks; then each part is balanced by itself.
std::vector<int> whose_loads(const Placement& placement) {
  return placement.copies > 1 ? std::vector<int>{} : std::vector<int>(placement.rank.begin(), placement.rank.end());
}

Placement placement_of(const Step& step) {
  return slipway::schedules::placement_of(action_lists(step), schedule_shape(step));
}

bool differ(const Cluster& cluster, const std::vector<std::vector<int>>& groups_of_ranks) {
  const auto machines = [&](const std::vector<int>& groups) {
    std::set<std::string> names;
    for (const int group : groups) names.insert(cluster.groups[group].machine.name);
    return names;
  };
  return std::any_of(groups_of_ranks.begin(), groups_of_ranks.end(), [&](const std::vector<int>& groups) {
    return machines(groups) != machines(groups_of_ranks.front());
  });
}

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double rounding = 1 + 1e-12;  // of differences of sums
// Units 0, 1, ... are dealt to parts one after the other: part p gets fewest[p] to most[p] of them. load(p, from, to)
// does not fall when `from` does.
template <class Load>
struct Dealing {
  int units = 0;
  std::vector<int> fewest, most;
  Load load;
  int parts() const { return static_cast<int>(fewest.size()); }
};

// Dynamic programming: least[to] is the largest load of the parts so far on units [0, to). (To fill one part after the
// other up to a limit would be simpler and wrong: a slow part must hold a unit too, and better a light one.)
template <class Load>
double least_largest(const Dealing<Load>& deal) {
  std::vector<double> least(deal.units + 1, infinite);
  least[0] = 0;
  for (int p = 0; p < deal.parts(); ++p) {
    std::vector<double> next(deal.units + 1, infinite);
    for (int to = deal.fewest[p]; to <= deal.units; ++to)
      for (int from = to - deal.fewest[p]; from >= std::max(0, to - deal.most[p]); --from) {
        const double load = deal.load(p, from, to);
        if (load >= next[to]) break;
        next[to] = std::min(next[to], std::max(least[from], load));
      }
    least = std::move(next);
  }
  return least.back();
}

// Number of units of each part: among the ways with no load above `limit`, the one with the least sum of squares.
template <class Load>
std::vector<int> evenest_counts(const Dealing<Load>& deal, double limit) {
  const int parts = deal.parts();
  std::vector<std::vector<double>> best(parts + 1, std::vector<double>(deal.units + 1, infinite));
  std::vector<std::vector<int>> begin(parts, std::vector<int>(deal.units + 1, 0));
  best[0][0] = 0;
  for (int p = 0; p < parts; ++p)
    for (int to = deal.fewest[p]; to <= deal.units; ++to)
      for (int from = to - deal.fewest[p]; from >= std::max(0, to - deal.most[p]); --from) {
        const double load = deal.load(p, from, to);
        if (load > limit) break;
        const double cost = best[p][from] + load * load;
        if (cost >= best[p + 1][to]) continue;
        best[p + 1][to] = cost;
        begin[p][to] = from;
      }
  std::vector<int> counts(parts);
  for (int p = parts - 1, to = deal.units; p >= 0; to = begin[p][to], --p) counts[p] = to - begin[p][to];
  return counts;
}

template <class Load>
std::optional<std::vector<int>> dealt(const Dealing<Load>& deal) {
  const double limit = least_largest(deal);
  if (limit == infinite) return std::nullopt;
  return evenest_counts(deal, limit * rounding);
}

// Number of a stage's blocks that are no layers: the embedding, the head.
int others_on(int stage, int stages) { return (stage == 0 ? 1 : 0) + (stage + 1 == stages ? 1 : 0); }

int most_layers(const SplitLoads& loads, int rank) {
  return loads.most_layers.empty() ? std::numeric_limits<int>::max() / 2 : loads.most_layers[rank];
}

// Every stage is a part, and its units are blocks.
std::optional<std::vector<int>> dealt_to_stages(const SplitLoads& loads) {
  const int stages = static_cast<int>(loads.seconds.size()), blocks = static_cast<int>(loads.seconds.front().size());
  std::vector<std::vector<double>> sums;  // of all blocks before each, and of all
  for (const std::vector<double>& row : loads.seconds) {
    sums.emplace_back(1, 0.0);
    for (const double block : row) sums.back().push_back(sums.back().back() + block);
  }
  const auto load = [&](int stage, int from, int to) { return sums[stage][to] - sums[stage][from]; };
  Dealing<decltype(load)> deal{blocks, std::vector<int>(stages, 1), {}, load};
  for (int s = 0; s < stages; ++s) deal.most.push_back(most_layers(loads, loads.rank[s]) + others_on(s, stages));
  std::optional<std::vector<int>> counts = dealt(deal);
  if (!counts) return std::nullopt;
  for (int s = 0; s < stages; ++s) (*counts)[s] -= others_on(s, stages);
  return keeps(*counts, loads) ? counts : std::nullopt;
}

// A rank with several stages, on which all layers are alike.
struct RankLoad {
  double layer = 0, others = 0;  // seconds
  int fewest = 0;
  std::vector<int> stages;
};

std::vector<RankLoad> rank_loads(const SplitLoads& loads) {
  const int stages = static_cast<int>(loads.seconds.size());
  std::vector<RankLoad> ranks(*std::max_element(loads.rank.begin(), loads.rank.end()) + 1);
  for (int s = 0; s < stages; ++s) {
    const std::vector<double>& row = loads.seconds[s];
    RankLoad& rank = ranks[loads.rank[s]];
    rank.layer = row.size() > 2 ? row[1] : 0;
    rank.others += (s == 0 ? row.front() : 0) + (s + 1 == stages ? row.back() : 0);
    rank.fewest += fewest_layers(s, stages);
    rank.stages.push_back(s);
  }
  return ranks;
}

// Deals a rank's layers one by one to the stage that has the least so far.
void deal_to_own_stages(const SplitLoads& loads, const RankLoad& rank, int count, std::vector<int>& layers) {
  const int stages = static_cast<int>(loads.seconds.size());
  const auto load = [&](int s) {
    const std::vector<double>& row = loads.seconds[s];
    return (s == 0 ? row.front() : 0) + (s + 1 == stages ? row.back() : 0) + layers[s] * rank.layer;
  };
  for (const int s : rank.stages) count -= layers[s] = fewest_layers(s, stages);
  for (; count > 0; --count)
    ++layers[*std::min_element(rank.stages.begin(), rank.stages.end(),
                               [&](int a, int b) { return load(a) * rounding < load(b); })];
}

// Every rank is a part, and its units are layers.
std::optional<std::vector<int>> dealt_to_ranks(const SplitLoads& loads) {
  const std::vector<RankLoad> ranks = rank_loads(loads);
  const auto load = [&](int rank, int from, int to) { return ranks[rank].others + (to - from) * ranks[rank].layer; };
  Dealing<decltype(load)> deal{static_cast<int>(loads.seconds.front().size()) - 2, {}, {}, load};
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    deal.fewest.push_back(ranks[r].fewest);
    deal.most.push_back(most_layers(loads, r));
  }
  const std::optional<std::vector<int>> counts = dealt(deal);
  if (!counts) return std::nullopt;
  std::vector<int> layers(loads.seconds.size(), 0);
  for (std::size_t r = 0; r < ranks.size(); ++r) deal_to_own_stages(loads, ranks[r], (*counts)[r], layers);
  return layers;
}

bool shares_ranks(const SplitLoads& loads) {
  std::vector<int> ranks = loads.rank;
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end();
}

bool has_like_layers(const SplitLoads& loads) {
  return std::all_of(loads.seconds.begin(), loads.seconds.end(), [](const std::vector<double>& row) {
    return row.size() < 3 || std::all_of(row.begin() + 1, row.end() - 1, [&](double layer) { return layer == row[1]; });
  });
}

}  // namespace

bool has_several_machines(const Cluster& cluster) {
  return std::any_of(cluster.groups.begin(), cluster.groups.end(),
                     [&](const NodeGroup& group) { return group.machine.name != cluster.groups.front().machine.name; });
}

std::vector<std::vector<int>> groups_of_pipeline_ranks(const Cluster& cluster, const Layout& layout) {
  const int members = layout.data * layout.context * layout.tensor;
  std::vector<std::vector<int>> groups;
  for (int p = 0; p < layout.pipeline; ++p) {
    std::set<int> of_members;
    for (int member = 0; member < members; ++member) of_members.insert(place_of(cluster, p * members + member).group);
    groups.emplace_back(of_members.begin(), of_members.end());
  }
  return groups;
}

bool has_unequal_stages(const Cluster& cluster, const Layout& layout) {
  return has_several_machines(cluster) && differ(cluster, groups_of_pipeline_ranks(cluster, layout));
}

SplitLoads split_loads(const Step& step, const PricedCluster& cluster) {
  Parts parts(step, healthy(cluster));
  const Placement placement = placement_of(step);
  return {block_seconds(parts, step, placement), whose_loads(placement), {}};
}

const std::vector<std::vector<int>>& StepEstimator::Parts::groups_of(const Layout& layout) {
  const std::pair key{layout.tensor * layout.context * layout.data, layout.pipeline};
  const auto found = groups.find(key);
  return found != groups.end() ? found->second
                               : groups.emplace(key, groups_of_pipeline_ranks(cluster, layout)).first->second;
}

// A bound like that of memory (estimate.h): a layer counts as on the chunk that keeps the fewest micro-batches.
std::vector<int> StepEstimator::Parts::most_layers(const Step& step, const ScheduleUse& use, double memory_share) {
  const Layout& layout = step.layout;
  const Wiring& wires = wiring(layout);
  const std::vector<BlockElements>& elements = elements_of_runs(step);
  const auto fixed_bytes = [&](std::size_t run) {
    const StaticBytes fixed = static_bytes_of(elements[run], step, use.placement.copies);
    // Moments are not what K-FAC holds for a layer, and its inverses are shared out among replicas.
    return fixed.weights + least_gradients * fixed.gradients + (uses_kfac(step) ? 0 : fixed.optimizer);
  };
  std::vector<int> most;
  for (int q = 0; q < layout.pipeline; ++q) {
    const int group = wires.machine_group[q];
    const std::vector<BlockPrice>& prices = prices_of(step, group);
    const auto& held = use.in_flight[q];
    const auto bytes = [&](std::size_t run, int micro_batches) {
      return fixed_bytes(run) + (use.is_plain ? least_kept * micro_batches * kept_bytes(prices[run]) : 0);
    };
    double room = memory_share * cluster.groups[group].machine.memory_bytes;
    if (use.placement.rank.front() == q) room -= bytes(0, held.front());
    if (use.placement.rank.back() == q) room -= bytes(prices.size() - 1, held.back());
    double least = std::numeric_limits<double>::infinity();  // over layers of any kind
    for (std::size_t run = 1; run + 1 < prices.size(); ++run)
      least = std::min(least, bytes(run, *std::min_element(held.begin(), held.end())));
    most.push_back(static_cast<int>(std::clamp(room / least * (1 + 1e-12), 0.0, 1e6)));
  }
  return most;
}

StepEstimator::Parts::FastestSplit& StepEstimator::Parts::fastest_split(const Step& step, const ScheduleUse& use) {
  const std::tuple key{shape_key(step, 0), &wiring(step.layout), &use};
  if (fastest && fastest->key == key) return *fastest;
  SplitLoads loads{block_seconds(*this, step, use.placement), whose_loads(use.placement), {}};
  std::vector<int> layers = slipway::schedules::balanced_layers(loads).value();
  return fastest.emplace(FastestSplit{key, std::move(loads), std::move(layers)});
}

std::vector<std::vector<int>> StepEstimator::balanced_splits(const Step& step, double memory_share, std::size_t most) {
  const bool unequal = has_several_machines(parts_->cluster) && differ(parts_->cluster, parts_->groups_of(step.layout));
  if (!unequal && (step.layout.split != SplitKind::balanced || step.layout.chunks == 1)) return {};
  if (!parts_->cluster.degradation.ports.empty()) {  // degradation moves no layers
    std::unique_ptr<StepEstimator>& sound = parts_->without_degradation;
    if (!sound) {
      sound = std::make_unique<StepEstimator>(parts_->base, healthy(parts_->cluster));
      sound->parts_->least_gradients = parts_->least_gradients;
      sound->parts_->least_kept = parts_->least_kept;
      sound->parts_->facts = parts_->facts;
    }
    return sound->balanced_splits(step, memory_share, most);
  }
  const ScheduleUse& use = parts_->use_of(step, micro_batches_of(step));
  Parts::FastestSplit& fastest = parts_->fastest_split(step, use);
  SplitLoads& loads = fastest.loads;
  std::vector<std::vector<int>> splits{fastest.layers};
  if (use.placement.copies > 1) return splits;
  constexpr double shares[] = {1, 0.9, 0.8, 0.7};  // of memory_share: the bound leaves out a part of what is needed
  for (const double share : shares) {
    if (share < 1 && splits.size() >= most) break;
    loads.most_layers = parts_->most_layers(step, use, share * memory_share);
    if (keeps(splits.back(), loads)) continue;
    const auto smaller = slipway::schedules::balanced_layers(loads);
    if (!smaller) break;
    if (share == 1) splits.clear();  // the fastest does not fit
    splits.push_back(*smaller);
  }
  return splits;
}

// The exact search of balanced_split.h, on plain numbers without model and cluster.

int fewest_layers(int stage, int stages) { return stage == 0 || stage + 1 == stages ? 0 : 1; }

bool keeps(const std::vector<int>& layers, const SplitLoads& loads) {
  std::vector<int> left = loads.most_layers;
  for (std::size_t s = 0; s < layers.size() && !left.empty(); ++s) left[loads.rank[s]] -= layers[s];
  return std::all_of(left.begin(), left.end(), [](int each) { return each >= 0; });
}

std::optional<std::vector<int>> balanced_layers(SplitLoads loads) {
  const int stages = static_cast<int>(loads.seconds.size()), blocks = static_cast<int>(loads.seconds.front().size());
  if (stages > blocks)
    throw std::invalid_argument(std::to_string(stages) + " stages for " + std::to_string(blocks) +
                                " blocks (embedding, layers, head); lower layout.pipeline or layout.chunks");
  if (loads.rank.empty()) {
    loads.rank.resize(stages);
    std::iota(loads.rank.begin(), loads.rank.end(), 0);
  }
  return shares_ranks(loads) && has_like_layers(loads) ? dealt_to_ranks(loads) : dealt_to_stages(loads);
}

}  // namespace slipway::schedules
