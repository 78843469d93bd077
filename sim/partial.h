// The result of an interrupted simulation: how far it came, and where each pipeline rank was.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "schedules/time/replay.h"

namespace slipway::sim {

struct PartialSimulation {
  double simulated_s = 0;             // the simulated clock
  std::uint64_t done = 0, tasks = 0;  // task instances of all steps
  int steps = 1;
  struct Position {
    std::int32_t rank = 0;
    std::string label;  // task of its compute lane that began last; empty: none yet
    int step = 0;
  };
  std::vector<Position> positions;  // of one rank of each pipeline rank
};

class SimulationInterrupted : public std::runtime_error {
 public:
  explicit SimulationInterrupted(PartialSimulation found)
      : std::runtime_error("the simulation was interrupted"), partial(std::move(found)) {}
  PartialSimulation partial;
};

// `start`, `end`: per task instance, 0 where not known yet; chains write dates ahead of the clock.
PartialSimulation partial_simulation(const TaskGraph& graph, int steps, double now, std::uint64_t done,
                                     std::span<const double> start, std::span<const double> end);

}  // namespace slipway::sim
