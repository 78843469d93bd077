// The exchange of tensors between ranks: one Transport per communicator of the graph. It uses c10d process groups (Gloo
// on CPUs, NCCL on GPUs), chosen by exec/transport/device.h alone. Ranks that share a process exchange tensors by
// copies (exec/transport/local_transport.h). All calls block the calling lane's thread until the operation is complete
// on this rank (Gloo) or enqueued on the lane's stream (NCCL). The order of sums depends on shapes and member count
// only, so equal runs give equal bits. Guarded by tests/exec/transport_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

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
  bool every_pair = false;  // has all-to-alls: every member sends to every other
};
// Index of `rank` in group.ranks. Throws std::logic_error when it is not there.
int member_of(const Group& group, int rank);

// Place of a communicator's ranks when `hosted` ranks share each process: all in one, each in its own, or neither.
enum class Reach : std::uint8_t { inside, apart, mixed };
Reach reach_of(const std::vector<int>& ranks, int hosted);

// Runs one call of an implementation. Any error becomes a TransportError with the operation, the communicator and the
// first line of the cause (the rest is a stack of this program's callers).
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
  // All tensors are contiguous. A broken connection throws TransportError with communicator and operation.
  virtual void all_reduce(at::Tensor& tensor) = 0;  // sum, in place
  // Along dimension 0, in rank order. `part` may be this rank's rows of `whole` themselves.
  virtual void all_gather(at::Tensor& whole, const at::Tensor& part) = 0;
  virtual void reduce_scatter(at::Tensor& part, const at::Tensor& whole) = 0;  // sum
  // Sends to the next member and receives from the one before, at once: blocking sends around a ring could deadlock.
  virtual void shift(at::Tensor& received, const at::Tensor& sent) = 0;
  // Rows of `sent`, members in order, `sent_rows` to each; of `received`, likewise `received_rows` from each. Every
  // member gives the same numbers for a pair. Rows are of dimension 0 and have the same size everywhere.
  virtual void all_to_all(at::Tensor& received, const at::Tensor& sent, const std::vector<std::int64_t>& received_rows,
                          const std::vector<std::int64_t>& sent_rows) = 0;
  virtual void send(const at::Tensor& tensor, int member) = 0;  // member = index in communicator
  virtual void receive(at::Tensor& tensor, int member) = 0;
  virtual void barrier() = 0;
  // Errors on the device since then, which no call reports; empty: none. From any thread.
  virtual std::string broken() { return ""; }
  virtual void shutdown() = 0;
};

}  // namespace slipway::exec
