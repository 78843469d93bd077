// exec/transport/device.h on the ordered device: each function has the guarantees of exec/transport/cuda/ and no more.
//
// SLIPWAY_ORDER_WITHOUT=wait (keep, finish) leaves these out, to test that the checker misses them.
#include "exec/transport/device.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "exec/process/clock.h"
#include "exec/transport/cpu/transport_gloo.h"
#include "tests/stream_order/ordered_device.h"

namespace slipway::test {
namespace {

using Access = StreamOrder::Access;

bool is_left_out(std::string_view what) {
  static const char* const named = std::getenv("SLIPWAY_ORDER_WITHOUT");
  return named != nullptr && what == named;
}

// A found race makes the program fail, whatever its status.
void print_races() {
  const std::vector<std::string> races = stream_order().races();
  for (const std::string& race : races) std::fprintf(stderr, "stream order: %s\n", race.c_str());
  std::printf("stream order: %lld accesses behind another stream's\n",
              static_cast<long long>(stream_order().ordered()));
  std::fflush(nullptr);
  if (!races.empty()) _exit(1);
}

class OrderedQueue : public DeviceQueue {
 public:
  void begin_lane() override { work_on(stream_order().new_stream()); }
  Mark mark() override {
    return std::make_shared<Reached>(Reached{stream_order().mark(this_stream()), monotonic_ns()});
  }
  void wait_for(const Mark& mark) override {
    if (!is_left_out("wait")) stream_order().wait_for(this_stream(), reached(mark).clock);
  }
  void finish(const Mark& mark) override {
    if (!is_left_out("finish")) stream_order().finish(reached(mark).clock);
  }
  std::vector<std::int64_t> times_ns(const std::vector<Mark>& marks) override {
    std::vector<std::int64_t> times;
    for (const Mark& mark : marks) times.push_back(reached(mark).at_ns);
    return times;
  }

 private:
  struct Reached {
    StreamOrder::Mark clock;
    std::int64_t at_ns = 0;
  };
  static const Reached& reached(const Mark& mark) { return *static_cast<const Reached*>(mark.get()); }
};

// Between processes, tensors of the host go over Gloo. The device's work is on the lane's stream, as with c10d's NCCL:
// collectives start on it, and it waits for sends and receives, which waited for it.
class OrderedTransport : public Transport {
 public:
  explicit OrderedTransport(std::unique_ptr<Transport> host) : host_(std::move(host)) {}
  void all_reduce(at::Tensor& tensor) override {
    at::Tensor here = to_be(tensor, Access::write, "all-reduce");
    host_->all_reduce(here);
  }
  void all_gather(at::Tensor& whole, const at::Tensor& part) override {
    const at::Tensor from = to_be(part, Access::read, "all-gather");
    at::Tensor into = to_be(whole, Access::write, "all-gather");
    host_->all_gather(into, from);
  }
  void reduce_scatter(at::Tensor& part, const at::Tensor& whole) override {
    const at::Tensor from = to_be(whole, Access::read, "reduce-scatter");
    at::Tensor into = to_be(part, Access::write, "reduce-scatter");
    host_->reduce_scatter(into, from);
  }
  void shift(at::Tensor& received, const at::Tensor& sent) override {
    const at::Tensor from = to_be(sent, Access::read, "shift");
    at::Tensor into = to_be(received, Access::write, "shift");
    host_->shift(into, from);
  }
  void all_to_all(at::Tensor& received, const at::Tensor& sent, const std::vector<std::int64_t>& received_rows,
                  const std::vector<std::int64_t>& sent_rows) override {
    const at::Tensor from = to_be(sent, Access::read, "all-to-all");
    at::Tensor into = to_be(received, Access::write, "all-to-all");
    host_->all_to_all(into, from, received_rows, sent_rows);
  }
  void send(const at::Tensor& tensor, int member) override { host_->send(to_be(tensor, Access::read, "send"), member); }
  void receive(at::Tensor& tensor, int member) override {
    at::Tensor into = to_be(tensor, Access::write, "receive");
    host_->receive(into, member);
  }
  void barrier() override {
    host_->barrier();
    finish_this_stream();
  }
  void shutdown() override { host_->shutdown(); }

 private:
  static at::Tensor to_be(const at::Tensor& tensor, Access access, const char* what) {
    note_use(tensor, access, what);
    return on_host(tensor);
  }
  std::unique_ptr<Transport> host_;
};

}  // namespace
}  // namespace slipway::test

// The definitions of exec/transport/device.h. In another namespace they would be overloads, and the linker would take
// those of the processor.
namespace slipway::exec {
using namespace test;

void prepare_device(bool, Dtype) { std::atexit(print_races); }
at::Device device_of_rank(int) { return ordered_device; }
void warm_up(at::Device, Dtype, bool) {}
std::unique_ptr<DeviceQueue> queue_of(at::Device) { return std::make_unique<OrderedQueue>(); }
std::unique_ptr<SegmentCapture> capture_of(at::Device) { return nullptr; }

void keep_for_this_lane(const at::Tensor& tensor) {
  if (!is_left_out("keep")) stream_order().keep_for(tensor.storage().data(), this_stream());
}

// Uses a stream of its own, which is behind only what the host has waited for.
double number_of(const at::Tensor& scalar) {
  const int mine = this_stream();
  work_on(stream_order().new_stream());
  const double number = scalar.item<double>();
  work_on(mine);
  return number;
}

void finish_work(at::Device) {
  if (!is_left_out("finish")) finish_this_stream();
}

void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  sum.addmm_(left.to(sum.scalar_type()), right.to(sum.scalar_type()));
}

std::unique_ptr<Transport> connect_transport(const StoreHost& store, const Group& group, int rank,
                                             const std::string& store_host, at::Device) {
  return std::make_unique<OrderedTransport>(connect_gloo(store, group, rank, store_host));
}

}  // namespace slipway::exec
