// How nodes fail and training recovers: keys of `cluster` and `run`. Guarded by tests/command_goodput_test.cpp.
#include <algorithm>

#include "scenarios/language/load_cluster.h"
#include "scenarios/scenario.h"

namespace slipway {

void load_faults(Settings& settings, const Cluster* cluster, FaultModel& faults) {
  FaultyTraining& training = faults.training;
  training.node_mtbf_s = settings.number("cluster.mtbf_per_node");
  training.restart_s = settings.number("cluster.restart");
  training.repair_s = settings.number("cluster.repair");
  training.spare_nodes = settings.small_integer("cluster.spare_nodes");
  faults.checkpoint_interval = settings.number("run.checkpoint_interval");
  if (settings.given("run.checkpoint_cost")) faults.checkpoint_cost = settings.number("run.checkpoint_cost");
  for (int i = 0; i < settings.length("cluster.failures"); ++i) {
    const std::string path = "cluster.failures." + std::to_string(i);
    if (!settings.good({path, path + ".at", path + ".nodes"})) continue;
    const int nodes = settings.small_integer(path + ".nodes");
    if (cluster != nullptr && nodes > node_count(*cluster)) {
      settings.refuse(path + ".nodes", std::to_string(nodes) + " nodes cannot fail at once: the cluster has " +
                                           std::to_string(node_count(*cluster)) + " (cluster.spare_nodes wait beside it)",
                      "lower it, or raise the number of nodes");
      continue;
    }
    training.failures.push_back({settings.number(path + ".at"), nodes});
  }
  std::stable_sort(training.failures.begin(), training.failures.end(),
                   [](const PlannedFailure& a, const PlannedFailure& b) { return a.at < b.at; });
}

}  // namespace slipway
