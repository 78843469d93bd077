#include <gtest/gtest.h>

#include "schedules/graph/checks_actions.h"
#include "tests/unit_replay.h"

namespace slipway {
namespace {

const Schedule& gpipe() { return *schedule_named("gpipe"); }

TEST(Gpipe, MakespanIsMicroBatchesPlusStagesMinusOneTimesForwardPlusBackward) {
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int m : {1, 2, 3, 4, 7, 16}) {
      const auto lists = gpipe().actions({.pipeline = p, .micro_batches = m});
      const auto result = test::replay_actions(lists, {.forward = 3, .backward = 5});
      ASSERT_TRUE(result.finished);
      EXPECT_EQ(result.makespan, (m + p - 1) * (3 + 5)) << "p = " << p << ", m = " << m;
    }
  }
}

TEST(Gpipe, EveryRankHoldsTheActivationsOfAllMicroBatches) {
  const auto result = test::replay_actions(gpipe().actions({.pipeline = 4, .micro_batches = 9}), {});
  for (const int held : result.most_in_flight) EXPECT_EQ(held, 9);
}

TEST(Gpipe, ListsAreCompleteSteps) {
  for (const int p : {1, 2, 5}) {
    for (const int m : {1, 3, 8}) {
      const ScheduleShape shape{.pipeline = p, .micro_batches = m};
      EXPECT_TRUE(check_actions(gpipe().actions(shape), shape).empty());
    }
  }
}

TEST(Gpipe, RefusesChunksAndSlicesWithARemedy) {
  EXPECT_EQ(gpipe().refuse({.pipeline = 4, .micro_batches = 2}), "");
  EXPECT_NE(gpipe().refuse({.pipeline = 4, .chunks = 2, .micro_batches = 2}).find("set layout.chunks to 1"),
            std::string::npos);
  EXPECT_NE(
      gpipe().refuse({.pipeline = 4, .micro_batches = 2, .slices = 4}).find("set schedule.slices to 1"),
      std::string::npos);
}

}  // namespace
}  // namespace slipway
