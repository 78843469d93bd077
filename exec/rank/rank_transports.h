// The transports of one rank, one for each communicator that it is a member of, and what a communication task does on
// them. Step programs of a run have the same communicators, so transports stay over all of them.
// Guarded by tests/exec/execute_run_test.cpp and tests/exec/execute_shared_process_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "exec/lanes/device_queue.h"
#include "exec/rank/rank_model.h"
#include "exec/rank/session.h"
#include "exec/transport/transport.h"

namespace slipway::exec {

class RankTransports {
 public:
  // Nothing is connected yet. All must outlive this.
  RankTransports(Seat& seat, const TaskGraph& graph, at::Device device, DeviceQueue* queue);

  // Meets the other members of each communicator. Throws std::runtime_error naming one that cannot be.
  void connect();
  // Does the transfer or collective `task` of `graph`, a step program of the run, with what it moves on this rank. Returns
  // when it is done, on a device when it is started. Throws std::runtime_error for a collective that there is none of.
  void move(const TaskGraph& graph, TaskId task, Message& message);
  void shutdown();

  // By communicator; empty where this rank is no member.
  const std::vector<std::unique_ptr<Transport>>& all() const { return transports_; }
  std::vector<std::string> names() const;

 private:
  std::unique_ptr<Transport> connected(const Group& group);
  void collect(Transport& transport, Collective collective, Message& message);

  Seat& seat_;
  const TaskGraph& graph_;
  int rank_;
  at::Device device_;
  DeviceQueue* queue_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

}  // namespace slipway::exec
