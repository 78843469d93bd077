#include <gtest/gtest.h>

#include <algorithm>

#include "models/model/operators.h"
#include "schedules/check/actions.h"
#include "schedules/check/check.h"
#include "schedules/draw/grid.h"
#include "schedules/lower/lowering.h"
#include "schedules/rules/rules.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "tests/support/unit_replay.h"

namespace slipway::test {

namespace {

std::string text_of(const std::optional<ShapeRefusal>& refusal) {
  return refusal ? refusal->problem + "; " + refusal->remedy : "";
}

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
      const auto result = test::replay_actions(one_f_one_b().actions({.pipeline = p, .micro_batches = m}), {});
      for (int rank = 0; rank < p; ++rank) {
        EXPECT_EQ(result.most_in_flight[rank], std::min(p - rank, m));
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
  EXPECT_FALSE(one_f_one_b().refuse({.pipeline = 4, .micro_batches = 1}));
  EXPECT_NE(text_of(one_f_one_b().refuse({.pipeline = 4, .chunks = 2})).find("interleaved-1f1b"), std::string::npos);
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

TEST(Schedules, HaveOneDefaultAndOneThatInterleavesIt) {
  int defaults = 0;
  for (const Schedule& schedule : all_schedules()) {
    defaults += schedule.is_default ? 1 : 0;
    if (schedule.interleaves.empty()) continue;
    EXPECT_NE(schedule_named(schedule.interleaves), nullptr) << schedule.name;
    EXPECT_TRUE(schedule_named(schedule.interleaves)->interleaves.empty()) << schedule.name;
  }
  EXPECT_EQ(defaults, 1);
  EXPECT_EQ(default_schedule().name, "1f1b");
  EXPECT_EQ(default_schedule(4).name, "interleaved-1f1b");
  EXPECT_EQ(schedules_with([](const Schedule& schedule) { return schedule.searched; }),
            "1f1b, gpipe and interleaved-1f1b");
}

}  // namespace

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
  EXPECT_FALSE(gpipe().refuse({.pipeline = 4, .micro_batches = 2}));
  EXPECT_NE(text_of(gpipe().refuse({.pipeline = 4, .chunks = 2, .micro_batches = 2})).find("set layout.chunks to 1"),
            std::string::npos);
  EXPECT_NE(text_of(gpipe().refuse({.pipeline = 4, .micro_batches = 2, .slices = 4})).find("set schedule.slices to 1"),
            std::string::npos);
}

}  // namespace

namespace {

const Schedule& interleaved() { return *schedule_named("interleaved-1f1b"); }

// In units of one chunk's forward and backward; F and B of a whole rank's share are v times as long.
TEST(Interleaved, BubbleIsThatOfOneForwardOneBackwardDividedByTheChunks) {
  for (const int p : {2, 3, 4, 8}) {
    for (const int v : {2, 3, 4}) {
      for (const int groups : {1, 2, 4}) {
        const int m = groups * p;
        const auto result =
            test::replay_actions(interleaved().actions({.pipeline = p, .chunks = v, .micro_batches = m}), {2, 4});
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

TEST(Interleaved, ListsAreCompleteStepsForEveryNumberOfMicroBatches) {
  for (const char* name : {"interleaved-1f1b", "1f1b-merged", "looped-bfs"}) {
    const Schedule& schedule = *schedule_named(name);
    for (int p = 1; p <= 5; ++p) {
      for (int v = 1; v <= 4; ++v) {
        for (int m = 1; m <= 17; ++m) {
          const ScheduleShape shape{.pipeline = p, .chunks = v, .micro_batches = m};
          ASSERT_EQ(!schedule.refuse(shape), v >= 2 || name == std::string("1f1b-merged")) << p << " " << v << " " << m;
          if (schedule.refuse(shape)) continue;
          const auto defects = check_actions(schedule.actions(shape), shape);
          EXPECT_TRUE(defects.empty()) << name << " " << defects.front().message;
        }
      }
    }
  }
}

// PyTorch's groups (its number of rounds) where it takes the number; Megatron-Core's where the last one is shorter.
TEST(Interleaved, BubbleStaysThatOfWholeGroupsForAnyNumberOfMicroBatchesFromThePipelineOn) {
  for (const int p : {2, 3, 4, 8})
    for (const int v : {2, 3})
      for (int m = p; m <= 4 * p; ++m) {
        const auto result =
            test::replay_actions(interleaved().actions({.pipeline = p, .chunks = v, .micro_batches = m}), {2, 4});
        ASSERT_TRUE(result.finished);
        EXPECT_EQ(result.makespan - m * v * 6, (p - 1) * 6) << "p " << p << ", v " << v << ", m " << m;
        const int groups = m / p, first = (m + groups - 1) / groups;  // micro-batches of the first group
        EXPECT_EQ(result.most_in_flight[0], std::min(p * v + p - 1 + (v - 1) * (first - p), m * v)) << m;
      }
}

// Megatron-Core's get_schedule_table with microbatch_group_size_per_vp_stage 3, 5 micro-batches and 2 chunks (its own
// comment): micro-batches 0 1 2 0 1 2 3 4 3 4 on chunks 0 0 0 1 1 1 0 0 1 1.
TEST(Interleaved, TakesTheGroupsOfMegatronCore) {
  const ScheduleShape shape{.pipeline = 2, .chunks = 2, .micro_batches = 5, .group = 3};
  ASSERT_FALSE(interleaved().refuse(shape));
  const ActionLists lists = interleaved().actions(shape);
  std::string micro_batches, chunks;
  for (const Action& action : lists[0]) {
    if (action.pass != Pass::forward) continue;
    micro_batches += std::to_string(action.micro_batch), chunks += std::to_string(action.stage / 2);
  }
  EXPECT_EQ(micro_batches, "0120123434");
  EXPECT_EQ(chunks, "0001110011");
  EXPECT_TRUE(check_actions(lists, shape).empty());
  for (const int group : {1, 6, 4})  // below the pipeline, above the micro-batches, a rest of one
    EXPECT_NE(text_of(interleaved().refuse({.pipeline = 2, .chunks = 2, .micro_batches = 5, .group = group}))
                  .find("schedule.group = " + std::to_string(group)),
              std::string::npos);
}

// Megatron-Core adds one warm-up forward where it overlaps the all-to-alls of a forward and a backward.
TEST(Merged1F1B, KeepsTheBubbleOfInterleavingAndHoldsOneStageMore) {
  const Schedule& merged = *schedule_named("1f1b-merged");
  for (const int p : {1, 2, 3, 4, 8})
    for (const int v : {1, 2, 3})
      for (const int groups : {2, 3, 4}) {
        const int m = groups * p;
        const ScheduleShape shape{.pipeline = p, .chunks = v, .micro_batches = m};
        const auto result = test::replay_actions(merged.actions(shape), {2, 4});
        ASSERT_TRUE(result.finished);
        EXPECT_EQ(result.makespan - m * v * 6, (p - 1) * 6) << "p " << p << ", v " << v << ", m " << m;
        EXPECT_EQ(result.most_in_flight[0], std::min(p * v + p - 1 + 1, m * v)) << "p " << p << ", v " << v;
      }
}

TEST(Merged1F1B, PairsEveryForwardBehindTheWarmUp) {
  const ScheduleShape shape{.pipeline = 2, .chunks = 1, .micro_batches = 6};
  const ActionLists lists = schedule_named("1f1b-merged")->actions(shape);
  EXPECT_EQ(std::count_if(lists[0].begin(), lists[0].end(), [](const Action& a) { return a.with_next; }), 6 - 3);
  EXPECT_EQ(std::count_if(lists[1].begin(), lists[1].end(), [](const Action& a) { return a.with_next; }), 6 - 1);
}

// Lamy-Poirier 2022: the bubble of interleaving, all activations held.
TEST(LoopedBfs, HasTheBubbleOfInterleavingAndHoldsEverything) {
  for (const int p : {2, 3, 4})
    for (const int v : {2, 3})
      for (const int m : {p, p + 1, 3 * p}) {
        const ScheduleShape shape{.pipeline = p, .chunks = v, .micro_batches = m};
        const auto result = test::replay_actions(schedule_named("looped-bfs")->actions(shape), {2, 4});
        EXPECT_EQ(result.makespan - m * v * 6, (p - 1) * 6) << "p " << p << ", v " << v << ", m " << m;
        for (const int held : result.most_in_flight) EXPECT_EQ(held, m * v);
      }
}

}  // namespace

// ZB-H1, ZB-H2, ZB-V and DualPipe-V against the published values: largest idle time of a rank inside its own span,
// stage activations held from F to W, makespan; without communication, m ≥ 2p, W ≤ F.

namespace {

struct Case {
  int p, m;
  test::PassTimes time;
  std::string text() const {
    return "p = " + std::to_string(p) + ", m = " + std::to_string(m) + ", F I W = " + std::to_string(time.forward) +
           " " + std::to_string(time.input_grad) + " " + std::to_string(time.weight_grad);
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
  EXPECT_FALSE(schedule.refuse(shape));
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

// In stage activations: a rank holds two stages, each half of a 1F1B rank's.
TEST(ZeroBubble, VHasNoIdleTimeAtEqualPassesAndHoldsPMicroBatches) {
  for (const Case& c : cases({split(1, 1, 1)})) {
    const auto result = run("zb-v", c);
    EXPECT_EQ(largest(result.idle), 0) << c.text();
    EXPECT_EQ(largest(result.most_in_flight), 2 * c.p) << c.text();
    EXPECT_EQ(result.makespan, 6 * c.m + c.p - 1) << c.text();
  }
}

// Sea AI Lab 2025, for passes one after the other: half a forward of both stages per other rank.
TEST(DualPipeV, LeavesHalfAForwardPerOtherRankAtEqualPassesAndHoldsPAndAHalfMicroBatches) {
  for (const Case& c : cases({split(2, 2, 2)})) {
    ActionLists lists = schedule_named("dualpipe-v")->actions({.pipeline = c.p, .chunks = 2, .micro_batches = c.m});
    for (auto& list : lists)
      for (Action& action : list) action.with_next = false;
    const auto result = test::replay_actions(lists, c.time);
    const int forward_of_both_stages = 2 * c.time.forward;
    EXPECT_EQ(2 * largest(result.idle), (c.p - 1) * forward_of_both_stages) << c.text();
    EXPECT_EQ(largest(result.most_in_flight), 2 * c.p + 1) << c.text();
  }
}

// DeepSeek-AI's table (github.com/deepseek-ai/DualPipe): (p − 1)(F&B + B − 3W) on p ranks, where a pair takes F&B.
TEST(DualPipeV, HasThePublishedBubbleWherePairsStartAndEndTogether) {
  for (const Case& c : cases({split(2, 2, 2), split(3, 3, 3), split(2, 3, 2), split(3, 4, 3)})) {
    const auto result = run("dualpipe-v", c);
    const auto& t = c.time;
    const int published = (c.p - 1) * (t.forward + t.backward + t.backward - 3 * t.weight_grad);
    EXPECT_LE(largest(result.idle), published) << c.text();
    if (t.forward == t.input_grad) {
      EXPECT_EQ(largest(result.idle), published) << c.text();
    }
  }
}

// Qi et al. 2024, controllable memory: peak activations tend to 1/3 and 1/2 of 1F1B's (p micro-batches of two stages), and
// their bubbles to 2/3 and 1/2 of its 6(p − 1) at equal passes.
TEST(ControllableMemory, VMinHoldsAThirdOfOneForwardOneBackwardAndVHalfAHalf) {
  for (const int p : {2, 3, 4, 5, 6, 8, 12, 16, 31, 32, 64}) {
    const Case c{p, 4 * p, split(1, 1, 1)};
    EXPECT_LE(largest(run("v-min", c).most_in_flight), (2 * p + 2) / 3 + 2) << c.text();
    EXPECT_LE(largest(run("v-half", c).most_in_flight), p + 2) << c.text();
  }
}

TEST(ControllableMemory, VMinHasTwoThirdsOfTheBubbleAndVHalfAHalf) {
  for (const int p : {2, 3, 4, 5, 6, 8, 12, 16, 32}) {
    const Case c{p, 4 * p, split(1, 1, 1)};
    const int of_1f1b = 6 * (p - 1);
    const auto v_min = run("v-min", c), v_half = run("v-half", c);
    EXPECT_GE(largest(v_min.idle), 4 * p - 5) << c.text();
    EXPECT_LE(3 * largest(v_min.idle), 2 * of_1f1b + 3) << c.text();
    EXPECT_LE(largest(v_half.idle), 0.54 * of_1f1b + 3) << c.text();
  }
}

// DeepSeek-AI 2024 (table 2 of the V3 report): (p/2 − 1)(F&B + B − 3W) idle, p + 1 micro-batches held. F and B are those of
// one of the rank's two stages.
TEST(DualPipe, HasThePublishedBubbleAndHoldsOneMicroBatchMoreThanThereAreRanks) {
  for (const int p : {2, 4, 6, 8, 16})
    for (const int m : {2 * p, 2 * p + 2, 3 * p, 5 * p})
      for (const auto& t : {split(2, 2, 2), split(3, 3, 3), split(2, 3, 2), split(3, 4, 3)}) {
        const Schedule& schedule = *schedule_named("dualpipe");
        const ScheduleShape shape{.pipeline = p, .micro_batches = m, .copies = 2};
        ASSERT_FALSE(schedule.refuse(shape));
        const ActionLists lists = schedule.actions(shape);
        EXPECT_TRUE(check_actions(lists, shape).empty());
        const auto result = test::replay_actions(lists, t, p);
        ASSERT_TRUE(result.finished);
        const int pair = t.forward + t.backward;
        const int published = (p / 2 - 1) * (pair + t.backward - 3 * t.weight_grad);
        const Case c{p, m, t};
        EXPECT_LE(largest(result.idle), published) << c.text();
        if (t.forward == t.input_grad) {
          EXPECT_EQ(largest(result.idle), published) << c.text();
        }
        EXPECT_EQ(largest(result.most_in_flight), p + 1);
      }
}

TEST(DualPipe, ListsAreCompleteStepsForEveryEvenNumberOfMicroBatches) {
  for (const int p : {2, 4, 6})
    for (int m = 2; m <= 4 * p; m += 2) {
      const ScheduleShape shape{.pipeline = p, .micro_batches = m, .copies = 2};
      const ActionLists lists = schedule_named("dualpipe")->actions(shape);
      const auto defects = check_actions(lists, shape);
      EXPECT_TRUE(defects.empty()) << describe(lists, defects.front(), p);
    }
}

TEST(DualPipe, RefusesOddPipelinesAndOddNumbersOfMicroBatchesWithARemedy) {
  const Schedule& schedule = *schedule_named("dualpipe");
  EXPECT_NE(text_of(schedule.refuse({.pipeline = 3, .micro_batches = 6, .copies = 2})).find("dualpipe-v"),
            std::string::npos);
  EXPECT_NE(text_of(schedule.refuse({.pipeline = 4, .micro_batches = 5, .copies = 2})).find("schedule.global_batch"),
            std::string::npos);
}

TEST(ZeroBubble, BeatsTheBubbleOfOneForwardOneBackwardByTheWeightGradients) {
  const Case c{4, 16, split(3, 3, 2)};
  EXPECT_EQ(largest(run("1f1b", c).idle), 3 * (3 + 3 + 2));
  EXPECT_EQ(largest(run("gpipe", c).idle), 3 * (3 + 3 + 2));
  EXPECT_EQ(largest(run("zb-h1", c).idle), 3 * (3 + 3 - 2));
  EXPECT_EQ(largest(run("zb-h2", c).idle), 3 * (3 + 3 - 4));
}

TEST(ZeroBubble, SchedulesOfFewMicroBatchesAreCompleteStepsToo) {
  for (const char* name : {"zb-h1", "zb-h2", "zb-v", "dualpipe-v", "v-min", "v-half"}) {
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
    EXPECT_NE(text_of(schedule_named(name)->refuse({.pipeline = 4, .chunks = 2})).find("set layout.chunks to 1"),
              std::string::npos);
  for (const char* name : {"zb-v", "dualpipe-v"})
    EXPECT_NE(text_of(schedule_named(name)->refuse({.pipeline = 4, .chunks = 1})).find("set layout.chunks to 2"),
              std::string::npos);
  for (const char* name : {"zb-h1", "zb-h2", "zb-v", "dualpipe-v"})
    EXPECT_NE(text_of(schedule_named(name)->refuse(
                          {.pipeline = 4, .chunks = schedule_named(name)->default_chunks, .slices = 2}))
                  .find("schedule.slices"),
              std::string::npos);
}

}  // namespace

// Chimera against the closed form of Osawa et al. 2022 (PipeFisher): with C_f forwards and C_b backwards on the
// critical path, C_f = D and C_b = 2D − 2 for N = D micro-batches, C_f = C_b = N + D/2 − 1 for larger multiples.

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
        const int expected =
            rounds == 1 ? D * forward + (2 * D - 2) * backward : (N + D / 2 - 1) * (forward + backward);
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
  EXPECT_FALSE(refusal(4, 6));
  EXPECT_NE(text_of(refusal(3, 6)).find("set layout.pipeline to an even number"), std::string::npos);
  EXPECT_NE(text_of(refusal(4, 5)).find("schedule.global_batch"), std::string::npos);
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

// TeraPipe: the order of slices, the makespan of equal slices, and the cost of sliced attention.

namespace {

const Schedule& terapipe() { return *schedule_named("terapipe"); }

TEST(TeraPipe, ShrinksTheBubbleOfGPipeByTheNumberOfSlices) {
  for (const int p : {1, 2, 4, 7}) {
    for (const int m : {1, 2, 5}) {
      for (const int slices : {1, 2, 4, 8}) {
        const ScheduleShape shape{.pipeline = p, .micro_batches = m, .slices = slices};
        const ActionLists lists = terapipe().actions(shape);
        EXPECT_TRUE(check_actions(lists, shape).empty());
        const auto result = test::replay_actions(lists, {.forward = 2, .backward = 3});
        EXPECT_EQ(result.makespan, (m * slices + p - 1) * (2 + 3)) << p << " " << m << " " << slices;
        EXPECT_EQ(result.most_in_flight.front(), m * slices);
      }
    }
  }
}

TEST(TeraPipe, BackwardsInTheOrderOfTheForwardsAreACircle) {
  const ScheduleShape shape{.pipeline = 1, .micro_batches = 1, .slices = 2};
  const ActionLists lists{
      {{Pass::forward, 0, 0, 0}, {Pass::forward, 0, 0, 1}, {Pass::backward, 0, 0, 0}, {Pass::backward, 0, 0, 1}}};
  const auto defects = check_actions(lists, shape);
  ASSERT_EQ(defects.size(), 1U);
  EXPECT_NE(defects.front().message.find("circle at 0B0"), std::string::npos) << defects.front().message;
}

TEST(TeraPipe, IsDrawnWithItsSlices) {
  EXPECT_EQ(grid(terapipe().actions({.pipeline = 2, .micro_batches = 1, .slices = 2})),
            "rank 0 │  0F0  0F0/1   .     .   0B0/1  0B0\n"
            "rank 1 │   .    1F0  1F0/1 1B0/1  1B0    .\n");
}

Model small() {
  return gpt("small",
             {.layers = 4, .hidden = 64, .ffn = 256, .heads = 4, .vocab = 256, .max_positions = 64, .sequence = 64});
}

// The lower triangle of attention is cut into strips: their areas add up to it.
TEST(SlicesOfASequence, DoTheWorkOfTheWholeSequence) {
  WorkShape whole;
  whole.sequence = 64;
  const auto flops = [](const WorkShape& shape) {
    double sum = 0, attention = 0;
    for (const Operator& op : operators_of(small(), 0, 6, shape)) {
      sum += op.forward_flops;
      if (op.kind == OpKind::attention) attention += op.forward_flops;
    }
    return std::pair(sum, attention);
  };
  for (const Kernels kernels : {Kernels::flash2, Kernels::flash2_rmsnorm}) {
    whole.kernels = kernels;
    double sum = 0, previous = 0;
    for (int slice = 0; slice < 4; ++slice) {
      WorkShape shape = whole;
      shape.sequence = 16;
      shape.before = slice * 16;
      sum += flops(shape).first;
      EXPECT_GT(flops(shape).second, previous) << "a later slice sees more keys";
      previous = flops(shape).second;
    }
    EXPECT_DOUBLE_EQ(sum, flops(whole).first);
  }
}

Step sliced(int tensor) {
  Step input;
  input.model = small();
  input.layout.pipeline = 2;
  input.layout.tensor = tensor;
  input.layout.sequence_parallel = tensor > 1;
  input.schedule = "terapipe";
  input.slices = 4;
  input.global_batch = 2;
  return input;
}

TEST(SlicesOfASequence, MakeSoundGraphsInWhichCachesGoForwardAndTheirGradientsBack) {
  for (const int tensor : {1, 2}) {
    TaskGraph graph = lower(sliced(tensor));
    set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1.0)));
    const auto violations = check_graph(graph);
    EXPECT_TRUE(violations.empty()) << describe(graph, violations.front());
    int caches = 0, gradients = 0;
    for (const Buffer& buffer : graph.buffers) {
      if (buffer.wire != wire_kv) continue;
      ++(buffer.kind == BufferKind::value ? caches : gradients);
      EXPECT_EQ(buffer.bytes > 0, buffer.kind == BufferKind::gradient);
    }
    const int handed_on = 3 * 2 * tensor * 2 * (tensor > 1 ? 2 : 1);  // slices, micro-batches, ranks, segments
    EXPECT_EQ(caches, handed_on);
    EXPECT_EQ(gradients, handed_on);
  }
}

TEST(SlicesOfASequence, AreRefusedWithoutCausalAttentionAndWithFullRecomputation) {
  Step input = sliced(1);
  input.recompute = Recompute::full;
  EXPECT_FALSE(legal(input));
  input = sliced(1);
  input.model = bert("bert", {.layers = 4,
                              .hidden = 64,
                              .ffn = 256,
                              .heads = 4,
                              .vocab = 260,
                              .max_positions = 64,
                              .token_types = 2,
                              .sequence = 64});
  EXPECT_FALSE(legal(input));
}

}  // namespace

}  // namespace slipway::test
