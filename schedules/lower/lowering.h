// From a scenario's numbers to the task graph. The lowering cuts actions into segments and adds all communication. It
// also adds what a layout needs: tied embeddings, sequence-parallel norms, gradient norm, ZeRO traffic, recomputation.
// Then the global order is computed once and stored.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

// Bytes that each pipeline rank's members hold throughout a step: weights, gradients and optimizer of their shard.
// K-FAC's inverses are those of the replica with most.
std::vector<StaticBytes> static_bytes_of(const Step& step);
// The same for `elements` parameters (of a tensor shard) on one rank; `copies` of the model in the pipeline.
StaticBytes static_bytes_of(double elements, const Layout& layout, Dtype dtype, Dtype gradient_dtype, int copies = 1);

// The graph without `order`. The step must be legal (schedules/rules/rules.h).
TaskGraph lower(const Step& step, const Representatives& representatives = {});

// When the hosts have issued a task's kernels: seconds from the last synchronisation of a member's host, in the order of
// its program. The host waits for the device where an optimizer task starts, because it reads the norm.
//
//   host    ├ a ├ b ├ c ├──── waits ────┤ opt ├ d ├ ...          a device task starts after its first kernel is issued,
//   device      │ a │ b    │ c │ norm   │ opt  │ d               and ends after its last one
//
// Empty where no machine has a host time (CPU ranks, CUDA graphs).
struct HostIssue {
  struct Share {
    std::int32_t rank = 0;
    double before = 0, after = 0;  // issue of the first and of the last kernel
  };
  std::vector<std::uint32_t> begin;  // per task, and the end
  std::vector<Share> shares;         // of members that have tasks
  std::vector<double> tail;          // per rank: what is issued after the last synchronisation
  bool empty() const { return shares.empty(); }
  std::span<const Share> of(TaskId task) const {
    return {shares.data() + begin[task], shares.data() + begin[task + 1]};
  }
};

// Seconds of each task; schedules/time/durations.h makes them.
struct Durations {
  std::vector<double> seconds;  // per task
  HostIssue host;
  Durations() = default;
  explicit Durations(std::size_t tasks) : seconds(tasks) {}
  Durations(std::vector<double> each) : seconds(std::move(each)) {}
  Durations(std::initializer_list<double> each) : seconds(each) {}
  double& operator[](std::size_t task) { return seconds[task]; }
  double operator[](std::size_t task) const { return seconds[task]; }
  std::size_t size() const { return seconds.size(); }
  void push_back(double each) { seconds.push_back(each); }
  auto begin() const { return seconds.begin(); }
  auto end() const { return seconds.end(); }
};

// The dates that the hosts of a running step allow. One for each run of a graph; tasks are asked in the global order.
class Hosts {
 public:
  Hosts(const HostIssue& issue, std::size_t ranks) : issue_(issue), base_(issue.empty() ? 0 : ranks) {}
  // The earliest start of a task: a message starts when it is issued, compute when its first kernel is.
  double start(TaskId task, bool is_message) const {
    double date = 0;
    if (!issue_.empty())
      for (const HostIssue::Share& share : issue_.of(task))
        date = std::max(date, base_[static_cast<std::size_t>(share.rank)] + (is_message ? share.after : share.before));
    return date;
  }
  // The earliest end of a compute task.
  double end(TaskId task) const {
    double date = 0;
    if (!issue_.empty())
      for (const HostIssue::Share& share : issue_.of(task))
        date = std::max(date, base_[static_cast<std::size_t>(share.rank)] + share.after);
    return date;
  }
  // The host of `rank` waited until `date`, when its optimizer task started.
  void synchronise(std::int32_t rank, double date) {
    if (!issue_.empty()) base_[static_cast<std::size_t>(rank)] = date;
  }
  void next_step() {
    for (std::size_t rank = 0; rank < base_.size(); ++rank) base_[rank] += issue_.tail[rank];
  }

 private:
  const HostIssue& issue_;
  std::vector<double> base_;  // per rank: date of the last synchronisation
};

// Sets graph.order: topological order by start time in a list replay with these durations, ties by id.
void set_global_order(TaskGraph& graph, const Durations& durations);

}  // namespace slipway::schedules
