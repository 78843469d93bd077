// Days of training on nodes that fail: the share of time that is steps which are kept.
//
//   train │ train │ write │ train ✗          wait        restart │ train │ train │ write │ ...
//   ├── k steps ──┤├ δ ───┤├lost──┤├ no spare node ┤├─── R ───┤
//
// Failed nodes leave for repair_s and come back as spares. A failure undoes all work since the last complete
// checkpoint. Then a spare takes the node's place, or training waits for a repair; then all ranks restart. Nodes in use
// fail at any time, also while training restarts or waits. Spares do not fail.
//
// Closed forms for exponential failures and enough spares, with M = node_mtbf_s / nodes, τ = k steps (Daly 2006, "A
// higher order estimate of the optimum checkpoint interval for restart dumps"):
//
//   E[elapsed] = M·e^(R/M)·(e^((τ+δ)/M) − 1)·T/τ          for T seconds of steps
//   τ* ≈ √(2δM)·(1 + ⅓·√(δ/2M) + ⅑·δ/2M) − δ              (δ < 2M, else M); Young 1974: √(2δM)
//
// Guarded by tests/models/goodput_test.cpp: one failure at a known date loses exactly what it must; the mean over many
// seeds is Daly's expectation, and his interval is the best.
#pragma once

#include <cstdint>
#include <vector>

#include "models/namespaces.h"

namespace slipway::models {

struct PlannedFailure {
  double at = 0;  // seconds
  int nodes = 1;  // that fail together
};

struct FaultyTraining {
  double step_s = 1;
  std::int64_t steps_per_checkpoint = 1;
  double checkpoint_s = 0;  // training stands still while it is written
  double restart_s = 0;
  double repair_s = 0;
  int nodes = 1, spare_nodes = 0;
  double node_mtbf_s = 0;                // mean time between failures of one node; 0: only the planned ones
  std::vector<PlannedFailure> failures;  // ascending
  double interval_s() const { return step_s * static_cast<double>(steps_per_checkpoint); }
  double mtbf_s() const { return node_mtbf_s / nodes; }  // of all nodes
};

// The parts of one history's time; they add up to elapsed_s.
struct Goodput {
  double elapsed_s = 0;
  double useful_s = 0;      // steps that were kept
  double checkpoint_s = 0;  // complete checkpoints
  double lost_s = 0;        // steps and writing that a failure undid
  double restart_s = 0;
  double waiting_s = 0;  // for a repair
  std::int64_t failures = 0;
  double share() const { return elapsed_s > 0 ? useful_s / elapsed_s : 0; }
};

// Simulates until `steps` are done and saved (0: without end), but at most `horizon_s`. Work in progress at the horizon
// counts as kept. The same seed gives the same history. Throws std::invalid_argument for an impossible training (no
// step time, no nodes, a negative cost).
Goodput simulate_faults(const FaultyTraining& training, double horizon_s, std::int64_t steps, std::uint64_t seed);

// Closed forms; mtbf_s > 0.
double daly_elapsed_s(const FaultyTraining& training, double useful_s);
double daly_share(const FaultyTraining& training);
double daly_interval_s(double mtbf_s, double checkpoint_s);
double young_interval_s(double mtbf_s, double checkpoint_s);

// The number of steps between checkpoints nearest to an interval, at least 1.
std::int64_t steps_of(double interval_s, double step_s);

}  // namespace slipway::models
