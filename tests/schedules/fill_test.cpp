// The filling pass on small pipelines of unit durations, with bubble work that is not K-FAC's: places, leftovers, and
// each invariant broken on purpose.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

#include "models/machine/priced_cluster.h"
#include "schedules/check/check.h"
#include "schedules/fill/evaluation.h"
#include "schedules/fill/fill.h"
#include "schedules/lower/graph_builder.h"
#include "schedules/lower/lowering.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "tests/support/command_test.h"
#include "tests/support/fill_steps.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;

TEST(FillGaps, AreThoseOfThePeriodicStepUpToTheNextOne) {
  const UnitStep step;
  const PeriodicStep periodic = periodic_step(step.graph, step.durations);
  EXPECT_DOUBLE_EQ(periodic.period_s, 18);
  ASSERT_EQ(periodic.gaps[0].size(), 2U);
  EXPECT_DOUBLE_EQ(periodic.gaps[0][0].begin, 4);
  EXPECT_DOUBLE_EQ(periodic.gaps[0][0].end, 10);
  EXPECT_EQ(periodic.gaps[0][0].after, 2U);
  ASSERT_EQ(periodic.gaps[1].size(), 1U);
  EXPECT_DOUBLE_EQ(periodic.gaps[1][0].begin, 14);
  EXPECT_DOUBLE_EQ(periodic.gaps[1][0].end, 20);
}

TEST(Fill, PlacesByPriorityThenByLengthAndNeverDelaysTheStep) {
  const UnitStep step;
  BubbleWork bubble_work = no_bubble_work(1);
  add(bubble_work, 0, 1, 0, {}, {}, 1);  // 0: low priority
  add(bubble_work, 0, 1);                // 1
  add(bubble_work, 0, 3);                // 2: longest
  const Filling filling = fill(step.graph, step.durations, bubble_work);
  EXPECT_EQ(filling.graph.window, 1);
  EXPECT_EQ(lane(filling.graph, 0), "0F0 0F1 .item2 .item1 .item0 0B0 0B1");
  EXPECT_DOUBLE_EQ(filling.window_period_s, 18);
  expect_sound(step, bubble_work, filling);
}

TEST(Fill, WhatDoesNotFitGoesToTheNextStepsGaps) {
  const UnitStep step;
  BubbleWork bubble_work = no_bubble_work(1);
  for (int i = 0; i < 3; ++i) add(bubble_work, 0, 2.96);
  const Filling filling = fill(step.graph, step.durations, bubble_work);
  EXPECT_EQ(filling.graph.window, 3);  // one fits a gap of 6; 3.04 are left, 2.96 · 1.05 = 3.108
  EXPECT_DOUBLE_EQ(filling.window_period_s, 3 * 18);
  EXPECT_EQ(filling.ranks[0].behind_s, 0);
  EXPECT_EQ(filling.ranks[1].steps, 1);
  expect_sound(step, bubble_work, filling);
}

TEST(Fill, WhatFitsNoGapRunsBehindTheWindowAndCountsInItsTime) {
  const UnitStep step;
  BubbleWork bubble_work = no_bubble_work(1);
  add(bubble_work, 0, 1);
  add(bubble_work, 0, 7);
  const Filling filling = fill(step.graph, step.durations, bubble_work);
  EXPECT_EQ(filling.graph.window, 1);
  EXPECT_EQ(lane(filling.graph, 0), "0F0 0F1 .item0 0B0 0B1 .item1");
  EXPECT_DOUBLE_EQ(filling.window_period_s, 18 + 7);
  EXPECT_DOUBLE_EQ(filling.ranks[0].behind_s, 7);
  EXPECT_NEAR(utilization_of(filling).after, (12 + 8 + 12) / 25.0 / 2, 1e-12);
  expect_sound(step, bubble_work, filling);
}

TEST(Fill, WithoutBubblesEverythingRunsBehindTheWindowThatWasAskedFor) {
  const UnitStep step;
  BubbleWork bubble_work = no_bubble_work(1);
  add(bubble_work, 0, 1);
  FillOptions options;
  options.use_bubbles = false;
  options.steps = 4;
  const Filling filling = fill(step.graph, step.durations, bubble_work, options);
  EXPECT_EQ(filling.graph.window, 4);
  EXPECT_DOUBLE_EQ(filling.window_period_s, 4 * 18 + 1);
  expect_sound(step, bubble_work, filling);
}

TEST(Fill, AnItemWaitsForTasksAndForWholeGroupsOfOtherRanks) {
  const UnitStep step;
  BubbleWork bubble_work = no_bubble_work(3);
  add(bubble_work, 0, 1, 0, {step.task("0B0")});
  add(bubble_work, 1, 1, 1);
  add(bubble_work, 0, 1, 2, {}, {0, 1});
  const Filling filling = fill(step.graph, step.durations, bubble_work);
  // Behind 0B0 there is no gap in step 0; rank 1 has its first gap at 14; so item 2 is of step 1.
  EXPECT_EQ(filling.graph.window, 2);
  EXPECT_EQ(lane(filling.graph, 0), "0F0 0F1 0B0 0B1 0F0 0F1 .item0 .item2 0B0 0B1");
  expect_sound(step, bubble_work, filling);
}

TEST(Fill, ACommunicationOfBubbleWorkTakesNoGapAndIsWaitedFor) {
  const UnitStep step;
  BubbleWork bubble_work = no_bubble_work(3);
  bubble_work.communicators.push_back({"extra", Axis::world, {0, 1}});
  Work reduce = bubble_work.works[0];
  reduce.collective = Collective::all_reduce;
  reduce.bytes = 8;
  reduce.suffix = ".reduce";
  bubble_work.works.push_back(reduce);
  add(bubble_work, 0, 1, 0, {step.task("0F1")});
  bubble_work.items.push_back({{TaskKind::collective, none, 0, 1, none, 0}, 2, 0, 1, {}, {0}, {}});
  add(bubble_work, 0, 1, 2, {}, {1});
  const Filling filling = fill(step.graph, step.durations, bubble_work);
  const Timeline timeline = replay(filling.graph, filling.durations);
  const auto first = static_cast<TaskId>(step.graph.tasks.size() * static_cast<std::size_t>(filling.graph.window));
  EXPECT_EQ(filling.graph.window, 1);
  EXPECT_DOUBLE_EQ(timeline.start[first], 4);
  EXPECT_DOUBLE_EQ(timeline.start[first + 1], 5);
  EXPECT_DOUBLE_EQ(timeline.start[first + 2], 7);
  expect_sound(step, bubble_work, filling);
}

// Behind the window each of two ranks makes two things that are exchanged one after the other. The first exchange is
// long.
TEST(Fill, MessagesOfOneCommunicatorThatWaitForEachOtherBehindTheWindowDelayItByNothingElse) {
  const UnitStep step;
  BubbleWork bubble_work = no_bubble_work(5);
  bubble_work.communicators.push_back({"pair", Axis::data, {0, 1}});
  Work message = bubble_work.works[0];
  message.collective = Collective::all_reduce;
  message.suffix = ".message";
  bubble_work.works.push_back(message);
  for (const int rank : {0, 1})
    for (const BubbleGroup group : {0, 1}) add(bubble_work, rank, 1, group, {}, {}, group);
  for (const BubbleGroup made : {0, 1})
    bubble_work.items.push_back({{TaskKind::collective, none, 0, 1, 10 + made, 0}, 10, 0, made + 2, {}, {made}, {}});
  for (const int rank : {0, 1}) add(bubble_work, rank, 1, 4, {}, {2, 3}, 2);
  FillOptions behind;
  behind.use_bubbles = false;
  expect_sound(step, bubble_work, fill(step.graph, step.durations, bubble_work, behind));
}

// The second item has priority, so it is placed first.
TEST(Fill, WhatAGroupMakesIsHeldFromItsFirstItemToTheLastReaderAndWhatNobodyReadsWhileItsItemRuns) {
  const UnitStep step;
  BubbleWork bubble_work = no_bubble_work(2);
  add(bubble_work, 0, 1, 0, {}, {}, 1);
  add(bubble_work, 0, 1, 0, {}, {}, 0);
  add(bubble_work, 0, 1, 1, {}, {0}, 2);
  bubble_work.items[2].reads = {0};
  bubble_work.kept = {{0, 1e9, none, 0, 0}, {0, 1e12, 1, 0, none}};
  const Filling filling = fill(step.graph, step.durations, bubble_work);
  const auto first = static_cast<TaskId>(filling.graph.tasks.size() - 3);
  const std::size_t made = filling.graph.buffers.size() - 2;
  EXPECT_EQ(filling.graph.buffers[made].writer, static_cast<std::int32_t>(first + 1));
  const Timeline timeline = replay(filling.graph, filling.durations, 1);
  EXPECT_LT(timeline.start[first + 1], timeline.start[first]);
  EXPECT_GE(memory_timeline(filling.graph, timeline)[0].activations_peak, 1e12 + 1e9);
  EXPECT_EQ(memory_timeline(filling.graph, timeline)[0].peak_task, label_of(filling.graph, first + 1));
  expect_sound(step, bubble_work, filling);
}

TEST(Fill, WhatAnItemReadsIsKeptFromTheTaskThatWouldFreeItToTheItem) {
  const UnitStep step;
  BubbleWork bubble_work = no_bubble_work(1);
  bubble_work.kept = {{step.task("0B1"), 1e9, none, none, none}, {step.task("0B1"), 1e12, none, none, none}};
  add(bubble_work, 0, 1, 0, {step.task("0B1")});
  add(bubble_work, 0, 1, 0, {step.task("0F1")});
  bubble_work.items[0].reads = {0};
  bubble_work.items[1].reads = {1};  // done before 0B1, so nothing more is kept for it
  const Filling filling = fill(step.graph, step.durations, bubble_work);
  const auto plain = memory_timeline(step.graph, replay(step.graph, step.durations, 1));
  const auto filled = memory_timeline(filling.graph, replay(filling.graph, filling.durations, 1));
  EXPECT_GE(filled[0].activations_peak, 1e9);
  EXPECT_LT(filled[0].activations_peak, 1e9 + 2 * plain[0].activations_peak);
  EXPECT_DOUBLE_EQ(filled[1].activations_peak, plain[1].activations_peak);
  expect_sound(step, bubble_work, filling);
}

TEST(Fill, RefusesACircleAndStrangers) {
  const UnitStep step;
  BubbleWork circle = no_bubble_work(2);
  add(circle, 0, 1, 0, {}, {1});
  add(circle, 0, 1, 1, {}, {0});
  EXPECT_THROW(fill(step.graph, step.durations, circle), std::invalid_argument);
  BubbleWork stranger = no_bubble_work(1);
  add(stranger, 7, 1);
  EXPECT_THROW(fill(step.graph, step.durations, stranger), std::invalid_argument);
}

class BrokenFilling : public testing::Test {
 protected:
  void SetUp() override {
    bubble_work_ = no_bubble_work(2);
    add(bubble_work_, 0, 1, 0, {step_.task("0F1")});
    add(bubble_work_, 0, 1, 1, {}, {0});
    filling_ = fill(step_.graph, step_.durations, bubble_work_);
  }
  std::string violations() const {
    std::string text;
    for (const Violation& v : check_filling(step_.graph, bubble_work_, filling_)) text += describe(filling_.graph, v);
    return text;
  }
  // Positions in rank 0's lane: 0F0 0F1 .item0 .item1 0B0 0B1
  void swap(std::size_t a, std::size_t b) {
    std::swap(filling_.graph.compute_order.values[a], filling_.graph.compute_order.values[b]);
  }
  UnitStep step_;
  BubbleWork bubble_work_;
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
  for (std::size_t i = 0; i < filling_.graph.tasks.size(); ++i) filling_.graph.predecessors.begin.push_back(0);
  std::swap(filling_.graph.compute_order.values[1], filling_.graph.compute_order.values[2]);
  EXPECT_THAT(violations(), HasSubstr("I11: .item0 on rank 0 does not wait for 0F1 on rank 0"));
}

TEST_F(BrokenFilling, I11AnItemComesAfterTheWholeGroupThatItNeeds) {
  filling_.graph.predecessors = Rows{};
  for (std::size_t i = 0; i < filling_.graph.tasks.size(); ++i) filling_.graph.predecessors.begin.push_back(0);
  swap(2, 3);
  EXPECT_THAT(violations(), HasSubstr("I11: .item1 on rank 0 does not wait for .item0 on rank 0"));
}

TEST_F(BrokenFilling, I12TheWindowIsNoLongerThanUnfilled) {
  filling_.durations.seconds.back() = 7;
  EXPECT_THAT(violations(), HasSubstr("I12: a window of 1 filled steps takes 20"));
}

}  // namespace

// A second kind of bubble work, unrelated to K-FAC: evaluation micro-batches pass the pipeline.

namespace {

struct Evaluated {
  TaskGraph step;
  Durations durations;
  BubbleWork bubble_work;
  Filling filling;
  Timeline timeline;
};

constexpr int evaluations = 3;

Evaluated evaluated(const char* schedule, Layout layout) {
  Evaluated e;
  Step input;
  input.model =
      llama("small", {.layers = 8, .hidden = 64, .ffn = 256, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 64});
  input.layout = layout;
  input.schedule = schedule;
  input.micro_batch = 2;
  input.dtype = Dtype::float32;
  input.global_batch = 8 * layout.data;
  PricedCluster cluster = hand_cluster(1, rank_count(layout), 1e9, 1e-6);
  Machine& machine = cluster.groups[0].machine;
  machine.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 1e11;
  machine.memory_bandwidth = 1e12;
  e.step = lower(input);
  e.durations = durations_of(e.step, cluster);
  set_global_order(e.step, e.durations);
  e.bubble_work = evaluation_bubble_work(e.step, cluster, e.durations, evaluations);
  e.filling = fill(e.step, e.durations, e.bubble_work);
  e.timeline = replay(e.filling.graph, e.filling.durations);
  return e;
}

class EvaluationBubbleWork : public testing::TestWithParam<std::pair<const char*, Layout>> {};

TEST_P(EvaluationBubbleWork, PassEveryStageInOrderWithTheirMessagesAndDelayNothing) {
  const Evaluated e = evaluated(GetParam().first, GetParam().second);
  for (const Violation& v : check_graph(e.filling.graph)) ADD_FAILURE() << describe(e.filling.graph, v);
  for (const Violation& v : check_filling(e.step, e.bubble_work, e.filling))
    ADD_FAILURE() << describe(e.filling.graph, v);
  const int stages = stage_count(e.step.step.layout), replicas = e.step.step.layout.data;
  std::map<std::tuple<int, int, int>, std::pair<double, double>> passes;  // (replica, micro-batch, stage)
  for (TaskId id = 0; id < e.filling.graph.tasks.size(); ++id) {
    const Task& task = e.filling.graph.tasks[id];
    const Work& work = e.filling.graph.work(task);
    if (task.kind != TaskKind::bubble_work) continue;
    passes[{task.rank % replicas, task.micro_batch, work.stage}] = {e.timeline.start[id], e.timeline.end[id]};
  }
  EXPECT_EQ(passes.size(), static_cast<std::size_t>(replicas * evaluations * stages));
  for (const auto& [at, span] : passes) {
    const auto [replica, micro_batch, stage] = at;
    if (stage == 0) continue;
    EXPECT_GE(span.first, (passes.at({replica, micro_batch, stage - 1}).second));
  }
}
INSTANTIATE_TEST_SUITE_P(Of, EvaluationBubbleWork,
                         testing::Values(std::pair("gpipe", Layout{.pipeline = 4}),
                                         std::pair("1f1b", Layout{.pipeline = 2, .data = 2}),
                                         std::pair("interleaved-1f1b", Layout{.pipeline = 2, .chunks = 2}),
                                         std::pair("zb-h1", Layout{.pipeline = 4}),
                                         // Stages in a V: behind the window a micro-batch is a chain over all ranks.
                                         std::pair("zb-v", Layout{.pipeline = 4, .chunks = 2}),
                                         std::pair("zb-v", Layout{.pipeline = 2, .chunks = 2, .data = 2}),
                                         std::pair("dualpipe-v", Layout{.pipeline = 4, .chunks = 2})));

TEST(EvaluationBubbleWorkMemory, AFrozenCopyOfTheWeightsIsCounted) {
  const Evaluated e = evaluated("gpipe", {.pipeline = 2});
  EXPECT_DOUBLE_EQ(e.filling.graph.static_bytes[0].weights, 2 * e.step.static_bytes[0].weights);
}

TEST(EvaluationBubbleWorkMemory, ShardedLayersAreRefused) {
  EXPECT_THROW(evaluated("gpipe", {.tensor = 2, .pipeline = 2}), std::invalid_argument);
}

}  // namespace

// K-FAC's work behind the step instead of in its bubbles. Invariant I12 (schedules/fill/fill_checks.cpp) bounds its
// time, also where reductions of factors wait for each other.

namespace {

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";

// With three replicas and more a factor's reduction takes longer than the curvature that the next one waits for.
TEST(KfacBehindTheStep, RunsWithAnyNumberOfReplicasInEverySchedule) {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "zb-h2", "chimera"})
    for (const int data : {1, 2, 3, 4, 8}) {
      std::vector<std::string> args{"simulate", tiny, "--json"};
      for (const std::string& setting :
           {std::string("run.optimizer.name=kfac"), std::string("run.optimizer.refresh_steps=2"),
            std::string("schedule.fill=none"), fmt::format("schedule.name={}", schedule),
            fmt::format("layout.data={}", data), fmt::format("cluster.gpus_per_node={}", 2 * data),
            std::string("schedule.micro_batch=1"), fmt::format("schedule.global_batch={}", 2 * data)})
        args.insert(args.end(), {"--set", setting});
      const Answer answer = slipway_with(args);
      ASSERT_EQ(answer.status, status_done) << schedule << ", data " << data << ": " << answer.err;
      const auto json = nlohmann::json::parse(answer.out);
      EXPECT_GT(json["step_time_s"], json["unfilled_step_time_s"]);
    }
}

}  // namespace

// Several steps as one graph: the same timeline as the steps one after another.

namespace {

// ZeRO-1 carries its parameter gathers into the next step.
TaskGraph small_step(Durations& durations) {
  Step input;
  input.model =
      llama("small", {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  input.layout = {.pipeline = 2, .data = 2, .zero = 1};
  input.global_batch = 8;
  TaskGraph graph = lower(input);
  for (TaskId id = 0; id < graph.tasks.size(); ++id) durations.push_back(1 + id % 3);
  set_global_order(graph, durations);
  return graph;
}

TEST(Window, IsASoundGraph) {
  Durations durations;
  const TaskGraph step = small_step(durations);
  TaskGraph window = window_of(step, 3);
  Durations all;
  for (int s = 0; s < 3; ++s) all.seconds.insert(all.seconds.end(), durations.begin(), durations.end());
  set_global_order(window, all);
  for (const Violation& violation : check_graph(window)) ADD_FAILURE() << describe(window, violation);
  EXPECT_EQ(window.tasks.size(), 3 * step.tasks.size());
  EXPECT_EQ(label_of(window, static_cast<TaskId>(2 * step.tasks.size())), label_of(step, 0));
  EXPECT_EQ(window.tasks.back().step, 2);
}

TEST(Window, ReplaysLikeItsStepsBackToBack) {
  Durations durations;
  const TaskGraph step = small_step(durations);
  TaskGraph window = window_of(step, 3);
  window.order.clear();
  for (std::uint32_t s = 0; s < 3; ++s)
    for (const TaskId id : step.order) window.order.push_back(static_cast<TaskId>(s * step.tasks.size()) + id);
  Durations all;
  for (int s = 0; s < 3; ++s) all.seconds.insert(all.seconds.end(), durations.begin(), durations.end());
  EXPECT_EQ(replay(window, all, 2).start, replay(step, durations, 6).start);
}

TEST(Window, OfAWindowOrOfNoStepIsRefused) {
  Durations durations;
  const TaskGraph step = small_step(durations);
  EXPECT_THROW(window_of(step, 0), std::invalid_argument);
  EXPECT_THROW(window_of(window_of(step, 2), 2), std::invalid_argument);
}

}  // namespace

}  // namespace slipway::test
