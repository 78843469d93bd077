// When will it happen: the task graph on SimGrid. No SimGrid type leaves sim/.
#pragma once

#include <functional>

#include "models/machine.h"
#include "schedules/graph/replay.h"

namespace slipway {

// closed_form: every collective is a duration. flows: ring collectives become flows on the links.
// automatic: flows where two communicators can share a port, closed form otherwise.
enum class CollectiveFidelity : std::uint8_t { automatic, closed_form, flows };

struct SimulationOptions {
  int steps = 3;                  // back to back; the steady period is taken from the last two starts
  CollectiveFidelity collectives = CollectiveFidelity::automatic;
  std::function<void(double done_share)> progress;  // called now and then; may be empty
};

struct Simulation {
  Timeline timeline;              // all steps
  // Latest start over the members of each communication task instance = timeline.start; per-member
  // queueing is waiting and is derived when a trace is made.
  std::uint64_t tasks = 0;        // task instances simulated
  double wall_s = 0;              // host seconds of the event loop
};

// Throws std::invalid_argument (cluster too small, no fabric) before anything is simulated, and
// std::runtime_error with the grid of stuck lane heads on a simulated deadlock.
Simulation simulate(const TaskGraph& graph, const Cluster& cluster, const SimulationOptions& options);

}  // namespace slipway
