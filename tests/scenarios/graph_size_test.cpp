// Estimates of how large a task graph will be, beside the graphs that the lowering makes.
#include "scenarios/predict/graph_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "schedules/lower/lowering.h"
#include "tests/support/command_test.h"
#include "tests/support/printed.h"
#include "tests/support/process_limits.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Scenario example(const std::string& name, const std::vector<std::string>& settings) {
  return checked_scenario(SLIPWAY_SOURCE_DIR "/scenarios/examples/" + name + ".yaml", settings);
}

// The graph has at most a tenth more or fewer tasks than estimated: passes at the ends of a step differ.
TEST(GraphSize, TasksAreEstimatedFromTwoSmallStepsOfTheSameLayout) {
  for (const std::vector<std::string>& settings : {std::vector<std::string>{},
                                                   {"layout.zero=3"},
                                                   {"schedule.name=zb-h1"},
                                                   {"schedule.recompute=full"},
                                                   {"layout.tensor=4", "layout.data=4"},
                                                   {"layout.context=2", "layout.data=1", "layout.zero=0"}}) {
    std::vector<std::string> all = settings;
    all.push_back("schedule.global_batch=256");
    const Scenario scenario = example("llama-8b-64xh100", all);
    const double estimated =
        estimated_size(scenario.step, false, [](const Step& smaller) { return lower(smaller).tasks.size(); }).tasks;
    const auto lowered = static_cast<double>(lower(scenario.step).tasks.size());
    EXPECT_NEAR(estimated / lowered, 1, 0.1) << testing::PrintToString(settings);
  }
}

// Of replicas as well, so that a step of one to three micro-batches, or one of a schedule from a file, is estimated too.
TEST(GraphSize, TasksAreEstimatedFromFewReplicasWhereAllRanksAreLaidOut) {
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{"schedule.global_batch=8"},
        {"schedule.global_batch=24", "layout.zero=3"},
        {"schedule.global_batch=256"},
        {"schedule.global_batch=16", "layout.tensor=1", "layout.sequence_parallel=false", "layout.data=16"}}) {
    std::vector<std::string> all = {"layout.tensor=2", "layout.data=8"};
    all.insert(all.end(), settings.begin(), settings.end());
    const Scenario scenario = example("llama-8b-64xh100", all);
    std::int64_t largest = 0;
    const double estimated = estimated_size(scenario.step, true, [&](const Step& smaller) {
                               const std::size_t tasks = lower(smaller).tasks.size();
                               largest = std::max(largest, static_cast<std::int64_t>(tasks));
                               return tasks;
                             }).tasks;
    const auto lowered = static_cast<double>(lower(scenario.step).tasks.size());
    EXPECT_NEAR(estimated / lowered, 1, 0.1) << testing::PrintToString(settings);
    EXPECT_LE(static_cast<double>(largest), 0.6 * lowered) << testing::PrintToString(settings);
  }
}

TEST(GraphSize, AGraphThatDoesNotFitIsRefusedWithTheEstimateAndTheRemedy) {
  const Scenario scenario = example("tiny-llama-cpu", {});
  EXPECT_NO_THROW(refuse_beyond_memory(scenario, {1e6, 3}, 1e9));
  try {
    refuse_beyond_memory(scenario, {1e7, 30}, 1e9);
    FAIL() << "ten million tasks fit into 1 GB";
  } catch (const std::exception& refusal) {
    EXPECT_THAT(std::string(refusal.what()), HasSubstr("about 10.0 M tasks"));
    EXPECT_THAT(std::string(refusal.what()), HasSubstr("take about 30.0 s to prepare"));
    EXPECT_THAT(std::string(refusal.what()), HasSubstr("lower schedule.global_batch"));
  }
}

// 11.4 million tasks: refused at once, where a limit leaves no room.
TEST(GraphSize, LowerRefusesBeforeItBegins) {
  if (!addresses_can_be_limited) GTEST_SKIP() << "no program runs within a limit of addresses here";
  const Printed lower = printed_by("ulimit -v 3000000; " SLIPWAY_PROGRAM " lower " SLIPWAY_SOURCE_DIR
                                   "/scenarios/examples/gpt3-175b-1024xa100.yaml -o /dev/null 2>&1");
  EXPECT_EQ(lower.status, 2);
  EXPECT_THAT(lower.text, HasSubstr("about 11"));
  EXPECT_THAT(lower.text, HasSubstr("M tasks"));
}

// A quarter of a million ranks of three micro-batches, and of many: neither is begun, nor is a step of all those ranks.
TEST(GraphSize, ManyRanksAreRefusedBeforeAnyStepOfAllOfThemIsLaidOut) {
  if (!addresses_can_be_limited) GTEST_SKIP() << "no program runs within a limit of addresses here";
  for (const std::string batch : {"12288", "393216"}) {
    const Printed lower = printed_by("ulimit -v 1000000; " SLIPWAY_PROGRAM " lower " SLIPWAY_SOURCE_DIR
                                     "/scenarios/examples/gpt3-175b-1024xa100.yaml --set cluster.nodes=32768 --set "
                                     "layout.data=4096 -o /dev/null --set schedule.global_batch=" +
                                     batch + " 2>&1");
    EXPECT_EQ(lower.status, 2) << lower.text;
    EXPECT_THAT(lower.text, AllOf(HasSubstr("the task graph would have"), HasSubstr("lower schedule.global_batch")));
  }
}

// Also where micro-batches that repeat are left out: of a long pipeline too many remain.
TEST(GraphSize, APipelineOfAThousandStagesIsRefusedAtOnceWhereItDoesNotFit) {
  if (!addresses_can_be_limited) GTEST_SKIP() << "no program runs within a limit of addresses here";
  const Printed simulate = printed_by(
      "ulimit -v 1500000; " SLIPWAY_PROGRAM " simulate " SLIPWAY_SOURCE_DIR
      "/scenarios/examples/llama-8b-64xh100.yaml --set model.layers=1022 --set cluster.nodes=128 --set "
      "layout.pipeline=1024 --set layout.tensor=1 --set layout.sequence_parallel=false --set layout.data=1 --set "
      "layout.zero=0 --set schedule.global_batch=4096 2>&1");
  EXPECT_EQ(simulate.status, 2);
  EXPECT_THAT(simulate.text, HasSubstr("M tasks"));
}

// One rank of each stage tells of the others; all of them would be tens of millions of tasks.
TEST(GraphSize, ShowOfThousandsOfRanksLaysOutOneOfEachStage) {
  if (!addresses_can_be_limited) GTEST_SKIP() << "no program runs within a limit of addresses here";
  const Printed show = printed_by("ulimit -v 1000000; " SLIPWAY_PROGRAM " show " SLIPWAY_SOURCE_DIR
                                  "/scenarios/examples/gpt3-175b-1024xa100.yaml --set cluster.nodes=1024 --set "
                                  "layout.data=128 --set schedule.global_batch=16384 2>&1");
  EXPECT_EQ(show.status, 0) << show.text;
  EXPECT_THAT(show.text, AllOf(HasSubstr("on 8192 x a100-80gb"), HasSubstr("rank 7168 │")));
}

// Micro-batches that repeat are left out.
TEST(GraphSize, AMillionMicroBatchesAreSimulatedAndTheirMemoryCounted) {
  if (!addresses_can_be_limited) GTEST_SKIP() << "no program runs within a limit of addresses here";
  for (const std::string command : {"simulate", "memory"}) {
    const Printed answer = printed_by(
        "ulimit -v 3000000; " SLIPWAY_PROGRAM " " + command +
        " " SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml --set schedule.global_batch=2000000 2>&1");
    EXPECT_EQ(answer.status, 0) << answer.text;
    EXPECT_THAT(answer.text, HasSubstr("1.00 M micro-batches")) << command;
  }
}

}  // namespace
}  // namespace slipway::test
