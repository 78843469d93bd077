// The `cluster` section: node groups with their machine profiles, and the fabrics between them.
//
//   machine, nodes, gpus_per_node   one group, the short form
//   groups: [...]                   several
//   fabrics: [...]                  networks with a topology each
//   no fabrics                      those of the machines' own links (default_fabrics in models/machine/machine.h)
//   stragglers, slow_links,
//   link_factors                    what is not as the profiles say
//
// Guarded by tests/scenarios/scenario_load_test.cpp and tests/scenarios/scenario_errors_test.cpp.
#pragma once

#include "scenarios/language/profiles.h"

namespace slipway::scenarios {

// Empty after an error. `folder` is where relative paths of profiles start.
std::optional<Cluster> load_cluster(Settings& settings, const std::string& folder);
// Appends those of cluster.fabrics that are sound to the cluster, whose groups are there.
void load_fabrics(Settings& settings, Cluster& cluster);
// As a scenario would write them, with all defaults.
Value algorithms_value(const Cluster& cluster);
Value fabric_value(const Fabric& fabric);

// Slow GPUs, slow ports and weak pairs of nodes of a cluster whose groups and fabrics are known.
void load_degradation(Settings& settings, Cluster& cluster);

}  // namespace slipway::scenarios
