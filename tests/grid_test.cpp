#include "schedules/graph/grid.h"

#include <gtest/gtest.h>

#include "tests/unit_replay.h"

namespace slipway {
namespace {

ActionLists lists_of(const char* name, const ScheduleShape& shape) {
  return schedule_named(name)->actions(shape);
}

TEST(Grid, ShowsGpipe) {
  EXPECT_EQ(grid(lists_of("gpipe", {.pipeline = 3, .micro_batches = 3})),
            "rank 0 │ 0F0 0F1 0F2  .   .   .   .  0B0 0B1 0B2\n"
            "rank 1 │  .  1F0 1F1 1F2  .   .  1B0 1B1 1B2  .\n"
            "rank 2 │  .   .  2F0 2F1 2F2 2B0 2B1 2B2  .   .\n");
}

TEST(Grid, ShowsOneForwardOneBackward) {
  EXPECT_EQ(grid(lists_of("1f1b", {.pipeline = 3, .micro_batches = 4})),
            "rank 0 │ 0F0 0F1 0F2  .   .  0B0 0F3 0B1  .  0B2  .  0B3\n"
            "rank 1 │  .  1F0 1F1  .  1B0 1F2 1B1 1F3 1B2  .  1B3  .\n"
            "rank 2 │  .   .  2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3  .   .\n");
}

TEST(Grid, ShowsInterleavedOneForwardOneBackward) {
  EXPECT_EQ(grid(lists_of("interleaved-1f1b", {.pipeline = 2, .chunks = 2, .micro_batches = 2})),
            "rank 0 │ 0F0 0F1 2F0 2F1  .  2B0 2B1 0B0 0B1\n"
            "rank 1 │  .  1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1\n");
}

// The picture's replay and the tests' own agree on the makespan.
TEST(Grid, HasAsManyColumnsAsTheUnitTimeMakespan) {
  for (const Schedule& schedule : all_schedules()) {
    for (const int p : {1, 2, 3, 4}) {
      for (const int m : {4, 6, 12}) {
        const ScheduleShape shape{.pipeline = p, .chunks = schedule.default_chunks, .micro_batches = m};
        if (!schedule.refuse(shape).empty()) continue;
        const ActionLists lists = schedule.actions(shape);
        EXPECT_EQ(unit_times(lists).columns, test::replay_actions(lists, {}).makespan) << schedule.name;
      }
    }
  }
}

}  // namespace
}  // namespace slipway
