// How ranks exchange tensors: one Transport per communicator of the graph. c10d process groups behind
// it (Gloo on CPUs, NCCL on GPUs); which one is exec/transport/device.h's business, nothing else knows. Ranks that share a process
// exchange theirs by copies (exec/transport/local_transport.h). All calls
// block the calling lane's thread until the operation is complete on this rank (Gloo) or enqueued on the
// lane's stream (NCCL). Sums are taken in an order that depends on shapes and member count only: same run,
// same bits. Guarded by tests/exec/transport_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/process/store.h"

namespace slipway::exec {

// A peer went away or did not answer. Mostly the echo of another rank's failure: see exec/process/heartbeat.h.
struct TransportError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One communicator of the graph: its name for messages and its ranks in order.
struct Group {
  int id = 0;  // makes its store keys unique
  std::string name;
  std::vector<int> ranks;
};
// Its place among them. Throws std::logic_error when `rank` is none of them.
int member_of(const Group& group, int rank);

// Where the ranks of a communicator are when `hosted` share each process: all in one, each in its own, or neither.
enum class Reach : std::uint8_t { inside, apart, mixed };
Reach reach_of(const std::vector<int>& ranks, int hosted);

// What an implementation does for one call: whatever goes wrong there becomes a TransportError with the operation, the
// communicator and the first line of the cause (the rest is a stack of our own callers).
template <class Operation>
void guarded(const std::string& communicator, const char* what, Operation operation) {
  try {
    operation();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw TransportError(std::string(what) + " on communicator " + communicator +
                         " broke: " + text.substr(0, text.find('\n')));
  }
}

class Transport {
 public:
  virtual ~Transport() = default;
  // All tensors contiguous. A broken connection throws TransportError naming communicator and operation.
  virtual void all_reduce(at::Tensor& tensor) = 0;  // sum, in place
  // Along dimension 0, in rank order. `part` may be this rank's rows of `whole` themselves.
  virtual void all_gather(at::Tensor& whole, const at::Tensor& part) = 0;
  virtual void reduce_scatter(at::Tensor& part, const at::Tensor& whole) = 0;  // sum
  // To the next member, and from the one before, at once: no order of blocking sends around a ring could deadlock.
  virtual void shift(at::Tensor& received, const at::Tensor& sent) = 0;
  virtual void send(const at::Tensor& tensor, int member) = 0;  // member = index in communicator
  virtual void receive(at::Tensor& tensor, int member) = 0;
  virtual void barrier() = 0;
  // What has gone wrong on the device since, of which no call tells; empty: nothing. From any thread.
  virtual std::string broken() { return ""; }
  virtual void shutdown() = 0;
};

}  // namespace slipway::exec
