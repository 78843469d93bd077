#include "sim/compute.h"

#include <algorithm>

namespace slipway::sim {
namespace {

constexpr double never = -1;  // the simulation begins at 0

}  // namespace

// Ranks of a node, and of a GPU, are consecutive, whatever the order of nodes.
SharedCompute::SharedCompute(const Cluster& cluster, int ranks) : ranks_(static_cast<std::size_t>(ranks)) {
  Place before;
  for (int r = 0; r < ranks; ++r) {
    const Place place = place_of(cluster, r);
    const Machine& machine = cluster.groups[place.group].machine;
    const bool shares = !pools_.empty() && place.node == before.node && (machine.cores > 0 || place.gpu == before.gpu);
    if (!shares) pools_.push_back({r, r, std::max(1, machine.cores)});
    pools_.back().last_rank = r + 1;
    before = place;
    ranks_[r].pool = static_cast<int>(pools_.size()) - 1;
    ranks_[r].slowdown = machine.overlap_slowdown;
    slowed_by_communication_ |= machine.overlap_slowdown != 1;
  }
  for (Pool& pool : pools_)
    if (pool.cores >= pool.last_rank - pool.first_rank) pool.cores = 0;
  for (Rank& rank : ranks_) rank.changes = rank.slowdown != 1 || pools_[rank.pool].cores > 0;
}

bool SharedCompute::any_changes() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.changes; });
}

void SharedCompute::touch(int rank) {
  if (ranks_[rank].touched) return;
  ranks_[rank].touched = true;
  touched_ranks_.push_back(rank);
}

void SharedCompute::count_busy(int pool_index, int change) {
  Pool& pool = pools_[pool_index];
  pool.busy += change;
  if (pool.cores == 0 || pool.touched) return;
  pool.touched = true;
  touched_pools_.push_back(pool_index);
}

void SharedCompute::count_communication(int rank, int change) {
  ranks_[rank].communications += change;
  if (ranks_[rank].slowdown != 1) touch(rank);
}

void SharedCompute::begin(int rank_index, Instance instance, double work_s, double now, double not_before) {
  Rank& rank = ranks_[rank_index];
  rank.running = true;
  rank.instance = instance;
  rank.left_s = work_s;
  rank.speed = 0;
  rank.since = now;
  rank.not_before = not_before;
  touch(rank_index);
  count_busy(rank.pool, 1);
}

void SharedCompute::end(int rank_index) {
  Rank& rank = ranks_[rank_index];
  rank.running = false;
  count_busy(rank.pool, -1);
}

bool SharedCompute::comes_due(int rank_index, Instance instance, double date) {
  Rank& rank = ranks_[rank_index];
  if (!rank.running || rank.instance != instance || rank.due != date) return false;
  rank.due = never;
  return true;
}

void SharedCompute::update(Rank& rank, double now, Calendar& calendar) {
  if (!rank.running) return;
  const Pool& pool = pools_[rank.pool];
  double speed = pool.cores == 0 ? 1 : std::min(1.0, static_cast<double>(pool.cores) / pool.busy);
  if (rank.communications > 0) speed /= rank.slowdown;
  if (speed == rank.speed) return;
  rank.left_s = std::max(0.0, rank.left_s - (now - rank.since) * rank.speed);
  rank.since = now;
  rank.speed = speed;
  rank.due = std::max(now + rank.left_s / speed, rank.not_before);
  calendar.add(rank.due, rank.instance);
}

void SharedCompute::settle(double now, Calendar& calendar) {
  std::sort(touched_pools_.begin(), touched_pools_.end());
  for (const int p : touched_pools_) {
    Pool& pool = pools_[p];
    pool.touched = false;
    for (int r = pool.first_rank; r < pool.last_rank; ++r) update(ranks_[r], now, calendar);
  }
  for (const int r : touched_ranks_) {
    ranks_[r].touched = false;
    update(ranks_[r], now, calendar);
  }
  touched_pools_.clear();
  touched_ranks_.clear();
}

}  // namespace slipway::sim
