// The only file with Gloo headers. They are Debian's (libgloo-dev); the library itself is inside LibTorch.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <cstdlib>

#include "exec/transport.h"

namespace slipway {
namespace {

// A rank may wait for another's compute as long as that takes; lost peers are the heartbeat's business. A
// connection that a peer's end has closed throws at once, whatever this is.
constexpr auto patience = std::chrono::hours(24);
constexpr auto connect_patience = std::chrono::seconds(120);

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

std::shared_ptr<gloo::transport::Device> device_for(const std::string& store_host) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface && *interface) return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  if (is_loopback(store_host)) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  return c10d::ProcessGroupGloo::createDefaultDevice();
}

c10::intrusive_ptr<c10d::Backend> make_backend(const c10::intrusive_ptr<c10d::Store>& store, int member,
                                               int size, const std::string& store_host) {
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
      : group_(std::move(group)), store_(store.raw("group/" + std::to_string(group_.id))) {
    const auto found = std::find(group_.ranks.begin(), group_.ranks.end(), rank);
    if (found == group_.ranks.end()) {
      throw std::logic_error("rank " + std::to_string(rank) + " is no member of communicator " +
                             group_.name);
    }
    const auto shared = c10::intrusive_ptr<c10d::Store>::reclaim_copy(store_.get());
    guarded("connect", [&] {
      backend_ = make_backend(shared, static_cast<int>(found - group_.ranks.begin()),
                              static_cast<int>(group_.ranks.size()), store_host);
    });
  }

  void all_reduce(at::Tensor& tensor) override {
    guarded("all-reduce", [&] {
      std::vector<at::Tensor> tensors{tensor};
      backend_->allreduce(tensors)->wait(patience);
    });
  }
  void all_gather(at::Tensor& whole, const at::Tensor& part) override {
    guarded("all-gather", [&] {
      at::Tensor input = part;
      backend_->_allgather_base(whole, input)->wait(patience);
    });
  }
  void reduce_scatter(at::Tensor& part, const at::Tensor& whole) override {
    guarded("reduce-scatter", [&] {
      at::Tensor input = whole;
      backend_->_reduce_scatter_base(part, input)->wait(patience);
    });
  }
  void send(const at::Tensor& tensor, int member) override {
    guarded("send", [&] {
      std::vector<at::Tensor> tensors{tensor};
      backend_->send(tensors, member, 0)->wait(patience);
    });
  }
  void receive(at::Tensor& tensor, int member) override {
    guarded("receive", [&] {
      std::vector<at::Tensor> tensors{tensor};
      backend_->recv(tensors, member, 0)->wait(patience);
    });
  }
  void barrier() override {
    guarded("barrier", [&] { backend_->barrier()->wait(patience); });
  }
  void shutdown() override { backend_->shutdown(); }

 private:
  template <class Operation>
  void guarded(const char* what, Operation operation) {
    try {
      operation();
    } catch (const std::exception& error) {
      const std::string text = error.what();
      throw TransportError(std::string(what) + " on communicator " + group_.name +
                           " broke: " + text.substr(0, text.find('\n')));
    }
  }

  Group group_;
  std::shared_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::Backend> backend_;
};

}  // namespace

std::unique_ptr<Transport> connect_gloo(const StoreHost& store, const Group& group, int rank,
                                        const std::string& store_host) {
  return std::make_unique<GlooTransport>(store, group, rank, store_host);
}

}  // namespace slipway
