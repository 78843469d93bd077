// Ranks of one process exchange tensors by copies on the device that they share. No network and no process group is
// needed; NCCL refuses two ranks of one GPU in a communicator. There is one Transport per member; they meet in memory:
//
//   all_reduce, 3 members    meet: every member's tensor is readable
//                            member m sums the m-th third of all tensors, in member order
//                            meet: every member's third is readable, and the tensors are no longer read
//                            copy the thirds home
//                            meet: the thirds may go
//
// A meeting waits on the host until every member's thread has come. On a device with queues (exec/lanes/device_queue.h)
// the members exchange marks, so that the device waits and the host does not. Sums are taken in member order: equal
// runs give equal bits, those of one sum over all members. Guarded by tests/exec/local_transport_test.cpp.
#pragma once

#include <memory>

#include "exec/lanes/device_queue.h"
#include "exec/transport/transport.h"

namespace slipway::exec {

// The communicators of one process whose members are all ranks of it. Thread-safe.
class LocalGroups {
 public:
  LocalGroups();
  ~LocalGroups();
  // Each member joins once, in any order, without waiting. `queue`: of the device, null on the processor; it must
  // outlive the transport. After a member shuts down, the others' calls throw TransportError. Throws std::logic_error
  // when `rank` is no member.
  std::unique_ptr<Transport> join(const Group& group, int rank, DeviceQueue* queue);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace slipway::exec
