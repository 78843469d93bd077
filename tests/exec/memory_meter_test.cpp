// The memory of a rank's tensors, as its allocator reports it.
#include "exec/rank/memory_meter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>

namespace slipway::test {
namespace {

constexpr std::int64_t megabyte = 1 << 20;

at::Tensor of_bytes(std::int64_t bytes) { return at::empty({bytes}, at::kByte); }

// Runs on a thread of its own, like a rank; its count ends with it.
template <typename Work>
void as_rank(Work work) {
  std::thread([&] {
    MemoryMeter meter(at::kCPU);
    work(meter);
  }).join();
}

TEST(MemoryMeter, CountsWhatIsAllocatedUntilItIsFreed) {
  as_rank([](MemoryMeter& meter) {
    EXPECT_EQ(meter.bytes(), 0);
    at::Tensor a = of_bytes(3 * megabyte);
    EXPECT_EQ(meter.bytes(), 3 * megabyte);
    const at::Tensor view = a.narrow(0, 0, 10), b = of_bytes(megabyte);
    EXPECT_EQ(meter.bytes(), 4 * megabyte) << "a view takes nothing";
    a.reset();
    EXPECT_EQ(meter.bytes(), 4 * megabyte) << "the view keeps it";
  });
}

TEST(MemoryMeter, StampsATaskWithWhatIsThereAtItsEndAndTheMostMeanwhile) {
  as_rank([](MemoryMeter& meter) {
    at::Tensor kept;
    const at::Tensor before = of_bytes(megabyte);
    meter.measure(7, 2, [&] {
      kept = of_bytes(2 * megabyte);
      const at::Tensor gone = of_bytes(5 * megabyte);
    });
    meter.measure(8, 2, [&] { kept.reset(); });
    const std::vector<MemoryStamp> stamps = meter.stamps();
    ASSERT_EQ(stamps.size(), 2u);
    EXPECT_EQ(stamps[0].task, 7u);
    EXPECT_EQ(stamps[0].step, 2);
    EXPECT_EQ(stamps[0].bytes, 3 * megabyte);
    EXPECT_EQ(stamps[0].peak_bytes, 8 * megabyte);
    EXPECT_EQ(stamps[1].bytes, megabyte);
    EXPECT_EQ(stamps[1].peak_bytes, 3 * megabyte) << "each task's peak begins anew";
  });
}

TEST(MemoryMeter, ATaskSeesWhatAnotherLaneAllocatesMeanwhile) {
  as_rank([](MemoryMeter& meter) {
    meter.measure(0, 0, [&] {
      std::thread([&] {
        meter.count_this_thread();
        meter.measure(1, 0, [] { of_bytes(4 * megabyte); });
      }).join();
    });
    for (const MemoryStamp& stamp : meter.stamps()) EXPECT_EQ(stamp.peak_bytes, 4 * megabyte) << stamp.task;
    EXPECT_EQ(meter.bytes(), 0);
  });
}

// Ranks of one process hand tensors to each other: the thread that drops the last reference is not always the owner's.
TEST(MemoryMeter, WhatAnotherRankFreesIsTheOwnersAgain) {
  as_rank([](MemoryMeter& meter) {
    at::Tensor mine = of_bytes(megabyte), here = of_bytes(2 * megabyte);
    as_rank([&](MemoryMeter& other) {
      const at::Tensor own = of_bytes(3 * megabyte);
      mine.reset();
      EXPECT_EQ(other.bytes(), 3 * megabyte);
      EXPECT_EQ(meter.bytes(), 2 * megabyte);
    });
  });
}

TEST(MemoryMeter, AThreadThatNobodyCountsChangesNothing) {
  as_rank([](MemoryMeter& meter) {
    std::thread([] { of_bytes(megabyte); }).join();
    EXPECT_EQ(meter.bytes(), 0);
  });
}

TEST(MemoryMeter, ATaskThatBreaksIsStampedToo) {
  as_rank([](MemoryMeter& meter) {
    EXPECT_THROW(meter.measure(1, 0, [] { throw std::runtime_error("broke"); }), std::runtime_error);
    EXPECT_EQ(meter.stamps().size(), 1u);
    meter.measure(2, 0, [] { of_bytes(megabyte); });
    EXPECT_EQ(meter.stamps().back().peak_bytes, megabyte);
  });
}

TEST(MemoryMeter, ABackwardPassIsCountedToo) {
  as_rank([](MemoryMeter& meter) {
    const at::Tensor x = at::ones({megabyte}, at::kFloat).set_requires_grad(true);
    const at::Tensor y = x.exp().sum();  // keeps its output
    EXPECT_EQ(meter.bytes() / megabyte, 8);
    meter.measure(0, 0, [&] { torch::autograd::grad({y}, {x}); });
    EXPECT_GE(meter.stamps().front().peak_bytes, 12 * megabyte);
  });
}

}  // namespace
}  // namespace slipway::test
