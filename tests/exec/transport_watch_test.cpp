// Errors of the device that no call reports.
#include "exec/transport/transport_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "models/namespaces.h"

namespace slipway::test {
namespace {

class Silent : public Transport {
 public:
  void all_reduce(at::Tensor&) override {}
  void all_gather(at::Tensor&, const at::Tensor&) override {}
  void reduce_scatter(at::Tensor&, const at::Tensor&) override {}
  void shift(at::Tensor&, const at::Tensor&) override {}
  void all_to_all(at::Tensor&, const at::Tensor&, const std::vector<std::int64_t>&,
                  const std::vector<std::int64_t>&) override {}
  void send(const at::Tensor&, int) override {}
  void receive(at::Tensor&, int) override {}
  void barrier() override {}
  void shutdown() override {}
  std::string broken() override { return is_broken ? "NCCL reports an error" : ""; }
  std::atomic<bool> is_broken{false};
};

constexpr auto soon = std::chrono::milliseconds(5);

TEST(TransportWatch, TellsOnceWhichCommunicatorBrokeAndWhy) {
  std::vector<std::unique_ptr<Transport>> transports(3);
  auto own = std::make_unique<Silent>();
  Silent& silent = *own;
  transports[2] = std::move(own);
  std::promise<std::string> reported;
  std::atomic<int> times{0};
  const TransportWatch watch(
      transports, {"tp", "dp", "pp"},
      [&] {
        ++times;
        try {
          throw;
        } catch (const TransportError& error) {
          reported.set_value(error.what());
        }
      },
      soon);
  silent.is_broken = true;
  EXPECT_EQ(reported.get_future().get(), "communicator pp broke: NCCL reports an error");
  std::this_thread::sleep_for(10 * soon);
  EXPECT_EQ(times, 1);
}

TEST(TransportWatch, EndsSilentlyWhenNothingBreaks) {
  std::vector<std::unique_ptr<Transport>> transports;
  transports.push_back(std::make_unique<Silent>());
  std::atomic<int> times{0};
  {
    const TransportWatch watch(
        transports, {"tp"}, [&] { ++times; }, soon);
    std::this_thread::sleep_for(10 * soon);
  }
  EXPECT_EQ(times, 0);
}

}  // namespace
}  // namespace slipway::test
