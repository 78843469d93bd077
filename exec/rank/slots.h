// The graph's buffers on one rank: what a task has written stays until its last reader on this rank is done.
//
// Readers may run in several lanes' threads, so the counts are atomic. A buffer of step k+1 may be written while a slow
// lane still reads that of step k, so odd and even steps have separate slots. Buckets and parameters are in
// BlockParameters. Under ZeRO 2 and 3 a micro-batch's gradients of a block wait in their buffer until they are reduced.
// Under ZeRO 3 the buffer of gathered weights holds their memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/operators/region.h"
#include "schedules/graph/task_graph.h"

namespace slipway::exec {

class Slots {
 public:
  Slots(const TaskGraph& graph, int rank);

  // Throw std::runtime_error with the buffer when it is empty (a task ran before its input was written).
  at::Tensor tensor(BufferId buffer, int step) const;
  std::shared_ptr<Region> region(BufferId buffer, int step) const;

  void put(BufferId buffer, int step, at::Tensor tensor);
  void put(BufferId buffer, int step, std::shared_ptr<Region> region);
  // Keeps `memory` until the last reader is done.
  void hold(BufferId buffer, int step, std::shared_ptr<void> memory);

  // `task` has read its inputs.
  void release_inputs(TaskId task, int step);

  // The inputs or outputs of `task` on this rank that have `kind`.
  std::vector<BufferId> inputs(TaskId task, BufferKind kind) const;
  std::vector<BufferId> outputs(TaskId task, BufferKind kind) const;

 private:
  struct Slot {
    at::Tensor tensor;
    std::shared_ptr<Region> region;
    std::shared_ptr<void> memory;
    std::atomic<int> readers_left{0};
  };
  Slot& slot(BufferId buffer, int step) const;
  void start_counting(Slot& slot, BufferId buffer);
  std::vector<BufferId> of_kind(std::span<const std::uint32_t> buffers, BufferKind kind) const;

  const TaskGraph& graph_;
  int rank_;
  std::vector<std::int32_t> local_;  // per buffer of the graph: its slot here, or none
  std::vector<int> readers_;         // per slot: tasks on this rank that read it
  mutable std::vector<Slot> slots_[2];
};

}  // namespace slipway::exec
