// A cluster whose prices are set: each machine has the constants of a step and the facts of the trainer, each fabric the
// bandwidth that messages get of its ports, each axis its algorithm. Functions that price a task take this type, so a
// cluster without prices cannot be used by mistake.
//
//   machine profile (physics) ─┐
//   trainer's facts ───────────┼─► priced(cluster) ─► PricedCluster ─► cost.h, schedules/time, schedules/bound, sim
//   step constants ────────────┘
//
// Machines without measured kernels (CPU ranks, a user's machines) keep the prices of their profiles, and fabrics and
// algorithms that the user gave stay as they are. Guarded by tests/models/priced_cluster_test.cpp.
#pragma once

#include <functional>

#include "models/machine/degradation.h"
#include "models/machine/machine.h"

namespace slipway::models {

// The constants of a step of this trainer on a machine.
using ConstantsOn = std::function<StepConstants(const Machine& machine)>;

struct PricedCluster : Cluster {
  PricedCluster() = default;
  // As profiles and fabrics price it, without a trainer.
  explicit PricedCluster(Cluster cluster) : Cluster(std::move(cluster)) {}
};

// Are steps priced by measured kernels, the trainer's facts and fitted constants? So on machines with measured kernels and
// without a table of whole blocks; the profiles of others have shares of peak.
bool is_priced_by_trainer(const Cluster& cluster);

// Applied to its own result, it gives the same again. Without kernels, prices are those of the profiles.
PricedCluster priced(Cluster cluster, const TrainerFacts& facts, const ConstantsOn& constants_on);

// The same prices without slow GPUs and ports; at their best (models/machine/degradation.h).
PricedCluster healthy(PricedCluster cluster);
PricedCluster at_best(PricedCluster cluster);

}  // namespace slipway::models
