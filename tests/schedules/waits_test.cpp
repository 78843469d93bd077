// What tasks of a timeline waited for, on graphs whose answer is known by construction.
#include "schedules/time/waits.h"
#include "schedules/time/replay.h"

#include <gtest/gtest.h>

#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

std::vector<CauseOfWait> causes(const HandGraph& hand, int steps = 1, std::size_t step = 0) {
  return causes_of_waits(hand.graph, replay(hand.graph, hand.durations, steps), step);
}

TEST(Waits, ATaskWaitedForTheInputThatEndedLast) {
  HandGraph hand(3);
  const TaskId slow = hand.compute(0, 3), fast = hand.compute(1, 1);
  const TaskId sum = hand.collective(Collective::all_reduce, {0, 1, 2}, 100, 0.5, {slow, fast});
  hand.finish();
  const auto found = causes(hand);
  EXPECT_FALSE(found[slow].exists);
  EXPECT_FALSE(found[fast].exists);
  ASSERT_TRUE(found[sum].exists);
  EXPECT_EQ(found[sum].task, slow);
  EXPECT_EQ(found[sum].reason, Waits::Reason::input);
}

TEST(Waits, ATaskWithoutInputsWaitedForItsLane) {
  HandGraph hand(1);
  const TaskId first = hand.compute(0, 3), second = hand.compute(0, 1);
  hand.finish();
  const auto found = causes(hand);
  ASSERT_TRUE(found[second].exists);
  EXPECT_EQ(found[second].task, first);
  EXPECT_EQ(found[second].reason, Waits::Reason::lane);
}

// Rank 0's second task would have had its message long before its lane was free.
TEST(Waits, TheCauseIsTheLaneWhereTheInputWasThereBefore) {
  HandGraph hand(2);
  const TaskId long_one = hand.compute(0, 5), source = hand.compute(1, 1);
  const TaskId message = hand.transfer(1, 0, 10, {source});
  hand.durations[message] = 0.25;
  const TaskId last = hand.compute(0, 1, {message});
  hand.finish();
  const auto found = causes(hand);
  EXPECT_EQ(found[last].task, long_one);
  EXPECT_EQ(found[last].reason, Waits::Reason::lane);
  EXPECT_EQ(found[message].task, source);
}

TEST(Waits, TheFirstTaskOfALaneWaitedForTheStepBefore) {
  HandGraph hand(1);
  const TaskId first = hand.compute(0, 3);
  hand.compute(0, 1);
  hand.finish();
  EXPECT_FALSE(causes(hand, 2, 0)[first].exists);
  EXPECT_EQ(causes(hand, 2, 1)[first].reason, Waits::Reason::step_before);
}

}  // namespace
}  // namespace slipway::test
