// The only file with Gloo headers. They are Debian's (libgloo-dev); the library itself is inside LibTorch.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <sched.h>

#include <cstdlib>
#include <functional>

#include "exec/transport/cpu/transport_gloo.h"

#include "exec/process/addresses.h"
#include "exec/process/environment.h"
#include "exec/process/store.h"

namespace slipway::exec {
namespace {

// A connection that a peer has closed throws at once, whatever this limit is.
constexpr auto patience = std::chrono::milliseconds(static_cast<std::int64_t>(while_alive_s * 1000));
constexpr auto connect_patience = std::chrono::seconds(120);

// c10d writes every operation to a flight recorder that all process groups of a process share. It enters a group's
// first operation without a lock (PyTorch 2.11, FlightRecorderDetail.hpp), so two lanes that do so at once may crash.
// The recorder reads its size at first use and its contents are unused. It is switched off here, because before main
// there is only one thread.
[[maybe_unused]] const bool flight_recorder_is_off = setenv("TORCH_FR_BUFFER_SIZE", "0", 1) == 0;

std::shared_ptr<gloo::transport::Device> make_device(const std::string& store_host) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface && *interface) return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  if (is_loopback(store_host)) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  // Not the default, the address of this machine's name, which many systems have on the loopback.
  const std::string own = address_towards(store_host);
  return own.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                     : c10d::ProcessGroupGloo::createDeviceForHostname(own);
}

// A device is a thread that reads sockets. When it wakes beside a lane that is writing, that connection is locked. The
// device then polls until it is free (gloo/transport/tcp/pair.cc, handleEvents: it tries the lock and leaves it to the
// next poll). On the lane's own core it polls in vain until its time slice ends. On Linux 6.18 with one core per rank,
// a quarter of the exchanges of 400 kB took 3 to 5 ms instead of 0.2. A batch thread does not preempt a running thread
// (sched(7)), so the lane ends its write first. A new thread inherits the policy of the thread that makes it.
std::shared_ptr<gloo::transport::Device> device_for(const std::string& store_host) {
  const sched_param no_priority{};
  const int policy = ::sched_getscheduler(0);
  const bool inherited = policy == SCHED_OTHER && ::sched_setscheduler(0, SCHED_BATCH, &no_priority) == 0;
  auto device = make_device(store_host);
  if (inherited) ::sched_setscheduler(0, policy, &no_priority);
  return device;
}

c10::intrusive_ptr<c10d::Backend> make_backend(const c10::intrusive_ptr<c10d::Store>& store, int member, int size,
                                               const std::string& store_host) {
  auto options = c10d::ProcessGroupGloo::Options::create(connect_patience);
  options->devices.push_back(device_for(store_host));
  options->threads = 1;  // one task in flight per lane
  auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store, member, size, options);
  backend->setTimeout(patience);
  return backend;
}

class GlooTransport : public Transport {
 public:
  GlooTransport(const StoreHost& store, Group group, int rank, const std::string& store_host)
      : group_(std::move(group)),
        member_(member_of(group_, rank)),
        store_(store.raw("group/" + std::to_string(group_.id))) {
    const auto shared = c10::intrusive_ptr<c10d::Store>::reclaim_copy(store_.get());
    guarded(group_.name, "connect", [&] { backend_ = make_backend(shared, member_, size(), store_host); });
  }

  void all_reduce(at::Tensor& tensor) override {
    guarded(group_.name, "all-reduce", [&] {
      std::vector<at::Tensor> tensors{tensor};
      backend_->allreduce(tensors)->wait(patience);
    });
  }
  // Both below are direct exchanges of parts. c10d's own for Gloo take more than twice as long (16 MiB, two ranks on
  // loopback: all-gather 22 ms against 8; reduce-scatter, which is an all-reduce there, 32 ms against 12). And a
  // reduce-scatter at the cost of an all-reduce would fit no α-β formula that the all-reduce fits.
  void all_gather(at::Tensor& whole, const at::Tensor& part) override {
    guarded(group_.name, "all-gather", [&] {
      part_of(whole, member_).copy_(part);  // mostly itself
      exchange([&](int) { return part; }, [&](int from) { return part_of(whole, from); });
    });
  }
  void reduce_scatter(at::Tensor& part, const at::Tensor& whole) override {
    guarded(group_.name, "reduce-scatter", [&] {
      std::vector<at::Tensor> parts;
      for (int from = 0; from < size(); ++from) {
        parts.push_back(from == member_ ? part_of(whole, from) : at::empty_like(part));
      }
      exchange([&](int to) { return part_of(whole, to); }, [&](int from) { return parts[from]; });
      at::Tensor sum = parts[0] + parts[1];  // `part` may be this member's of `whole`
      for (std::size_t from = 2; from < parts.size(); ++from) sum.add_(parts[from]);
      part.copy_(sum);
    });
  }
  void shift(at::Tensor& received, const at::Tensor& sent) override {
    guarded(group_.name, "shift", [&] { exchange_round(1, sent, received); });
  }
  // Direct exchanges, as above. A pair that has nothing to exchange sends nothing.
  void all_to_all(at::Tensor& received, const at::Tensor& sent, const std::vector<std::int64_t>& received_rows,
                  const std::vector<std::int64_t>& sent_rows) override {
    guarded(group_.name, "all-to-all", [&] {
      const std::vector<at::Tensor> to = sent.split_with_sizes(sent_rows),
                                    from = received.split_with_sizes(received_rows);
      at::Tensor own = from[member_];
      own.copy_(to[member_]);
      exchange([&](int other) { return to[other]; }, [&](int other) { return from[other]; });
    });
  }
  void send(const at::Tensor& tensor, int member) override {
    guarded(group_.name, "send", [&] {
      std::vector<at::Tensor> tensors{tensor};
      backend_->send(tensors, member, 0)->wait(patience);
    });
  }
  void receive(at::Tensor& tensor, int member) override {
    guarded(group_.name, "receive", [&] {
      std::vector<at::Tensor> tensors{tensor};
      backend_->recv(tensors, member, 0)->wait(patience);
    });
  }
  void barrier() override {
    guarded(group_.name, "barrier", [&] { backend_->barrier()->wait(patience); });
  }
  void shutdown() override { backend_->shutdown(); }

 private:
  int size() const { return static_cast<int>(group_.ranks.size()); }
  at::Tensor part_of(const at::Tensor& whole, int member) const {
    const std::int64_t rows = whole.size(0) / size();
    return whole.narrow(0, member * rows, rows);
  }
  // Every member sends one tensor to each other member and receives one: in round k to the k-th next and from the k-th
  // before. So every connection is used once and in both directions.
  void exchange(const std::function<at::Tensor(int)>& to_send, const std::function<at::Tensor(int)>& to_receive) {
    for (int round = 1; round < size(); ++round)
      exchange_round(round, to_send((member_ + round) % size()), to_receive((member_ + size() - round) % size()));
  }
  void exchange_round(int round, const at::Tensor& to_send, const at::Tensor& to_receive) {
    std::vector<at::Tensor> sent{to_send}, received{to_receive};
    c10::intrusive_ptr<c10d::Work> receiving, sending;
    if (to_receive.numel() > 0) receiving = backend_->recv(received, (member_ + size() - round) % size(), 0);
    if (to_send.numel() > 0) sending = backend_->send(sent, (member_ + round) % size(), 0);
    if (receiving) receiving->wait(patience);
    if (sending) sending->wait(patience);
  }

  Group group_;
  int member_;
  std::shared_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::Backend> backend_;
};

}  // namespace

std::unique_ptr<Transport> connect_gloo(const StoreHost& store, const Group& group, int rank,
                                        const std::string& store_host) {
  return std::make_unique<GlooTransport>(store, group, rank, store_host);
}

}  // namespace slipway::exec
