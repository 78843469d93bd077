#include "schedules/time/durations.h"

#include <stdexcept>
#include <string>

#include "models/machine/degradation.h"
#include "schedules/time/beside.h"
#include "schedules/time/global_order.h"
#include "schedules/time/link_path.h"
#include "schedules/time/message_price.h"
#include "schedules/time/work_price.h"

namespace slipway::schedules {

static_assert(static_cast<std::size_t>(Axis::host) + 1 == message_axes);

Durations durations_alone(const TaskGraph& graph, const PricedCluster& cluster) {
  const int ranks = rank_count(graph.step.layout);
  if (rank_capacity(cluster) < ranks) {
    throw std::invalid_argument("the layout has " + std::to_string(ranks) + " ranks and the cluster " +
                                std::to_string(rank_capacity(cluster)) + " GPUs");
  }
  std::vector<int> group_of_rank;
  std::vector<double> slowdown;
  for (int r = 0; r < ranks; ++r) {
    group_of_rank.push_back(place_of(cluster, r).group);
    slowdown.push_back(slowdown_of(cluster, r));
  }
  std::vector<LinkPath> paths;
  for (const Communicator& communicator : graph.communicators) paths.push_back(path_of(cluster, communicator));

  // Micro-batches send the same messages: the last price of each work, and between whom.
  struct PricedMessage {
    std::int32_t communicator = none;
    double seconds = 0;
  };
  std::vector<PricedMessage> messages(graph.works.size());
  constexpr double unknown = -1;
  std::vector<double> compute(graph.works.size() * cluster.groups.size(), unknown);
  Durations durations(graph.tasks.size());
  for (std::size_t id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    const Work& work = graph.work(task);
    if (task.communicator != none) {
      const auto c = static_cast<std::size_t>(task.communicator);
      PricedMessage& last = messages[static_cast<std::size_t>(task.work)];
      if (last.communicator != task.communicator)
        last = {task.communicator, seconds_of_message(graph, work, graph.communicators[c], paths[c], cluster)};
      durations[id] = last.seconds;
      continue;
    }
    const auto group = static_cast<std::size_t>(group_of_rank[task.rank]);
    double& known = compute[static_cast<std::size_t>(task.work) * cluster.groups.size() + group];
    if (known == unknown) known = compute_seconds(graph, work, cluster.groups[group].machine);
    durations[id] = known * slowdown[task.rank];
  }
  return durations;
}

Durations durations_of(const TaskGraph& graph, const PricedCluster& cluster) {
  Durations durations = durations_alone(graph, cluster);
  add_losses_beside(graph, cluster, durations);
  return durations;
}

Durations order_and_price(TaskGraph& graph, const PricedCluster& cluster) {
  Durations durations = durations_of(graph, cluster);
  set_global_order(graph, is_degraded(cluster) ? durations_of(graph, healthy(cluster)) : durations);
  durations.host = host_issue_of(graph, cluster);  // the order is the hosts' program
  return durations;
}

}  // namespace slipway::schedules
