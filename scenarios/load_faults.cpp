// How nodes fail and training recovers: keys of `cluster` and `run`. Guarded by tests/command_goodput_test.cpp.
#include <algorithm>

#include "scenarios/load_cluster.h"
#include "scenarios/scenario.h"

namespace slipway {

void load_faults(const Settings& settings, FaultModel& faults) {
  faults.mtbf_per_node = settings.number("cluster.mtbf_per_node");
  faults.restart = settings.number("cluster.restart");
  faults.repair = settings.number("cluster.repair");
  faults.spare_nodes = settings.small_integer("cluster.spare_nodes");
  faults.checkpoint_interval = settings.number("run.checkpoint_interval");
  if (settings.given("run.checkpoint_cost")) faults.checkpoint_cost = settings.number("run.checkpoint_cost");
  for (int i = 0; i < settings.length("cluster.failures"); ++i) {
    const std::string path = "cluster.failures." + std::to_string(i);
    if (!settings.good({path, path + ".at", path + ".nodes"})) continue;
    faults.failures.push_back({settings.number(path + ".at"), settings.small_integer(path + ".nodes")});
  }
  std::stable_sort(faults.failures.begin(), faults.failures.end(),
                   [](const PlannedFailure& a, const PlannedFailure& b) { return a.at < b.at; });
}

}  // namespace slipway
