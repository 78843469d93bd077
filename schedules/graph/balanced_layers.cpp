// The exact search of balanced_split.h: plain numbers, no model and no cluster.
#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "schedules/graph/balanced_split.h"

namespace slipway {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double rounding = 1 + 1e-12;  // of differences of sums
std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Units 0, 1, ... dealt to parts one after the other: part p gets fewest[p] to most[p] of them. load(p, from, to) does
// not fall when `from` does.
template <class Load>
struct Dealing {
  int units = 0;
  std::vector<int> fewest, most;
  Load load;
  int parts() const { return static_cast<int>(fewest.size()); }
};

// By dynamic programming: least[to] is the largest load of the parts so far on units [0, to). (To fill one part after
// the other up to a limit would be simpler and wrong: a slow part must hold a unit too, and better a light one.)
template <class Load>
double least_largest(const Dealing<Load>& deal) {
  std::vector<double> least(at(deal.units + 1), infinite);
  least[0] = 0;
  for (int p = 0; p < deal.parts(); ++p) {
    std::vector<double> next(at(deal.units + 1), infinite);
    for (int to = deal.fewest[at(p)]; to <= deal.units; ++to)
      for (int from = to - deal.fewest[at(p)]; from >= std::max(0, to - deal.most[at(p)]); --from) {
        const double load = deal.load(p, from, to);
        if (load >= next[at(to)]) break;
        next[at(to)] = std::min(next[at(to)], std::max(least[at(from)], load));
      }
    least = std::move(next);
  }
  return least.back();
}

// How many units each part gets: of the ways with no load above `limit`, the one with the least sum of squares.
template <class Load>
std::vector<int> evenest_counts(const Dealing<Load>& deal, double limit) {
  const int parts = deal.parts();
  std::vector<std::vector<double>> best(at(parts + 1), std::vector<double>(at(deal.units + 1), infinite));
  std::vector<std::vector<int>> begin(at(parts), std::vector<int>(at(deal.units + 1), 0));
  best[0][0] = 0;
  for (int p = 0; p < parts; ++p)
    for (int to = deal.fewest[at(p)]; to <= deal.units; ++to)
      for (int from = to - deal.fewest[at(p)]; from >= std::max(0, to - deal.most[at(p)]); --from) {
        const double load = deal.load(p, from, to);
        if (load > limit) break;
        const double cost = best[at(p)][at(from)] + load * load;
        if (cost >= best[at(p + 1)][at(to)]) continue;
        best[at(p + 1)][at(to)] = cost;
        begin[at(p)][at(to)] = from;
      }
  std::vector<int> counts(at(parts));
  for (int p = parts - 1, to = deal.units; p >= 0; to = begin[at(p)][at(to)], --p)
    counts[at(p)] = to - begin[at(p)][at(to)];
  return counts;
}

template <class Load>
std::optional<std::vector<int>> dealt(const Dealing<Load>& deal) {
  const double limit = least_largest(deal);
  if (limit == infinite) return std::nullopt;
  return evenest_counts(deal, limit * rounding);
}

// Of the blocks of a stage, those that are no layers: the embedding, the head.
int others_on(int stage, int stages) { return (stage == 0 ? 1 : 0) + (stage + 1 == stages ? 1 : 0); }

int most_layers(const SplitLoads& loads, int rank) {
  return loads.most_layers.empty() ? std::numeric_limits<int>::max() / 2 : loads.most_layers[at(rank)];
}

// Every stage is a part, and its units are blocks.
std::optional<std::vector<int>> dealt_to_stages(const SplitLoads& loads) {
  const int stages = static_cast<int>(loads.seconds.size()), blocks = static_cast<int>(loads.seconds.front().size());
  std::vector<std::vector<double>> sums;  // of all blocks before each, and of all
  for (const std::vector<double>& row : loads.seconds) {
    sums.emplace_back(1, 0.0);
    for (const double block : row) sums.back().push_back(sums.back().back() + block);
  }
  const auto load = [&](int stage, int from, int to) { return sums[at(stage)][at(to)] - sums[at(stage)][at(from)]; };
  Dealing<decltype(load)> deal{blocks, std::vector<int>(at(stages), 1), {}, load};
  for (int s = 0; s < stages; ++s) deal.most.push_back(most_layers(loads, loads.rank[at(s)]) + others_on(s, stages));
  std::optional<std::vector<int>> counts = dealt(deal);
  if (!counts) return std::nullopt;
  for (int s = 0; s < stages; ++s) (*counts)[at(s)] -= others_on(s, stages);
  return keeps(*counts, loads) ? counts : std::nullopt;
}

// Of a rank with several stages, on which all layers are alike.
struct RankLoad {
  double layer = 0, others = 0;  // seconds
  int fewest = 0;
  std::vector<int> stages;
};

std::vector<RankLoad> rank_loads(const SplitLoads& loads) {
  const int stages = static_cast<int>(loads.seconds.size());
  std::vector<RankLoad> ranks(at(*std::max_element(loads.rank.begin(), loads.rank.end()) + 1));
  for (int s = 0; s < stages; ++s) {
    const std::vector<double>& row = loads.seconds[at(s)];
    RankLoad& rank = ranks[at(loads.rank[at(s)])];
    rank.layer = row.size() > 2 ? row[1] : 0;
    rank.others += (s == 0 ? row.front() : 0) + (s + 1 == stages ? row.back() : 0);
    rank.fewest += fewest_layers(s, stages);
    rank.stages.push_back(s);
  }
  return ranks;
}

// A rank's layers one by one to the stage that has the least so far.
void deal_to_own_stages(const SplitLoads& loads, const RankLoad& rank, int count, std::vector<int>& layers) {
  const int stages = static_cast<int>(loads.seconds.size());
  const auto load = [&](int s) {
    const std::vector<double>& row = loads.seconds[at(s)];
    return (s == 0 ? row.front() : 0) + (s + 1 == stages ? row.back() : 0) + layers[at(s)] * rank.layer;
  };
  for (const int s : rank.stages) count -= layers[at(s)] = fewest_layers(s, stages);
  for (; count > 0; --count)
    ++layers[at(*std::min_element(rank.stages.begin(), rank.stages.end(),
                                  [&](int a, int b) { return load(a) * rounding < load(b); }))];
}

// Every rank is a part, and its units are layers.
std::optional<std::vector<int>> dealt_to_ranks(const SplitLoads& loads) {
  const std::vector<RankLoad> ranks = rank_loads(loads);
  const auto load = [&](int rank, int from, int to) {
    return ranks[at(rank)].others + (to - from) * ranks[at(rank)].layer;
  };
  Dealing<decltype(load)> deal{static_cast<int>(loads.seconds.front().size()) - 2, {}, {}, load};
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    deal.fewest.push_back(ranks[at(r)].fewest);
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

int fewest_layers(int stage, int stages) { return stage == 0 || stage + 1 == stages ? 0 : 1; }

bool keeps(const std::vector<int>& layers, const SplitLoads& loads) {
  std::vector<int> left = loads.most_layers;
  for (std::size_t s = 0; s < layers.size() && !left.empty(); ++s) left[at(loads.rank[s])] -= layers[s];
  return std::all_of(left.begin(), left.end(), [](int each) { return each >= 0; });
}

std::optional<std::vector<int>> balanced_layers(SplitLoads loads) {
  const int stages = static_cast<int>(loads.seconds.size()), blocks = static_cast<int>(loads.seconds.front().size());
  if (stages > blocks)
    throw std::invalid_argument(
        std::to_string(stages) + " stages for " + std::to_string(blocks) +
        " blocks (embedding, layers, head); lower layout.pipeline or layout.chunks");
  if (loads.rank.empty()) {
    loads.rank.resize(at(stages));
    std::iota(loads.rank.begin(), loads.rank.end(), 0);
  }
  return shares_ranks(loads) && has_like_layers(loads) ? dealt_to_ranks(loads) : dealt_to_stages(loads);
}

}  // namespace slipway
