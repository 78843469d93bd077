// The only file with NCCL headers. Collectives are enqueued on the lane's own stream (asyncOp = false: c10d's own
// streams are 32 for all groups), sends and receives on the group's. `wait` makes the lane's stream wait for them, not
// the lane's thread. With a time limit the thread would wait (ProcessGroupNCCL.hpp, WorkNCCL::wait): the group has it.
#include "exec/transport/cuda/transport_nccl.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <chrono>
#include <cstdlib>

#include "exec/process/environment.h"
#include "exec/process/store.h"

namespace slipway::exec {
namespace {

constexpr auto patience = std::chrono::milliseconds(static_cast<std::int64_t>(while_alive_s * 1000));

// As for Gloo (exec/transport/cpu/transport_gloo.cpp): groups of several lanes would share c10d's flight recorder.
[[maybe_unused]] const bool flight_recorder_is_off = setenv("TORCH_FR_BUFFER_SIZE", "0", 1) == 0;
// When a peer is gone, c10d's watchdog and its monitor would end the process before the heartbeat has reported why
// (exec/process/heartbeat.h). The watchdog's findings are polled instead (exec/transport/transport_watch.h).
[[maybe_unused]] const bool watchdog_looks_on =
    setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", 0) == 0 && setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 0) == 0;
[[maybe_unused]] const bool order_is_meant =
    setenv("TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING", "0", 0) == 0;
// NCCL prefers every other interface to the loopback. Where all ranks are on this machine, no other machine may reach
// them.
[[maybe_unused]] const bool ranks_of_one_machine_meet_on_its_loopback = [] {
  const char* host = std::getenv("MASTER_ADDR");
  return host != nullptr && is_loopback(host) && setenv("NCCL_SOCKET_IFNAME", "lo", 0) == 0;
}();

class NcclTransport : public Transport {
 public:
  NcclTransport(const StoreHost& store, Group group, int rank, at::Device device)
      : group_(std::move(group)),
        member_(member_of(group_, rank)),
        device_(device),
        store_(store.raw("group/" + std::to_string(group_.id))) {
    const auto shared = c10::intrusive_ptr<c10d::Store>::reclaim_copy(store_.get());
    guarded(group_.name, "connect", [&] {
      shared->setTimeout(patience);  // one member may draw its model longer than the connect took
      auto options = c10d::ProcessGroupNCCL::Options::create();
      options->timeout = patience;
      backend_ =
          c10::make_intrusive<c10d::ProcessGroupNCCL>(shared, member_, static_cast<int>(group_.ranks.size()), options);
      backend_->setBoundDeviceId(device_);
      // All members connect now. Otherwise sends and receives make a separate connection in the first step, while
      // kernels of other communicators wait on the device.
      backend_->eagerConnectSingleDevice(device_);
    });
  }

  void all_reduce(at::Tensor& tensor) override {
    guarded(group_.name, "all-reduce", [&] {
      std::vector<at::Tensor> tensors{tensor};
      c10d::AllreduceOptions options;
      options.asyncOp = false;
      finish(backend_->allreduce(tensors, options));
    });
  }
  void all_gather(at::Tensor& whole, const at::Tensor& part) override {
    guarded(group_.name, "all-gather", [&] {
      at::Tensor input = part;
      c10d::AllgatherOptions options;
      options.asyncOp = false;
      finish(backend_->_allgather_base(whole, input, options));
    });
  }
  void reduce_scatter(at::Tensor& part, const at::Tensor& whole) override {
    guarded(group_.name, "reduce-scatter", [&] {
      at::Tensor input = whole;
      c10d::ReduceScatterOptions options;
      options.asyncOp = false;
      finish(backend_->_reduce_scatter_base(part, input, options));
    });
  }
  // Both are in one NCCL group, so that neither waits for the other.
  void shift(at::Tensor& received, const at::Tensor& sent) override {
    guarded(group_.name, "shift", [&] {
      const int size = static_cast<int>(group_.ranks.size());
      std::vector<at::Tensor> sending{sent}, receiving{received};
      backend_->startCoalescing();
      backend_->send(sending, (member_ + 1) % size, 0);
      backend_->recv(receiving, (member_ + size - 1) % size, 0);
      finish(backend_->endCoalescing());
    });
  }
  void all_to_all(at::Tensor& received, const at::Tensor& sent, const std::vector<std::int64_t>& received_rows,
                  const std::vector<std::int64_t>& sent_rows) override {
    guarded(group_.name, "all-to-all", [&] {
      at::Tensor input = sent;
      std::vector<std::int64_t> from = received_rows, to = sent_rows;
      c10d::AllToAllOptions options;
      options.asyncOp = false;
      finish(backend_->alltoall_base(received, input, from, to, options));
    });
  }
  void send(const at::Tensor& tensor, int member) override {
    guarded(group_.name, "send", [&] {
      std::vector<at::Tensor> tensors{tensor};
      finish(backend_->send(tensors, member, 0));
    });
  }
  void receive(at::Tensor& tensor, int member) override {
    guarded(group_.name, "receive", [&] {
      std::vector<at::Tensor> tensors{tensor};
      finish(backend_->recv(tensors, member, 0));
    });
  }
  // Sums one element and passes one on to the next member, or to all where tokens travel, and waits: this makes the
  // connections that NCCL makes at first use.
  void barrier() override {
    at::Tensor one = at::ones({1}, at::TensorOptions().device(device_)), other = at::empty_like(one);
    all_reduce(one);
    shift(other, one);
    if (group_.every_pair) {
      const std::vector<std::int64_t> each(group_.ranks.size(), 1);
      const at::Tensor to = at::ones({static_cast<std::int64_t>(each.size())}, one.options());
      at::Tensor from = at::empty_like(to);
      all_to_all(from, to, each, each);
    }
    guarded(group_.name, "barrier", [&] { c10::cuda::getCurrentCUDAStream(device_.index()).synchronize(); });
  }
  std::string broken() override {
    switch (backend_->getError()) {
      case c10d::ErrorType::SUCCESS:
        return "";
      case c10d::ErrorType::TIMEOUT:
        return "an operation did not end in time";
      case c10d::ErrorType::COMM_ERROR:
        return "NCCL reports an error";
      case c10d::ErrorType::REMOTE_ERROR:
        return "NCCL reports an error of another rank";
    }
    return "";
  }
  void shutdown() override { backend_->shutdown(); }

 private:
  static void finish(const c10::intrusive_ptr<c10d::Work>& work) {
    if (work) work->wait();
  }

  Group group_;
  int member_;
  at::Device device_;
  std::shared_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> backend_;
};

}  // namespace

std::unique_ptr<Transport> connect_nccl(const StoreHost& store, const Group& group, int rank, at::Device device) {
  return std::make_unique<NcclTransport>(store, group, rank, device);
}

}  // namespace slipway::exec
