// ZB-H1, ZB-H2, ZB-V and DualPipe-V against the published figures: largest idle time of a rank inside its own
// span, stage activations held from F to W, makespan; without communication, m ≥ 2p, W ≤ F.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedules/graph/checks_actions.h"
#include "tests/unit_replay.h"

namespace slipway {
namespace {

struct Case {
  int p, m;
  test::PassTimes time;
  std::string text() const {
    return "p = " + std::to_string(p) + ", m = " + std::to_string(m) + ", F I W = " +
           std::to_string(time.forward) + " " + std::to_string(time.input_grad) + " " +
           std::to_string(time.weight_grad);
  }
};

std::vector<Case> cases(const std::vector<test::PassTimes>& times) {
  std::vector<Case> all;
  for (const int p : {1, 2, 3, 4, 5, 8, 11})
    for (const int m : {2 * p, 2 * p + 1, 3 * p, 4 * p + 3})
      for (const auto& time : times) all.push_back({p, m, time});
  return all;
}

test::PassTimes split(int forward, int input_grad, int weight_grad) {
  return {forward, input_grad + weight_grad, input_grad, weight_grad};
}

const std::vector<test::PassTimes> unequal = {split(1, 1, 1), split(2, 2, 1), split(3, 4, 2), split(3, 1, 1),
                                              split(2, 5, 2), split(4, 4, 3), split(5, 5, 5)};

test::ReplayResult run(const char* name, const Case& c) {
  const Schedule& schedule = *schedule_named(name);
  const ScheduleShape shape{.pipeline = c.p, .chunks = schedule.default_chunks, .micro_batches = c.m};
  EXPECT_EQ(schedule.refuse(shape), "");
  const ActionLists lists = schedule.actions(shape);
  EXPECT_TRUE(check_actions(lists, shape).empty()) << name << ", " << c.text();
  return test::replay_actions(lists, c.time);
}

int largest(const std::vector<int>& values) { return *std::max_element(values.begin(), values.end()); }

TEST(ZeroBubble, H1LeavesForwardPlusInputGradientMinusWeightGradientPerOtherRankAndHoldsPMicroBatches) {
  for (const Case& c : cases(unequal)) {
    const auto result = run("zb-h1", c);
    const auto& t = c.time;
    const int bubble = (c.p - 1) * (t.forward + t.input_grad - t.weight_grad);
    EXPECT_EQ(largest(result.idle), bubble) << c.text();
    EXPECT_EQ(largest(result.most_in_flight), c.p) << c.text();
    EXPECT_EQ(result.makespan, c.m * (t.forward + t.input_grad + t.weight_grad) + bubble) << c.text();
  }
}

TEST(ZeroBubble, H2LeavesNothingWhenTwoWeightGradientsCoverAForwardAndAnInputGradientAndHoldsTwiceAsMuch) {
  for (const Case& c : cases(unequal)) {
    const auto result = run("zb-h2", c);
    const auto& t = c.time;
    EXPECT_EQ(largest(result.idle), std::max(0, (c.p - 1) * (t.forward + t.input_grad - 2 * t.weight_grad)))
        << c.text();
    EXPECT_EQ(largest(result.most_in_flight), 2 * c.p - 1) << c.text();
  }
}

// Stage activations: a rank holds two stages, each half of what a rank of 1F1B holds.
TEST(ZeroBubble, VHasNoIdleTimeAtEqualPassesAndHoldsPMicroBatches) {
  for (const Case& c : cases({split(1, 1, 1)})) {
    const auto result = run("zb-v", c);
    EXPECT_EQ(largest(result.idle), 0) << c.text();
    EXPECT_EQ(largest(result.most_in_flight), 2 * c.p) << c.text();
    EXPECT_EQ(result.makespan, 6 * c.m + c.p - 1) << c.text();
  }
}

TEST(DualPipeV, LeavesHalfAForwardPerOtherRankAtEqualPassesAndHoldsPAndAHalfMicroBatches) {
  for (const Case& c : cases({split(2, 2, 2)})) {
    const auto result = run("dualpipe-v", c);
    const int forward_of_both_stages = 2 * c.time.forward;
    EXPECT_EQ(2 * largest(result.idle), (c.p - 1) * forward_of_both_stages) << c.text();
    EXPECT_EQ(largest(result.most_in_flight), 2 * c.p + 1) << c.text();
  }
}

TEST(ZeroBubble, BeatsTheBubbleOfOneForwardOneBackwardByTheWeightGradients) {
  const Case c{4, 16, split(3, 3, 2)};
  EXPECT_EQ(largest(run("1f1b", c).idle), 3 * (3 + 3 + 2));
  EXPECT_EQ(largest(run("gpipe", c).idle), 3 * (3 + 3 + 2));
  EXPECT_EQ(largest(run("zb-h1", c).idle), 3 * (3 + 3 - 2));
  EXPECT_EQ(largest(run("zb-h2", c).idle), 3 * (3 + 3 - 4));
}

TEST(ZeroBubble, SchedulesOfFewMicroBatchesAreCompleteStepsToo) {
  for (const char* name : {"zb-h1", "zb-h2", "zb-v", "dualpipe-v"}) {
    const Schedule& schedule = *schedule_named(name);
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m < 2 * p; ++m) {
        const ScheduleShape shape{.pipeline = p, .chunks = schedule.default_chunks, .micro_batches = m};
        const ActionLists lists = schedule.actions(shape);
        const auto defects = check_actions(lists, shape);
        EXPECT_TRUE(defects.empty()) << name << "\n" << describe(lists, defects.front());
      }
    }
  }
}

TEST(ZeroBubble, RefusesOtherChunksAndSlicesWithARemedy) {
  for (const char* name : {"zb-h1", "zb-h2"})
    EXPECT_NE(schedule_named(name)->refuse({.pipeline = 4, .chunks = 2}).find("set layout.chunks to 1"),
              std::string::npos);
  for (const char* name : {"zb-v", "dualpipe-v"})
    EXPECT_NE(schedule_named(name)->refuse({.pipeline = 4, .chunks = 1}).find("set layout.chunks to 2"),
              std::string::npos);
  for (const char* name : {"zb-h1", "zb-h2", "zb-v", "dualpipe-v"})
    EXPECT_NE(schedule_named(name)
                  ->refuse({.pipeline = 4, .chunks = schedule_named(name)->default_chunks, .slices = 2})
                  .find("schedule.slices"),
              std::string::npos);
}

}  // namespace
}  // namespace slipway
