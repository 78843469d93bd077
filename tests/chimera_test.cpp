// Chimera against the closed form of Osawa et al. 2022 (PipeFisher): with C_f forwards and C_b backwards on the
// critical path, C_f = D and C_b = 2D − 2 for N = D micro-batches, C_f = C_b = N + D/2 − 1 for larger multiples.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedules/graph/checks_actions.h"
#include "tests/unit_replay.h"

namespace slipway {
namespace {

ScheduleShape shape_of(int stages, int micro_batches) {
  return {.pipeline = stages, .micro_batches = micro_batches, .copies = 2};
}
ActionLists lists_of(int stages, int micro_batches) {
  return schedule_named("chimera")->actions(shape_of(stages, micro_batches));
}

TEST(Chimera, HasTheMakespanOfThePerformanceModelAtAnyRatioOfBackwardToForward) {
  for (const int D : {2, 4, 6, 8, 12, 16}) {
    for (const int rounds : {1, 2, 3, 5}) {
      const int N = rounds * D;
      const ActionLists lists = lists_of(D, N);
      for (const int backward : {10, 12, 15, 17, 20, 25, 30}) {
        const int forward = 10;
        const int expected = rounds == 1 ? D * forward + (2 * D - 2) * backward
                                         : (N + D / 2 - 1) * (forward + backward);
        const auto result = test::replay_actions(lists, {.forward = forward, .backward = backward}, D);
        EXPECT_EQ(result.makespan, expected) << "D = " << D << ", N = " << N << ", B = " << backward;
      }
    }
  }
}

TEST(Chimera, HoldsAtMostTwoDMinusTwoStageActivationsAndDIsEnoughForDMicroBatches) {
  for (const int D : {2, 4, 8, 16}) {
    for (const int rounds : {1, 2, 4}) {
      const auto held = test::replay_actions(lists_of(D, rounds * D), {}, D).most_in_flight;
      EXPECT_LE(*std::max_element(held.begin(), held.end()), rounds == 1 ? D : std::max(D, 2 * D - 2));
    }
  }
}

TEST(Chimera, ListsAreCompleteStepsForEveryEvenNumberOfMicroBatches) {
  for (const int D : {2, 4, 6}) {
    for (int N = 2; N <= 4 * D; N += 2) {
      const ActionLists lists = lists_of(D, N);
      const auto defects = check_actions(lists, shape_of(D, N));
      EXPECT_TRUE(defects.empty()) << describe(lists, defects.front(), D);
    }
  }
}

TEST(Chimera, SendsEvenMicroBatchesDownAndOddOnesUp) {
  for (const auto& list : lists_of(4, 8))
    for (const Action& action : list) EXPECT_EQ(action.stage / 4, action.micro_batch % 2);
}

TEST(Chimera, RefusesOddPipelinesAndOddNumbersOfMicroBatchesWithARemedy) {
  const auto refusal = [](int stages, int micro_batches) {
    return schedule_named("chimera")->refuse(shape_of(stages, micro_batches));
  };
  EXPECT_EQ(refusal(4, 6), "");
  EXPECT_NE(refusal(3, 6).find("set layout.pipeline to an even number"), std::string::npos);
  EXPECT_NE(refusal(4, 5).find("schedule.global_batch"), std::string::npos);
}

// An action in the wrong copy, a missing and a doubled one: each is named.
TEST(Chimera, DefectsOfItsListsAreNamed) {
  const auto first_defect = [](const ActionLists& lists) {
    const auto defects = check_actions(lists, shape_of(2, 4));
    return defects.empty() ? "none" : describe(lists, defects.front(), 2);
  };
  ActionLists lists = lists_of(2, 4);
  const Action last = lists[0].back();
  lists[0].pop_back();
  EXPECT_NE(first_defect(lists).find("has no backward"), std::string::npos) << first_defect(lists);
  lists[0].push_back(last);
  lists[0].push_back(last);
  EXPECT_NE(first_defect(lists).find("appears 2 times"), std::string::npos) << first_defect(lists);
  lists[0].pop_back();
  lists[0].push_back({Pass::forward, 3, 0});
  EXPECT_NE(first_defect(lists).find("another copy"), std::string::npos) << first_defect(lists);
}

}  // namespace
}  // namespace slipway
