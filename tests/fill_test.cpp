// The filling pass on small pipelines of unit durations, with fillers that have nothing to do with K-FAC:
// what goes where, what is left over, and each invariant broken on purpose.
#include <gmock/gmock.h>

#include "schedules/graph/fill.h"
#include "schedules/graph/fill_gaps.h"
#include "schedules/graph/memory_timeline.h"
#include "tests/fill_steps.h"

namespace slipway {
namespace {

using testing::HasSubstr;

TEST(FillGaps, AreThoseOfTheSteadyStateUpToTheNextStep) {
  const UnitStep step;
  const SteadyStep steady = steady_step(step.graph, step.durations);
  EXPECT_DOUBLE_EQ(steady.period_s, 18);
  ASSERT_EQ(steady.gaps[0].size(), 2U);
  EXPECT_DOUBLE_EQ(steady.gaps[0][0].begin, 4);
  EXPECT_DOUBLE_EQ(steady.gaps[0][0].end, 10);
  EXPECT_EQ(steady.gaps[0][0].after, 2U);
  ASSERT_EQ(steady.gaps[1].size(), 1U);
  EXPECT_DOUBLE_EQ(steady.gaps[1][0].begin, 14);
  EXPECT_DOUBLE_EQ(steady.gaps[1][0].end, 20);
}

TEST(Fill, PlacesByPriorityThenByLengthAndNeverDelaysTheStep) {
  const UnitStep step;
  Fillers fillers = no_fillers(1);
  add(fillers, 0, 1, 0, {}, {}, 1);  // 0: low priority
  add(fillers, 0, 1);                // 1
  add(fillers, 0, 3);                // 2: longest
  const Filling filling = fill(step.graph, step.durations, fillers);
  EXPECT_EQ(filling.graph.window, 1);
  EXPECT_EQ(lane(filling.graph, 0), "0F0 0F1 .item2 .item1 .item0 0B0 0B1");
  EXPECT_DOUBLE_EQ(filling.window_period_s, 18);
  expect_sound(step, fillers, filling);
}

TEST(Fill, WhatDoesNotFitGoesToTheNextStepsGaps) {
  const UnitStep step;
  Fillers fillers = no_fillers(1);
  for (int i = 0; i < 3; ++i) add(fillers, 0, 2.96);
  const Filling filling = fill(step.graph, step.durations, fillers);
  EXPECT_EQ(filling.graph.window, 3);  // one fits a gap of 6; 3.04 are left, 2.96 · 1.05 = 3.108
  EXPECT_DOUBLE_EQ(filling.window_period_s, 3 * 18);
  EXPECT_EQ(filling.ranks[0].behind_s, 0);
  EXPECT_EQ(filling.ranks[1].steps, 1);
  expect_sound(step, fillers, filling);
}

TEST(Fill, WhatFitsNoGapRunsBehindTheWindowAndCountsInItsTime) {
  const UnitStep step;
  Fillers fillers = no_fillers(1);
  add(fillers, 0, 1);
  add(fillers, 0, 7);
  const Filling filling = fill(step.graph, step.durations, fillers);
  EXPECT_EQ(filling.graph.window, 1);
  EXPECT_EQ(lane(filling.graph, 0), "0F0 0F1 .item0 0B0 0B1 .item1");
  EXPECT_DOUBLE_EQ(filling.window_period_s, 18 + 7);
  EXPECT_DOUBLE_EQ(filling.ranks[0].behind_s, 7);
  EXPECT_NEAR(utilization_of(filling).after, (12 + 8 + 12) / 25.0 / 2, 1e-12);
  expect_sound(step, fillers, filling);
}

TEST(Fill, WithoutBubblesEverythingRunsBehindTheWindowThatWasAskedFor) {
  const UnitStep step;
  Fillers fillers = no_fillers(1);
  add(fillers, 0, 1);
  FillOptions options;
  options.use_bubbles = false;
  options.steps = 4;
  const Filling filling = fill(step.graph, step.durations, fillers, options);
  EXPECT_EQ(filling.graph.window, 4);
  EXPECT_DOUBLE_EQ(filling.window_period_s, 4 * 18 + 1);
  expect_sound(step, fillers, filling);
}

TEST(Fill, AnItemWaitsForTasksAndForWholeGroupsOfOtherRanks) {
  const UnitStep step;
  Fillers fillers = no_fillers(3);
  add(fillers, 0, 1, 0, {step.task("0B0")});
  add(fillers, 1, 1, 1);
  add(fillers, 0, 1, 2, {}, {0, 1});
  const Filling filling = fill(step.graph, step.durations, fillers);
  // Behind 0B0 there is no gap in step 0; rank 1 has its first gap at 14; so item 2 is of step 1.
  EXPECT_EQ(filling.graph.window, 2);
  EXPECT_EQ(lane(filling.graph, 0), "0F0 0F1 0B0 0B1 0F0 0F1 .item0 .item2 0B0 0B1");
  expect_sound(step, fillers, filling);
}

TEST(Fill, ACommunicationOfFillersTakesNoGapAndIsWaitedFor) {
  const UnitStep step;
  Fillers fillers = no_fillers(3);
  fillers.communicators.push_back({"extra", Axis::world, {0, 1}});
  Work reduce = fillers.works[0];
  reduce.collective = Collective::all_reduce;
  reduce.bytes = 8;
  reduce.suffix = ".reduce";
  fillers.works.push_back(reduce);
  add(fillers, 0, 1, 0, {step.task("0F1")});
  fillers.items.push_back({{TaskKind::collective, none, 0, 1, none, 0}, 2, 0, 1, {}, {0}, {}});
  add(fillers, 0, 1, 2, {}, {1});
  const Filling filling = fill(step.graph, step.durations, fillers);
  const Timeline timeline = replay(filling.graph, filling.durations);
  const auto first =
      static_cast<TaskId>(step.graph.tasks.size() * static_cast<std::size_t>(filling.graph.window));
  EXPECT_EQ(filling.graph.window, 1);
  EXPECT_DOUBLE_EQ(timeline.start[first], 4);
  EXPECT_DOUBLE_EQ(timeline.start[first + 1], 5);
  EXPECT_DOUBLE_EQ(timeline.start[first + 2], 7);
  expect_sound(step, fillers, filling);
}

// Behind the window each of two ranks makes two things that are exchanged one after the other, the first of
// them for long.
TEST(Fill, MessagesOfOneCommunicatorThatWaitForEachOtherBehindTheWindowDelayItByNothingElse) {
  const UnitStep step;
  Fillers fillers = no_fillers(5);
  fillers.communicators.push_back({"pair", Axis::data, {0, 1}});
  Work message = fillers.works[0];
  message.collective = Collective::all_reduce;
  message.suffix = ".message";
  fillers.works.push_back(message);
  for (const int rank : {0, 1})
    for (const FillerGroup group : {0, 1}) add(fillers, rank, 1, group, {}, {}, group);
  for (const FillerGroup made : {0, 1})
    fillers.items.push_back(
        {{TaskKind::collective, none, 0, 1, 10 + made, 0}, 10, 0, made + 2, {}, {made}, {}});
  for (const int rank : {0, 1}) add(fillers, rank, 1, 4, {}, {2, 3}, 2);
  FillOptions behind;
  behind.use_bubbles = false;
  expect_sound(step, fillers, fill(step.graph, step.durations, fillers, behind));
}

// The second item is placed first: it has priority.
TEST(Fill, WhatAGroupMakesIsHeldFromItsFirstItemToTheLastReaderAndWhatNobodyReadsWhileItsItemRuns) {
  const UnitStep step;
  Fillers fillers = no_fillers(2);
  add(fillers, 0, 1, 0, {}, {}, 1);
  add(fillers, 0, 1, 0, {}, {}, 0);
  add(fillers, 0, 1, 1, {}, {0}, 2);
  fillers.items[2].reads = {0};
  fillers.kept = {{0, 1e9, none, 0, 0}, {0, 1e12, 1, 0, none}};
  const Filling filling = fill(step.graph, step.durations, fillers);
  const auto first = static_cast<TaskId>(filling.graph.tasks.size() - 3);
  const std::size_t made = filling.graph.buffers.size() - 2;
  EXPECT_EQ(filling.graph.buffers[made].writer, static_cast<std::int32_t>(first + 1));
  const Timeline timeline = replay(filling.graph, filling.durations, 1);
  EXPECT_LT(timeline.start[first + 1], timeline.start[first]);
  EXPECT_GE(memory_timeline(filling.graph, timeline)[0].activations_peak, 1e12 + 1e9);
  EXPECT_EQ(memory_timeline(filling.graph, timeline)[0].peak_task, label_of(filling.graph, first + 1));
  expect_sound(step, fillers, filling);
}

TEST(Fill, WhatAnItemReadsIsKeptFromTheTaskThatWouldFreeItToTheItem) {
  const UnitStep step;
  Fillers fillers = no_fillers(1);
  fillers.kept = {{step.task("0B1"), 1e9, none, none, none}, {step.task("0B1"), 1e12, none, none, none}};
  add(fillers, 0, 1, 0, {step.task("0B1")});
  add(fillers, 0, 1, 0, {step.task("0F1")});
  fillers.items[0].reads = {0};
  fillers.items[1].reads = {1};  // done before 0B1: nothing more is kept for it
  const Filling filling = fill(step.graph, step.durations, fillers);
  const auto plain = memory_timeline(step.graph, replay(step.graph, step.durations, 1));
  const auto filled = memory_timeline(filling.graph, replay(filling.graph, filling.durations, 1));
  EXPECT_GE(filled[0].activations_peak, 1e9);
  EXPECT_LT(filled[0].activations_peak, 1e9 + 2 * plain[0].activations_peak);
  EXPECT_DOUBLE_EQ(filled[1].activations_peak, plain[1].activations_peak);
  expect_sound(step, fillers, filling);
}

TEST(Fill, RefusesACircleAndStrangers) {
  const UnitStep step;
  Fillers circle = no_fillers(2);
  add(circle, 0, 1, 0, {}, {1});
  add(circle, 0, 1, 1, {}, {0});
  EXPECT_THROW(fill(step.graph, step.durations, circle), std::invalid_argument);
  Fillers stranger = no_fillers(1);
  add(stranger, 7, 1);
  EXPECT_THROW(fill(step.graph, step.durations, stranger), std::invalid_argument);
}

class BrokenFilling : public testing::Test {
 protected:
  void SetUp() override {
    fillers_ = no_fillers(2);
    add(fillers_, 0, 1, 0, {step_.task("0F1")});
    add(fillers_, 0, 1, 1, {}, {0});
    filling_ = fill(step_.graph, step_.durations, fillers_);
  }
  std::string violations() const {
    std::string text;
    for (const Violation& v : check_filling(step_.graph, fillers_, filling_))
      text += describe(filling_.graph, v);
    return text;
  }
  // Positions in rank 0's lane: 0F0 0F1 .item0 .item1 0B0 0B1
  void swap(std::size_t a, std::size_t b) {
    std::swap(filling_.graph.compute_order.values[a], filling_.graph.compute_order.values[b]);
  }
  UnitStep step_;
  Fillers fillers_;
  Filling filling_;
};

TEST_F(BrokenFilling, IsSoundToBeginWith) { EXPECT_EQ(violations(), ""); }

TEST_F(BrokenFilling, I10TasksOfTheStepStayInTheirOrder) {
  swap(4, 5);
  EXPECT_THAT(violations(), HasSubstr("I10: 0B1 on rank 0 stands in the window where the step has 0B0"));
}

TEST_F(BrokenFilling, I10EveryItemIsThereOnce) {
  filling_.graph.compute_order.values[3] = filling_.graph.compute_order.values[2];
  EXPECT_THAT(violations(), HasSubstr("I10: .item0 on rank 0 is 2 times in a compute lane"));
}

TEST_F(BrokenFilling, I11AnItemComesAfterTheTaskThatItNeeds) {
  filling_.graph.predecessors = Rows{};
  for (std::size_t i = 0; i < filling_.graph.tasks.size(); ++i)
    filling_.graph.predecessors.begin.push_back(0);
  std::swap(filling_.graph.compute_order.values[1], filling_.graph.compute_order.values[2]);
  EXPECT_THAT(violations(), HasSubstr("I11: .item0 on rank 0 does not wait for 0F1 on rank 0"));
}

TEST_F(BrokenFilling, I11AnItemComesAfterTheWholeGroupThatItNeeds) {
  filling_.graph.predecessors = Rows{};
  for (std::size_t i = 0; i < filling_.graph.tasks.size(); ++i)
    filling_.graph.predecessors.begin.push_back(0);
  swap(2, 3);
  EXPECT_THAT(violations(), HasSubstr("I11: .item1 on rank 0 does not wait for .item0 on rank 0"));
}

TEST_F(BrokenFilling, I12TheWindowIsNoLongerThanUnfilled) {
  filling_.durations.back() = 7;
  EXPECT_THAT(violations(), HasSubstr("I12: a window of 1 filled steps takes 20"));
}

}  // namespace
}  // namespace slipway
