// Properties of a machine that may be faster or slower than its profile states: one rate each, in a table (rates.cpp).
// A new one is one entry.
//
//   a sound cluster ──rate, speed 0.5──► Moved: a cluster with other links and constants, kernels of a kind twice as long
//
// A speed of 2 is twice as fast: twice the bandwidth, half the seconds of a launch or of a message's start.
// Each rate names a constant of a step (models/machine/step_constants.h), whose prior says how far runs differ in it.
// Guarded by tests/scenarios/explain_rates_test.cpp.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "scenarios/language/scenario.h"
#include "schedules/time/breakdown.h"

namespace slipway::scenarios {

struct Moved {
  PricedCluster cluster;
  std::array<double, time_part_count> stretch{};  // of compute by kind; 1: as the cluster prices it
  std::vector<double> stage_stretch;              // of all compute of a pipeline rank; empty: 1

  explicit Moved(PricedCluster priced) : cluster(std::move(priced)) { stretch.fill(1); }
};

struct Rate {
  std::string name;     // "NVLink bandwidth", "matrix products"
  std::string id;       // for --json: "node_bandwidth"
  double spread = 0;    // of ln(speed): how far sound runs differ
  bool of_all = false;  // moves everything: no single constant, shown only as a cause
  std::function<void(Moved& moved, double speed)> move;
};

// The rates that the scenario has on this cluster.
std::vector<Rate> rates_of(const Scenario& scenario, const PricedCluster& cluster);
// Spread of ln(speed) of single GPUs and of single ports on a sound cluster.
double spread_of_gpus();
double spread_of_ports();
// "NVLink", "InfiniBand", or "links inside a node" where the machine's link has no name of these.
std::string words_of_link(const Link& link, bool inside);

}  // namespace slipway::scenarios
