// Compute tasks whose speed changes while they run. A running task holds (work left, speed):
//
//   speed = min(1, cores / busy compute lanes of the node)        Machine.cores > 0: CPU ranks share cores
//         = 1 / busy compute lanes of the GPU                     Cluster.ranks_per_gpu > 1: ranks share a GPU
//         / overlap_slowdown while a communication of the rank is under way
//
// Speeds are piecewise constant, so ends are exact. When a speed changes, the work done so far is settled and a new end
// is written into the calendar; the old entry is stale. Ranks whose speed cannot change (no overlap slowdown, and a
// core or a GPU for each rank) are not handled here: their end is fixed at the start.
// Guarded by tests/sim/compute_test.cpp.
#pragma once

#include <vector>

#include "models/machine/machine.h"
#include "sim/calendar.h"

namespace slipway::sim {

class SharedCompute {
 public:
  SharedCompute(const Cluster& cluster, int ranks);

  bool any_changes() const;  // of any rank
  bool changes(int rank) const { return ranks_[rank].changes; }
  bool slowed_by_communication() const { return slowed_by_communication_; }

  // It ends no earlier than `not_before`, when its host has issued it.
  void begin(int rank, Instance instance, double work_s, double now, double not_before);
  void end(int rank);
  void communication_begins(int rank) { count_communication(rank, 1); }
  void communication_ends(int rank) { count_communication(rank, -1); }

  // True if this calendar entry ends the rank's running task. At most one entry does: a speed that changes back at the
  // date at which it changed makes a second entry of the same date.
  bool comes_due(int rank, Instance instance, double date);
  // Settles all changes of one date: new ends go to the calendar.
  void settle(double now, Calendar& calendar);

 private:
  struct Rank {
    int pool = 0;
    bool changes = false;
    double slowdown = 1;
    int communications = 0;
    bool running = false;
    bool touched = false;
    Instance instance = 0;
    double left_s = 0, speed = 0, since = 0, due = 0, not_before = 0;
  };
  // Ranks that share cores, or one GPU, which counts as one core.
  struct Pool {
    int first_rank = 0, last_rank = 0;  // [first, last)
    int cores = 0;                      // 0: ranks do not share
    int busy = 0;
    bool touched = false;
  };
  void count_communication(int rank, int change);
  void count_busy(int pool, int change);
  void touch(int rank);
  void update(Rank& rank, double now, Calendar& calendar);

  std::vector<Rank> ranks_;
  std::vector<Pool> pools_;
  std::vector<int> touched_ranks_, touched_pools_;
  bool slowed_by_communication_ = false;
};

}  // namespace slipway::sim
