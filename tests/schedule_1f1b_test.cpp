#include <gtest/gtest.h>

#include "schedules/graph/checks_actions.h"
#include "tests/unit_replay.h"

namespace slipway {
namespace {

const Schedule& one_f_one_b() { return *schedule_named("1f1b"); }

TEST(OneForwardOneBackward, MakespanIsMicroBatchesPlusStagesMinusOneTimesForwardPlusBackward) {
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int m : {1, 2, 3, 4, 7, 16}) {
      const auto lists = one_f_one_b().actions({.pipeline = p, .micro_batches = m});
      const auto result = test::replay_actions(lists, {.forward = 3, .backward = 5});
      ASSERT_TRUE(result.finished);
      EXPECT_EQ(result.makespan, (m + p - 1) * (3 + 5)) << "p = " << p << ", m = " << m;
    }
  }
}

TEST(OneForwardOneBackward, ARankHoldsAtMostAsManyMicroBatchesAsThereAreStagesFromItOn) {
  for (const int p : {1, 2, 4, 8}) {
    for (const int m : {1, 2, 5, 16}) {
      const auto result =
          test::replay_actions(one_f_one_b().actions({.pipeline = p, .micro_batches = m}), {});
      for (int rank = 0; rank < p; ++rank) {
        EXPECT_EQ(result.most_in_flight[static_cast<std::size_t>(rank)], std::min(p - rank, m));
      }
    }
  }
}

TEST(OneForwardOneBackward, ListsAreCompleteSteps) {
  for (const int p : {1, 2, 5}) {
    for (const int m : {1, 3, 8}) {
      const ScheduleShape shape{.pipeline = p, .micro_batches = m};
      EXPECT_TRUE(check_actions(one_f_one_b().actions(shape), shape).empty());
    }
  }
}

TEST(OneForwardOneBackward, RefusesChunksWithARemedy) {
  EXPECT_EQ(one_f_one_b().refuse({.pipeline = 4, .micro_batches = 1}), "");
  EXPECT_NE(one_f_one_b().refuse({.pipeline = 4, .chunks = 2}).find("interleaved-1f1b"), std::string::npos);
}

TEST(Schedules, AreListedByNameWithPaperAndFound) {
  std::string previous;
  for (const Schedule& schedule : all_schedules()) {
    EXPECT_LT(previous, schedule.name);
    EXPECT_NE(schedule.summary.find("20"), std::string::npos) << schedule.name << " cites no year";
    EXPECT_EQ(schedule_named(schedule.name), &schedule);
    previous = schedule.name;
  }
  EXPECT_EQ(schedule_named("no-such-schedule"), nullptr);
}

}  // namespace
}  // namespace slipway
