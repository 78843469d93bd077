#include "exec/process/clock.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/memory_store.h"

namespace slipway::test {
namespace {

TEST(Clock, TheExchangeWithTheShortestRoundTripGivesTheOffset) {
  // Rank 0 is 1000 ahead. The answers lie anywhere in the round trips, but in the middle of the shortest one.
  const ClockSample best = best_sample({{0, 1090, 100}, {200, 1205, 210}, {300, 1310, 350}});
  EXPECT_EQ(best.at, 205);
  EXPECT_EQ(best.offset, 1000);
}

TEST(Clock, StampsAreShiftedByAnOffsetThatDriftsLinearly) {
  EXPECT_EQ(on_rank0(42, {}), 42) << "one clock: nothing to do";
  EXPECT_EQ(on_rank0(42, {{0, 100}}), 142);
  const std::vector<ClockSample> drifting{{1000, 100}, {2000, 300}};
  EXPECT_EQ(on_rank0(1000, drifting), 1100);
  EXPECT_EQ(on_rank0(1500, drifting), 1700);
  EXPECT_EQ(on_rank0(2000, drifting), 2300);
}

TEST(Clock, AnExchangeThroughTheStoreFindsTheOffsetOfEachForeignRank) {
  MemoryStore map;
  constexpr Nanoseconds ahead[] = {0, 0, 5000000000, -7000000000};  // of rank 0's clock; rank 1 shares it
  std::vector<std::vector<ClockSample>> samples(4);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto store = map.connect();
      const auto now = [&] { return monotonic_ns() + ahead[rank]; };
      samples[rank] = exchange_clocks(*store, "before", rank, {2, 3}, now);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_TRUE(samples[0].empty());
  EXPECT_TRUE(samples[1].empty());
  for (const std::size_t rank : {2u, 3u}) {
    ASSERT_EQ(samples[rank].size(), 1u);
    // The error is at most the round trip; a second is far more than any.
    EXPECT_NEAR(static_cast<double>(samples[rank][0].offset), static_cast<double>(-ahead[rank]), 1e9);
  }
}

}  // namespace
}  // namespace slipway::test
