#include "sim/compute.h"

#include <algorithm>

namespace slipway {
namespace {

constexpr double never = -1;  // the simulation begins at 0

}  // namespace

SharedCompute::SharedCompute(const Cluster& cluster, int ranks) : ranks_(index(ranks)) {
  for (int r = 0; r < ranks; ++r) {
    const Place place = place_of(cluster, r);
    const Machine& machine = cluster.groups[index(place.group)].machine;
    if (index(place.node) >= nodes_.size()) nodes_.resize(index(place.node) + 1);
    Node& node = nodes_[index(place.node)];
    if (node.last_rank == 0) node = {r, r, machine.cores};
    node.last_rank = r + 1;  // ranks of a node follow one another, whatever the order of nodes
    ranks_[index(r)].node = place.node;
    ranks_[index(r)].slowdown = machine.overlap_slowdown;
    slowed_by_communication_ |= machine.overlap_slowdown != 1;
  }
  for (Node& node : nodes_)
    if (node.cores >= node.last_rank - node.first_rank) node.cores = 0;
  for (Rank& rank : ranks_) rank.changes = rank.slowdown != 1 || nodes_[index(rank.node)].cores > 0;
}

bool SharedCompute::any_changes() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.changes; });
}

void SharedCompute::touch(int rank) {
  if (ranks_[index(rank)].touched) return;
  ranks_[index(rank)].touched = true;
  touched_ranks_.push_back(rank);
}

void SharedCompute::count_busy(int node_index, int change) {
  Node& node = nodes_[index(node_index)];
  node.busy += change;
  if (node.cores == 0 || node.touched) return;
  node.touched = true;
  touched_nodes_.push_back(node_index);
}

void SharedCompute::count_communication(int rank, int change) {
  ranks_[index(rank)].communications += change;
  if (ranks_[index(rank)].slowdown != 1) touch(rank);
}

void SharedCompute::begin(int rank_index, Instance instance, double work_s, double now) {
  Rank& rank = ranks_[index(rank_index)];
  rank.running = true;
  rank.instance = instance;
  rank.left_s = work_s;
  rank.speed = 0;
  rank.since = now;
  touch(rank_index);
  count_busy(rank.node, 1);
}

void SharedCompute::end(int rank_index) {
  Rank& rank = ranks_[index(rank_index)];
  rank.running = false;
  count_busy(rank.node, -1);
}

bool SharedCompute::comes_due(int rank_index, Instance instance, double date) {
  Rank& rank = ranks_[index(rank_index)];
  if (!rank.running || rank.instance != instance || rank.due != date) return false;
  rank.due = never;
  return true;
}

void SharedCompute::update(Rank& rank, double now, Calendar& calendar) {
  if (!rank.running) return;
  const Node& node = nodes_[index(rank.node)];
  double speed = node.cores == 0 ? 1 : std::min(1.0, static_cast<double>(node.cores) / node.busy);
  if (rank.communications > 0) speed /= rank.slowdown;
  if (speed == rank.speed) return;
  rank.left_s = std::max(0.0, rank.left_s - (now - rank.since) * rank.speed);
  rank.since = now;
  rank.speed = speed;
  rank.due = now + rank.left_s / speed;
  calendar.add(rank.due, rank.instance);
}

void SharedCompute::settle(double now, Calendar& calendar) {
  std::sort(touched_nodes_.begin(), touched_nodes_.end());
  for (const int n : touched_nodes_) {
    Node& node = nodes_[index(n)];
    node.touched = false;
    for (int r = node.first_rank; r < node.last_rank; ++r) update(ranks_[index(r)], now, calendar);
  }
  for (const int r : touched_ranks_) {
    ranks_[index(r)].touched = false;
    update(ranks_[index(r)], now, calendar);
  }
  touched_nodes_.clear();
  touched_ranks_.clear();
}

}  // namespace slipway
