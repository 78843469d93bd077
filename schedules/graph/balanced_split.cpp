#include "schedules/graph/balanced_split.h"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>

#include "schedules/graph/estimate_parts.h"

namespace slipway {
namespace {

using Parts = StepEstimator::Parts;
constexpr double infinite = std::numeric_limits<double>::infinity();
std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Of all blocks before each, and of all: load of blocks [from, to) = sums[to] - sums[from].
std::vector<std::vector<double>> sums_of(const std::vector<std::vector<double>>& seconds) {
  std::vector<std::vector<double>> sums;
  for (const std::vector<double>& row : seconds) {
    sums.emplace_back(1, 0.0);
    for (const double block : row) sums.back().push_back(sums.back().back() + block);
  }
  return sums;
}

// By dynamic programming: least[to] is the slowest load of the stages so far on blocks [0, to). (To fill
// one stage after the other up to a limit would be simpler and wrong: a slow stage must hold a block too,
// and better a light one.)
double least_slowest(const std::vector<std::vector<double>>& sums) {
  const int stages = static_cast<int>(sums.size()), blocks = static_cast<int>(sums.front().size()) - 1;
  std::vector<double> least(at(blocks + 1), infinite);
  least[0] = 0;
  for (int s = 1; s <= stages; ++s) {
    const std::vector<double>& sum = sums[at(s - 1)];
    std::vector<double> next(at(blocks + 1), infinite);
    for (int to = s; to <= blocks; ++to)
      for (int from = to - 1; from >= s - 1 && sum[at(to)] - sum[at(from)] < next[at(to)]; --from)
        next[at(to)] = std::min(next[at(to)], std::max(least[at(from)], sum[at(to)] - sum[at(from)]));
    least = std::move(next);
  }
  return least.back();
}

// Where each stage ends: of the splits with no load above `limit`, that with the least sum of squares.
std::vector<int> evenest_ends(const std::vector<std::vector<double>>& sums, double limit) {
  const int stages = static_cast<int>(sums.size()), blocks = static_cast<int>(sums.front().size()) - 1;
  std::vector<std::vector<double>> best(at(stages + 1), std::vector<double>(at(blocks + 1), infinite));
  std::vector<std::vector<int>> begin(at(stages + 1), std::vector<int>(at(blocks + 1), 0));
  best[0][0] = 0;
  for (int s = 1; s <= stages; ++s) {
    const std::vector<double>& sum = sums[at(s - 1)];
    for (int to = s; to <= blocks; ++to)
      for (int from = to - 1; from >= s - 1; --from) {
        const double load = sum[at(to)] - sum[at(from)];
        if (load > limit) break;
        const double cost = best[at(s - 1)][at(from)] + load * load;
        if (cost >= best[at(s)][at(to)]) continue;
        best[at(s)][at(to)] = cost;
        begin[at(s)][at(to)] = from;
      }
  }
  std::vector<int> ends(at(stages));
  for (int s = stages, to = blocks; s > 0; to = begin[at(s)][at(to)], --s) ends[at(s - 1)] = to;
  return ends;
}

double seconds_of(const BlockPrice& price, double overhead, const LinkPath& tensor,
                  const LinkPath& context) {
  return price.forward_s + price.backward_s + 2 * price.cuts * overhead +
         seconds_over(tensor, price.tensor_forward) + seconds_over(tensor, price.tensor_backward) +
         seconds_over(context, price.context_forward) + seconds_over(context, price.context_backward);
}

std::vector<std::vector<double>> block_seconds(Parts& parts, const LayoutChoice& choice,
                                               const Placement& placement) {
  const Wiring& wires = parts.wiring(choice.layout);
  const std::vector<std::vector<int>>& groups = parts.groups_of(choice.layout);
  const std::vector<BlockRun>& runs = parts.base.model.runs;
  std::vector<std::vector<double>> seconds(at(placement.parts()),
                                           std::vector<double>(blocks_of(parts.base.model).size(), 0));
  for (int stage = 0; stage < placement.stages(); ++stage) {
    const std::size_t q = at(placement.rank[at(stage)]);
    std::vector<double>& row = seconds[at(placement.part_of(stage))];
    for (const int group : groups[q]) {
      const std::vector<BlockPrice>& prices = parts.prices_of(choice, group);
      const double overhead = parts.cluster.groups[at(group)].machine.task_overhead;
      for (std::size_t run = 0; run < runs.size(); ++run) {
        const double one = seconds_of(prices[run], overhead, wires.tensor[q], wires.context[q]);
        const auto first = row.begin() + parts.first_block[run];
        for (auto block = first; block != first + runs[run].count; ++block) *block = std::max(*block, one);
      }
    }
  }
  return seconds;
}

LayoutChoice choice_of(const LoweringInput& input) {
  return {input.layout, schedule_named(input.schedule), input.shape.micro_batch, input.recompute};
}

Placement placement_of(const LoweringInput& input) {
  return slipway::placement_of(step_actions(input), step_shape(input));
}

}  // namespace

bool has_several_machines(const Cluster& cluster) {
  return std::any_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
    return group.machine.name != cluster.groups.front().machine.name;
  });
}

std::vector<std::vector<int>> groups_of_pipeline_ranks(const Cluster& cluster, const Layout& layout) {
  const int members = layout.data * layout.context * layout.tensor;
  std::vector<std::vector<int>> groups;
  for (int p = 0; p < layout.pipeline; ++p) {
    std::set<int> of_members;
    for (int member = 0; member < members; ++member)
      of_members.insert(place_of(cluster, p * members + member).group);
    groups.emplace_back(of_members.begin(), of_members.end());
  }
  return groups;
}

namespace {

bool differ(const Cluster& cluster, const std::vector<std::vector<int>>& groups_of_ranks) {
  const auto machines = [&](const std::vector<int>& groups) {
    std::set<std::string> names;
    for (const int group : groups) names.insert(cluster.groups[at(group)].machine.name);
    return names;
  };
  return std::any_of(groups_of_ranks.begin(), groups_of_ranks.end(), [&](const std::vector<int>& groups) {
    return machines(groups) != machines(groups_of_ranks.front());
  });
}

}  // namespace

bool has_unequal_stages(const Cluster& cluster, const Layout& layout) {
  return has_several_machines(cluster) && differ(cluster, groups_of_pipeline_ranks(cluster, layout));
}

std::vector<int> balanced_layers(const std::vector<std::vector<double>>& seconds) {
  const int stages = static_cast<int>(seconds.size()), blocks = static_cast<int>(seconds.front().size());
  if (stages > blocks)
    throw std::invalid_argument(
        std::to_string(stages) + " stages for " + std::to_string(blocks) +
        " blocks (embedding, layers, head); lower layout.pipeline or layout.chunks");
  const std::vector<std::vector<double>> sums = sums_of(seconds);
  constexpr double rounding = 1 + 1e-12;  // of differences of sums
  const std::vector<int> ends = evenest_ends(sums, least_slowest(sums) * rounding);
  std::vector<int> layers;  // the embedding is block 0, the head the last
  for (int s = 0; s < stages; ++s)
    layers.push_back((s + 1 == stages ? blocks - 1 : ends[at(s)]) - (s == 0 ? 1 : ends[at(s - 1)]));
  return layers;
}

std::vector<std::vector<double>> stage_block_seconds(const LoweringInput& input, const Cluster& cluster) {
  Parts parts(input, cluster);
  return block_seconds(parts, choice_of(input), placement_of(input));
}

std::vector<int> time_balanced_layers(const LoweringInput& input, const Cluster& cluster) {
  return balanced_layers(stage_block_seconds(input, cluster));
}

const std::vector<std::vector<int>>& StepEstimator::Parts::groups_of(const Layout& layout) {
  const std::pair key{layout.tensor * layout.context * layout.data, layout.pipeline};
  const auto found = groups.find(key);
  return found != groups.end()
             ? found->second
             : groups.emplace(key, groups_of_pipeline_ranks(cluster, layout)).first->second;
}

std::vector<int> StepEstimator::balanced_layers(const LayoutChoice& choice) {
  if (!has_several_machines(parts_->cluster) || !differ(parts_->cluster, parts_->groups_of(choice.layout)))
    return {};
  if (parts_->stack != nullptr) return at_one_pace(parts_->paced_for(choice)).balanced_layers(choice);
  const Placement& placement = parts_->use_of(choice, parts_->micro_batches(choice)).placement;
  return slipway::balanced_layers(block_seconds(*parts_, choice, placement));
}

}  // namespace slipway
