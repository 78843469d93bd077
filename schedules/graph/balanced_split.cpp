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
std::size_t at(int i) { return static_cast<std::size_t>(i); }

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

// Copies of a part sit on several ranks: each part by itself then.
std::vector<int> whose_loads(const Placement& placement) {
  return placement.copies > 1 ? std::vector<int>{} : std::vector<int>(placement.rank.begin(), placement.rank.end());
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

SplitLoads split_loads(const LoweringInput& input, const Cluster& cluster) {
  Parts parts(input, healthy(cluster));
  const Placement placement = placement_of(input);
  return {block_seconds(parts, choice_of(input), placement), whose_loads(placement), {}};
}

std::vector<int> time_balanced_layers(const LoweringInput& input, const Cluster& cluster) {
  return balanced_layers(split_loads(input, cluster)).value();
}

const std::vector<std::vector<int>>& StepEstimator::Parts::groups_of(const Layout& layout) {
  const std::pair key{layout.tensor * layout.context * layout.data, layout.pipeline};
  const auto found = groups.find(key);
  return found != groups.end()
             ? found->second
             : groups.emplace(key, groups_of_pipeline_ranks(cluster, layout)).first->second;
}

// By a bound like that of memory (estimate.h): a layer counts as on the chunk that keeps the fewest micro-batches.
std::vector<int> StepEstimator::Parts::most_layers(const LayoutChoice& choice, const ScheduleUse& use,
                                                   double memory_share) {
  const Layout& layout = choice.layout;
  const Wiring& wires = wiring(layout);
  const std::vector<double>& elements = elements_of_runs(choice);
  const auto fixed_bytes = [&](std::size_t run) {
    const StaticBytes fixed =
        static_bytes_of(elements[run], layout, base.shape.dtype, base.gradient_dtype, use.placement.copies);
    return fixed.weights + least_gradients * fixed.gradients + fixed.optimizer;
  };
  std::vector<int> most;
  for (int q = 0; q < layout.pipeline; ++q) {
    const int group = wires.machine_group[at(q)];
    const std::vector<BlockPrice>& prices = prices_of(choice, group);
    const auto& held = use.in_flight[at(q)];
    const auto bytes = [&](std::size_t run, int micro_batches) {
      return fixed_bytes(run) + (use.is_plain ? least_kept * micro_batches * prices[run].kept_bytes : 0);
    };
    double room = memory_share * cluster.groups[at(group)].machine.memory_bytes;
    if (use.placement.rank.front() == q) room -= bytes(0, held.front());
    if (use.placement.rank.back() == q) room -= bytes(prices.size() - 1, held.back());
    double least = std::numeric_limits<double>::infinity();  // of a layer of any kind
    for (std::size_t run = 1; run + 1 < prices.size(); ++run)
      least = std::min(least, bytes(run, *std::min_element(held.begin(), held.end())));
    most.push_back(static_cast<int>(std::clamp(room / least * (1 + 1e-12), 0.0, 1e6)));
  }
  return most;
}

std::vector<std::vector<int>> StepEstimator::balanced_splits(const LayoutChoice& choice, double memory_share) {
  const bool unequal = has_several_machines(parts_->cluster) && differ(parts_->cluster, parts_->groups_of(choice.layout));
  if (!unequal && (choice.layout.split != SplitKind::balanced || choice.layout.chunks == 1)) return {};
  if (!parts_->cluster.impairments.ports.empty()) {  // troubles move no layers
    std::unique_ptr<StepEstimator>& sound = parts_->without_troubles;
    if (!sound) {
      sound = std::make_unique<StepEstimator>(at_one_pace(healthy(parts_->cluster)));
      sound->parts_->stack = parts_->stack;
    }
    return sound->balanced_splits(choice, memory_share);
  }
  if (parts_->stack != nullptr) return at_one_pace(parts_->paced_for(choice)).balanced_splits(choice, memory_share);
  const ScheduleUse& use = parts_->use_of(choice, parts_->micro_batches(choice));
  SplitLoads loads{block_seconds(*parts_, choice, use.placement), whose_loads(use.placement), {}};
  std::vector<std::vector<int>> splits{slipway::balanced_layers(loads).value()};
  if (use.placement.copies > 1) return splits;
  constexpr double shares[] = {1, 0.9, 0.8, 0.7};  // of memory_share: the bound leaves out a part of what is needed
  for (const double share : shares) {
    loads.most_layers = parts_->most_layers(choice, use, share * memory_share);
    if (keeps(splits.back(), loads)) continue;
    const auto smaller = slipway::balanced_layers(loads);
    if (!smaller) break;
    if (share == 1) splits.clear();  // the fastest does not fit
    splits.push_back(*smaller);
  }
  return splits;
}

}  // namespace slipway
