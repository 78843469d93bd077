// Periodic steps are the schedule of fewer micro-batches.
#include "schedules/time/periodic.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace slipway::test {
namespace {

ScheduleShape shape_of(const Schedule& schedule, int pipeline, int micro_batches) {
  return {pipeline, schedule.default_chunks, micro_batches, schedule.default_slices, schedule.copies};
}

// True if all forwards of every rank precede its first backward. Then nothing repeats: what is kept only grows.
bool ends_forwards_first(const ActionLists& lists) {
  return std::all_of(lists.begin(), lists.end(), [](const std::vector<Action>& list) {
    return std::is_partitioned(list.begin(), list.end(), [](const Action& a) { return a.pass == Pass::forward; });
  });
}

TEST(PeriodicActions, AreThoseThatTheScheduleGivesForFewerMicroBatches) {
  for (const Schedule& schedule : all_schedules())
    for (const int pipeline : {2, 4, 8})
      for (const int micro_batches : {240, 384, 960}) {
        const ScheduleShape shape = shape_of(schedule, pipeline, micro_batches);
        if (schedule.refuse(shape)) continue;
        const std::string text = schedule.name + " on " + std::to_string(pipeline) + " ranks, " +
                                 std::to_string(micro_batches) + " micro-batches";
        const auto shorter = periodic_actions(schedule.actions(shape), micro_batches, 1);
        if (ends_forwards_first(schedule.actions(shape))) {
          EXPECT_FALSE(shorter) << text;
          continue;
        }
        ASSERT_TRUE(shorter) << text;
        EXPECT_EQ(shorter->micro_batches + shorter->left_out * shorter->period, micro_batches) << text;
        EXPECT_LT(shorter->micro_batches, micro_batches / 3 * 2) << text;
        EXPECT_EQ(shorter->actions, schedule.actions(shape_of(schedule, pipeline, shorter->micro_batches))) << text;
      }
}

TEST(PeriodicActions, KeepMoreWithMorePatienceAndAtLastEverything) {
  const Schedule& schedule = *schedule_named("1f1b");
  const ActionLists lists = schedule.actions(shape_of(schedule, 4, 240));
  int before = 0;
  for (const int patience : {1, 2, 4}) {
    const auto shorter = periodic_actions(lists, 240, patience);
    ASSERT_TRUE(shorter);
    EXPECT_GT(shorter->micro_batches, before);
    before = shorter->micro_batches;
  }
  EXPECT_FALSE(periodic_actions(lists, 240, 64));
  EXPECT_FALSE(periodic_actions(schedule.actions(shape_of(schedule, 4, 16)), 16, 1));
}

TEST(PeriodicActions, AreNoneWhereOneActionOfARankIsOutOfItsPlace) {
  const Schedule& schedule = *schedule_named("1f1b");
  ActionLists lists = schedule.actions(shape_of(schedule, 4, 240));
  for (const std::size_t at : {lists[2].size() / 3, lists[2].size() / 2, lists[2].size() * 2 / 3})
    std::swap(lists[2][at], lists[2][at + 2]);
  EXPECT_FALSE(periodic_actions(lists, 240, 1));
}

}  // namespace
}  // namespace slipway::test
