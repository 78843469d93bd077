// The critical path of a step: its tasks, each with the number of times that it is on the path. Their prices sum to the
// step.
//
//   rank 0   ┤ a ├─┐              ┌─┤ d ├──        from the first task of a step back to that of the step before:
//   pp             └┤ b ├┐        │                every task began when something ended. d waits for c, c for b,
//   rank 1               └─┤  c  ├┘                b for a: step = a + b + c + d
//
// So the derivative of the step's time by a constant is the sum of the derivatives of these prices, as long as no other
// path becomes longer. Where the host was late, the launches since its last synchronisation are on the path instead.
// A periodic step's path through the periods that were kept stands for those that were left out.
// Guarded by tests/scenarios/priced_run_test.cpp: the terms sum to the step's time; their slopes are those of a replay.
#pragma once

#include <vector>

#include "models/machine/priced_cluster.h"
#include "schedules/time/durations.h"
#include "schedules/time/periodic.h"
#include "schedules/time/replay.h"

namespace slipway::schedules {

struct PathTerm {
  enum class Kind : std::uint8_t {
    task,       // its seconds on the device or the links
    host,       // its launches
    beside,     // what products lose beside this message, if it ends beside one
    outlasted,  // what this product loses beside messages that outlast it
  };
  Kind kind = Kind::task;
  std::int32_t work = 0;
  std::int32_t communicator = none;
  std::int32_t group = 0;  // of nodes: whose machine computes or launches
  // Parts of one where the path begins or ends within a task. Below 0: lost before the path, of messages on it.
  double count = 0;
  double seconds = 0;        // of one task of bubble work, which no cluster prices; else 0
  std::int32_t rank = none;  // that computes on a slow GPU (models/machine/degradation.h); none: all others
};

// Terms in a fixed order. `timeline`: a replay of at least two steps with these durations. `periodic`: of a periodic
// step.
std::vector<PathTerm> critical_path(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations,
                                    const Timeline& timeline, const PeriodicTimeline* periodic = nullptr);

// Seconds of each term, once, on a cluster with other constants.
std::vector<double> term_seconds(const TaskGraph& graph, const PricedCluster& cluster,
                                 const std::vector<PathTerm>& terms);

}  // namespace slipway::schedules
