#include "schedules/placement.h"

#include <gtest/gtest.h>

#include "schedules/graph/checks_actions.h"

namespace slipway {
namespace {

Placement of(const char* schedule, ScheduleShape shape) {
  shape.copies = schedule_named(schedule)->copies;
  return placement_of(schedule_named(schedule)->actions(shape), shape);
}

TEST(PlacementOfActions, FollowsTheRowsOfTheSchedule) {
  EXPECT_EQ(of("1f1b", {.pipeline = 3, .micro_batches = 4}).rank, (std::vector{0, 1, 2}));
  EXPECT_EQ(of("interleaved-1f1b", {.pipeline = 2, .chunks = 2, .micro_batches = 2}).rank,
            (std::vector{0, 1, 0, 1}));
  for (const char* in_a_v : {"zb-v", "dualpipe-v"})
    EXPECT_EQ(of(in_a_v, {.pipeline = 3, .chunks = 2, .micro_batches = 6}).rank,
              (std::vector{0, 1, 2, 2, 1, 0}));
}

TEST(PlacementOfActions, ChimeraHoldsEveryPartOnTwoRanks) {
  const Placement placement = of("chimera", {.pipeline = 4, .micro_batches = 4});
  EXPECT_EQ(placement.rank, (std::vector{0, 1, 2, 3, 3, 2, 1, 0}));
  EXPECT_EQ(placement.parts(), 4);
  for (int part = 0; part < 4; ++part)
    EXPECT_EQ(placement.holders(part), (std::vector{std::min(part, 3 - part), std::max(part, 3 - part)}));
  EXPECT_TRUE(placement.is_first(4));
  EXPECT_TRUE(placement.is_last(3));
  EXPECT_FALSE(placement.is_last(4));
  EXPECT_EQ(placement.copy_of(5), 1);
  EXPECT_EQ(placement.part_of(5), 1);
}

// One stray action does not move a stage; check_actions names it.
TEST(PlacementOfActions, AStageIsWhereMostOfItsActionsAre) {
  ActionLists lists = schedule_named("gpipe")->actions({.pipeline = 2, .micro_batches = 2});
  lists[1].push_back({Pass::backward, 0, 1});
  lists[0].push_back({Pass::forward, 9, 0});
  EXPECT_EQ(placement_of(lists, {.pipeline = 2, .micro_batches = 2}).rank, (std::vector{0, 1}));
}

TEST(PlacementOfActions, AStageWithoutActionsIsOnItsNumberModuloTheRanks) {
  EXPECT_EQ(placement_of(ActionLists(2), {.pipeline = 2, .chunks = 2, .micro_batches = 1}).rank,
            (std::vector{0, 1, 0, 1}));
}

}  // namespace
}  // namespace slipway
