// The transports of one rank, one for each of its communicators, and the messages of communication tasks on them. Step
// programs of a run have the same communicators, so they share the transports.
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
  // Connects nothing yet. All arguments must outlive this.
  RankTransports(Seat& seat, const TaskGraph& graph, at::Device device, DeviceQueue* queue);

  // Meets the other members of each communicator. Throws std::runtime_error with the one that fails.
  void connect();
  // Runs the transfer or collective `task` of `graph`, a step program of the run, on this rank's `message`. Returns
  // when it is done, on a device when it is started. Throws std::runtime_error for an unknown collective.
  void move(const TaskGraph& graph, TaskId task, Message& message);
  // True if the messages of `task` occupy the device until other processes send or receive.
  bool leaves_process(const TaskGraph& graph, TaskId task) const;
  // Between these two, lanes may meet. Called where no lane is at work.
  void begin_meetings();
  void end_meetings();
  // Waits until every member of the task's communicator has called this as many times as this rank has.
  void meet(const TaskGraph& graph, TaskId task);
  void shutdown();

  // By communicator; null where this rank is no member.
  const std::vector<std::unique_ptr<Transport>>& all() const { return transports_; }
  std::vector<std::string> names() const;

 private:
  std::unique_ptr<Transport> connected(const Group& group);
  void refuse_loopback_between_hosts(const Group& group) const;
  void collect(Transport& transport, Collective collective, Message& message);

  Seat& seat_;
  const TaskGraph& graph_;
  int rank_;
  at::Device device_;
  DeviceQueue* queue_;
  std::vector<std::unique_ptr<Transport>> transports_;
  struct Meetings {
    std::unique_ptr<Store> store;  // separate, because lanes wait side by side; null: none may be held
    std::int64_t held = 0;
  };
  std::vector<Meetings> meetings_;  // by communicator
};

}  // namespace slipway::exec
