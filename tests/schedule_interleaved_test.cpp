#include <gtest/gtest.h>

#include "schedules/graph/checks_actions.h"
#include "tests/unit_replay.h"

namespace slipway {
namespace {

const Schedule& interleaved() { return *schedule_named("interleaved-1f1b"); }

// In units of one chunk's forward and backward; F and B of a whole rank's share are v times that.
TEST(Interleaved, BubbleIsThatOfOneForwardOneBackwardDividedByTheChunks) {
  for (const int p : {2, 3, 4, 8}) {
    for (const int v : {2, 3, 4}) {
      for (const int groups : {1, 2, 4}) {
        const int m = groups * p;
        const auto result = test::replay_actions(
            interleaved().actions({.pipeline = p, .chunks = v, .micro_batches = m}), {2, 4});
        ASSERT_TRUE(result.finished);
        for (const int busy : result.busy) {
          EXPECT_EQ(busy, m * v * 6);
          EXPECT_EQ(result.makespan - busy, (p - 1) * 6) << "p " << p << ", v " << v << ", m " << m;
        }
      }
    }
  }
}

// Narayanan 2021: the first rank's activation memory grows by 1 + (p − 1)/(pv); a rank's share of the model
// is v stages, so p·v·(1 + (p − 1)/(pv)) = pv + p − 1 stages are in flight.
TEST(Interleaved, FirstRankHoldsStagesTimesOnePlusThePublishedFactor) {
  for (const int p : {2, 4, 8}) {
    for (const int v : {2, 3}) {
      const int m = 4 * p;
      const auto result =
          test::replay_actions(interleaved().actions({.pipeline = p, .chunks = v, .micro_batches = m}), {});
      EXPECT_EQ(result.most_in_flight[0], p * v + p - 1);
    }
  }
}

TEST(Interleaved, ListsAreCompleteStepsForEveryShapeThatIsNotRefused) {
  for (int p = 1; p <= 5; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = 1; m <= 10; ++m) {
        const ScheduleShape shape{.pipeline = p, .chunks = v, .micro_batches = m};
        const bool possible = v >= 2 && m % p == 0;
        ASSERT_EQ(interleaved().refuse(shape).empty(), possible) << p << " " << v << " " << m;
        if (!possible) continue;
        const auto defects = check_actions(interleaved().actions(shape), shape);
        EXPECT_TRUE(defects.empty()) << defects.front().message;
      }
    }
  }
}

TEST(Interleaved, RefusalNamesTheNumbersAndTheKeysToChange) {
  const std::string reason = interleaved().refuse({.pipeline = 4, .chunks = 2, .micro_batches = 6});
  EXPECT_NE(reason.find("layout.pipeline = 4"), std::string::npos) << reason;
  EXPECT_NE(reason.find("6"), std::string::npos) << reason;
  EXPECT_NE(reason.find("schedule.global_batch"), std::string::npos) << reason;
}

}  // namespace
}  // namespace slipway
