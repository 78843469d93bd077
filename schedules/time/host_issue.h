// The dates at which a rank's host launches kernels. They are issued one by one, and a task starts no earlier than its
// first kernel is issued.
//
//   host    ├ a ├ b ├ c ├──── waits ────┤ opt ├ d ├ ...          a device task starts after its first kernel is issued,
//   device      │ a │ b    │ c │ norm   │ opt  │ d               and ends after its last one
//
// The host waits for the device once a step, where its first optimizer task starts, because it reads the norm.
// Guarded by tests/sim/trained_step_test.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

// The host launches kernels one by one.
bool has_host(const Machine& machine);
// Seconds of a rank's host for a work: its launches, and what it does itself for the members of a tensor group.
double host_seconds(const TaskGraph& graph, const Work& work, int members, Axis axis, const Machine& machine);
// Its part, once per recomputed block and micro-batch: the states of the random generators are read before the first
// forward pass; read, set and set back around the second one (PyTorch torch/utils/checkpoint.py, Megatron-LM
// megatron/core/tensor_parallel/random.py). Each takes the host as long as a kernel.
double host_seconds_of_checkpoint(const Machine& machine);
// host_seconds of any work but a segment.
double host_seconds(WorkKind kind, int members, Axis axis, const Machine& machine);

// When the hosts have issued a task's kernels: seconds from a synchronisation of a member's host, in the order of its
// program.
//
//   synchronisation   0: the last one before the graph's first task, 1: that of its first step, 2: of a window's second
//
// Empty where no machine has a host time (CPU ranks, CUDA graphs).
struct HostIssue {
  struct Share {
    std::int32_t rank = 0;
    std::uint16_t since = 0;       // the synchronisation from which the seconds count
    bool waits = false;            // the host waits here: `before` counts from the one before, `after` from this one
    double before = 0, after = 0;  // issue of the first and of the last kernel, s
  };
  std::vector<std::uint32_t> begin;  // per task, and the end
  std::vector<Share> shares;         // of members that have tasks
  struct Host {
    double tail = 0;     // seconds of what it issues after its last synchronisation
    bool waits = false;  // it has synchronisations: its rank has an optimizer task
  };
  std::vector<Host> hosts;   // per rank
  int synchronisations = 1;  // of a host that waits, in all the graph's steps
  bool empty() const { return shares.empty(); }
  std::span<const Share> of(TaskId task) const {
    return {shares.data() + begin[task], shares.data() + begin[task + 1]};
  }
};

// When the hosts issue the tasks of a graph that has its global order.
HostIssue host_issue_of(const TaskGraph& graph, const PricedCluster& cluster);

// The dates that the hosts allow, in a run of the graph's steps one after the other. One for each run. Tasks may be
// asked in any order in which synchronisations are known before what counts from them.
class Hosts {
 public:
  Hosts(const HostIssue& issue, int steps);
  bool empty() const { return issue_.empty(); }

  // A rank whose host must still synchronise before the dates of this task are known; none: they are known.
  std::int32_t awaited(std::size_t step, TaskId task) const;
  // The earliest start: a message starts when it is issued, compute when its first kernel is.
  double start(std::size_t step, TaskId task, bool is_message) const {
    double date = 0;
    if (!empty())
      for (const HostIssue::Share& share : issue_.of(task))
        date = std::max(date, is_message ? last_issue(step, share) : first_issue(step, share));
    return date;
  }
  // The earliest end of a compute task that has started.
  double end(std::size_t step, TaskId task) const {
    double date = 0;
    if (!empty())
      for (const HostIssue::Share& share : issue_.of(task)) date = std::max(date, last_issue(step, share));
    return date;
  }
  // The task starts at `date`: a host that waits for it goes on. Returns its rank, or none.
  std::int32_t begin(std::size_t step, TaskId task, double date);

  double first_issue(std::size_t step, const HostIssue::Share& share) const {
    return date_of(step, share.rank, share.since) + share.before;
  }
  double last_issue(std::size_t step, const HostIssue::Share& share) const {
    return date_of(step, share.rank, share.since + (share.waits ? 1 : 0)) + share.after;
  }

 private:
  std::size_t place_of(std::size_t step, std::int32_t rank, int since) const {
    const auto number = step * static_cast<std::size_t>(issue_.synchronisations) + static_cast<std::size_t>(since);
    return number * issue_.hosts.size() + static_cast<std::size_t>(rank);
  }
  // From where a step's seconds count. After an earlier step's synchronisation the host issues that step's rest first.
  double date_of(std::size_t step, std::int32_t rank, int since) const {
    const double tail = step > 0 && since == 0 ? issue_.hosts[static_cast<std::size_t>(rank)].tail : 0;
    return dates_[place_of(step, rank, since)] + tail;
  }

  const HostIssue& issue_;
  std::vector<double> dates_;  // of synchronisations, rank by rank; negative: not yet
};

}  // namespace slipway::schedules
