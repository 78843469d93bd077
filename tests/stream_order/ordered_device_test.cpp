// The device that checks the order of streams computes like the processor, and finds planted errors: a missing wait, an
// early free, an early read by the host. Whole runs of the executor are in execute_stream_order_test.cpp.
#include "tests/stream_order/ordered_device.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include "exec/lanes/lanes.h"
#include "exec/operators/gathered_weights.h"
#include "exec/transport/device.h"
#include "tests/support/lane_graph.h"

namespace slipway::test {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Races that the device's own checker has found since.
class NewRaces {
 public:
  std::vector<std::string> found() const {
    std::vector<std::string> all = stream_order().races();
    std::erase_if(
        all, [&](const std::string& race) { return std::find(before_.begin(), before_.end(), race) != before_.end(); });
    return all;
  }

 private:
  std::vector<std::string> before_ = stream_order().races();
};

at::TensorOptions on_device() { return at::TensorOptions().device(ordered_device).dtype(at::kDouble); }

TEST(OrderedDevice, ComputesWhatTheProcessorDoes) {
  const NewRaces races;
  const at::Tensor x = at::arange(24, at::kDouble).view({4, 6}).sin(),
                   w = at::arange(30, at::kDouble).view({5, 6}).cos();
  const auto result = [](const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor leaf = a.detach().requires_grad_(true);
    at::layer_norm(at::linear(leaf, b), {5}).softmax(1).slice(1, 1, 3).square().sum().backward();
    return leaf.grad();
  };
  const at::Tensor found = result(x.to(ordered_device), w.to(ordered_device));
  EXPECT_EQ(found.device(), ordered_device);
  EXPECT_TRUE(at::allclose(found.to(at::kCPU), result(x, w)));
  EXPECT_THAT(races.found(), IsEmpty());
}

// Two lanes of the executor's runtime: the first makes a tensor, the second doubles it. Twice, so that no lane ends
// before the other has read; the host would have waited for it then.
double hand_over(bool keep, DeviceQueue& queue) {
  const TaskGraph graph = graph_of({{none, {}, {}, {0}}, {0, {0}, {0}, {}}});
  at::Tensor handed;
  double seen = 0;
  LaneHooks hooks;
  hooks.device = &queue;
  hooks.perform = [&](TaskId task, int) {
    if (task == 0) {
      handed = at::ones({1000}, on_device());
      return;
    }
    if (keep) keep_for_this_lane(handed);
    const at::Tensor doubled = handed * 2;
    handed.reset();
    seen = doubled.sum().item<double>();
  };
  LaneRunner(graph, 0, 2, hooks).run();
  return seen;
}

class DeafQueue : public DeviceQueue {
 public:
  void begin_lane() override { queue_->begin_lane(); }
  Mark mark() override { return queue_->mark(); }
  void wait_for(const Mark&) override {}
  void finish(const Mark& mark) override { queue_->finish(mark); }
  std::vector<std::int64_t> times_ns(const std::vector<Mark>& marks) override { return queue_->times_ns(marks); }

 private:
  std::unique_ptr<DeviceQueue> queue_ = queue_of(ordered_device);
};

TEST(LanesOnTheOrderedDevice, ThatWaitForEachOtherAndKeepWhatTheyReadHaveNoRace) {
  const NewRaces races;
  EXPECT_EQ(hand_over(true, *queue_of(ordered_device)), 2000);
  EXPECT_THAT(races.found(), IsEmpty());
}

// The threads still wait for each other, so the result is right.
TEST(LanesOnTheOrderedDevice, WithoutAWaitOnTheDeviceAreFoundThoughTheirThreadsWait) {
  const NewRaces races;
  DeafQueue deaf;
  EXPECT_EQ(hand_over(true, deaf), 2000);
  EXPECT_THAT(races.found(), Contains(HasSubstr("may not have written yet")));
}

TEST(LanesOnTheOrderedDevice, ThatDropWhatTheyDidNotKeepAreFound) {
  const NewRaces races;
  hand_over(false, *queue_of(ordered_device));
  EXPECT_THAT(races.found(), Each(HasSubstr("not kept for it")));
  EXPECT_THAT(races.found(), Not(IsEmpty()));
}

TEST(TheHost, ThatLooksAtANumberBehindNothingIsFound) {
  const at::Tensor ready = at::ones({}, on_device());
  finish_work(ordered_device);
  const NewRaces races;
  EXPECT_EQ(number_of(ready), 1);
  EXPECT_THAT(races.found(), IsEmpty());
  const at::Tensor fresh = ready + 1;
  EXPECT_EQ(number_of(fresh), 2);
  EXPECT_THAT(races.found(), ElementsAre(HasSubstr("_local_scalar_dense")));
}

TEST(TheHost, ThatDoesNotWaitForItsCopyIsFound) {
  const NewRaces races;
  const at::Tensor fresh = at::ones({3}, on_device());
  EXPECT_TRUE(at::equal(fresh.to(at::kCPU), at::ones({3}, at::kDouble)));
  EXPECT_THAT(races.found(), IsEmpty());
  fresh.to(at::kCPU, at::kDouble, /*non_blocking=*/true);
  EXPECT_THAT(races.found(), ElementsAre("a copy to the host that it does not wait for"));
}

TEST(MemoryThatIsGone, IsAnErrorToReadOnTheOrderedDevice) {
  const at::Tensor flat = at::ones({8}, on_device()), view = flat.narrow(0, 2, 4);
  free_memory(flat);
  EXPECT_THROW(view.sum(), std::exception);
  allocate_memory(flat);
  flat.fill_(3);
  EXPECT_EQ(view.sum().item<double>(), 12);
}

// A backward pass runs on a thread of the device with the streams of its forward.
TEST(ABackwardPass, OfAnotherStreamThanItsForwardIsOrderedByAutogradAlone) {
  const NewRaces races;
  work_on(stream_order().new_stream());
  const at::Tensor leaf = at::ones({3}, on_device()).requires_grad_(true);
  const at::Tensor sum = (leaf * leaf).sum();
  const StreamOrder::Mark forward = stream_order().mark(this_stream());
  work_on(stream_order().new_stream());
  stream_order().wait_for(this_stream(), forward);
  const at::Tensor gradient = torch::autograd::grad({sum}, {leaf}).front();
  EXPECT_EQ((gradient * 2).sum().item<double>(), 12);
  work_on(0);
  EXPECT_THAT(races.found(), IsEmpty());
}

}  // namespace
}  // namespace slipway::test
