// A cluster as a trainer uses it: the facts of its software, the constants of a step on each machine, NCCL's algorithms,
// and what messages get of the ports. Machines without measured kernels (CPU ranks, one's own) stay as they are.
//
//   machine profile (physics) ─┐
//   trainer's facts ───────────┼─► trained(cluster) ─► prices (cost.h, schedules/time/durations.h)
//   step constants ────────────┘
//
// Fabrics and algorithms of one's own stay as they are.
// Guarded by tests/models/trained_cluster_test.cpp.
#pragma once

#include <functional>

#include "models/machine/machine.h"

namespace slipway::models {

// The constants of a step of this trainer on a machine.
using ConstantsOn = std::function<StepConstants(const Machine& machine)>;

// All its machines have measured kernels, and no table of whole blocks.
bool has_kernels(const Cluster& cluster);

// Applied to its own result, it gives the same again. Without kernels, the cluster itself.
Cluster trained(Cluster cluster, const TrainerFacts& facts, const ConstantsOn& constants_on);

}  // namespace slipway::models
