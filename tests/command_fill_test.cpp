// Filled bubbles from the command line: the figures of the paper's case, what is refused, what is printed.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/command_test.h"

namespace slipway {
namespace {

using testing::HasSubstr;

const std::string bert = SLIPWAY_SOURCE_DIR "/scenarios/pipefisher-2022/bert-base.yaml";

class FillCommand : public CommandTest {
 protected:
  static nlohmann::json summary(std::vector<std::string> overrides) {
    std::vector<std::string> args{"simulate", bert, "--json"};
    for (const std::string& each : overrides) args.insert(args.end(), {"--set", each});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return nlohmann::json::parse(answer.out);
  }
  static std::string refusal(const std::string& command, const std::vector<std::string>& overrides) {
    std::vector<std::string> args{command, bert};
    for (const std::string& each : overrides) args.insert(args.end(), {"--set", each});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_usage) << answer.out;
    return answer.err;
  }
};

TEST_F(FillCommand, WhereStagesAreUnevenItSaysWhyThereIsNoClosedForm) {
  const auto text = [](const std::string& stages, const std::string& nodes) {
    return slipway_with({"simulate", bert, "--set", "layout.pipeline=" + stages, "--set", "cluster.nodes=" + nodes, "--set",
                         "schedule.global_batch=256"})
        .out;
  };
  EXPECT_THAT(text("8", "2"), HasSubstr("No closed form (Osawa et al. 2022) beside it: "));
  EXPECT_THAT(text("4", "1"), HasSubstr("Closed form without communication (Osawa et al. 2022):"));
  EXPECT_THAT(text("4", "1"), testing::Not(HasSubstr("No closed form")));
}

// Osawa et al. 2022: BERT-Base, three blocks a stage, four stages, four micro-batches of 32, one replica.
TEST_F(FillCommand, GPipeReachesItsCeilingOf88Point7PercentWithARefreshEveryThreeSteps) {
  const auto json = summary({});
  EXPECT_EQ(json["fill"], "kfac");
  EXPECT_EQ(json["refresh_steps"], 3);
  EXPECT_NEAR(json["utilization_before"], 4.0 / 7, 1e-6);
  EXPECT_NEAR(json["utilization"], 0.8874, 5e-5);
  EXPECT_NEAR(json["utilization_ceiling"], 0.8874, 5e-5);
  EXPECT_EQ(json["behind_s"], 0);
  EXPECT_NEAR(json["step_time_s"], json["unfilled_step_time_s"], 1e-6);
}

TEST_F(FillCommand, OneFOneBReachesFourFifths) {
  const auto json = summary({"schedule.name=1f1b"});
  EXPECT_GE(json["utilization"], 0.8);
  EXPECT_LE(json["utilization"].get<double>(), json["utilization_ceiling"].get<double>() + 1e-9);
  EXPECT_NEAR(json["step_time_s"], json["unfilled_step_time_s"], 1e-6);
}

TEST_F(FillCommand, UnfilledKfacRunsBehindTheStepAsInTheClosedForm) {
  const auto filled = summary({});
  const auto json = summary({"schedule.fill=none", "run.optimizer.refresh_steps=1"});
  EXPECT_EQ(json["refresh_steps"], 1);
  // T_pipe + T_prec + N·T_curv + T_inv of three blocks.
  EXPECT_NEAR(json["step_time_s"].get<double>() - filled["step_time_s"].get<double>(),
              3 * (4 * 25.546598434448242e-3 + 71.66688442230225e-3), 1e-6);
}

TEST_F(FillCommand, KfacIsPricedFromAMachineProfileWithoutATable) {
  const auto json = summary({"cluster.block_times=", "cluster.fabrics="});
  EXPECT_EQ(json["fill"], "kfac");
  EXPECT_GT(json["utilization"], json["utilization_before"]);
}

TEST_F(FillCommand, TheReportSaysWhatFillingDidAndDrawsTheWindow) {
  const Answer answer = slipway_with({"simulate", bert});
  for (const char* text : {"Bubbles filled with kfac", "88.7 %", "3 steps", "C curvature", "V inversion",
                           "One window of 3 steps alone", "Osawa et al. 2022"})
    EXPECT_THAT(answer.out, HasSubstr(text));
}

TEST_F(FillCommand, WhatCannotBeCombinedIsRefusedWithTheKey) {
  EXPECT_THAT(refusal("simulate", {"run.optimizer=adamw"}),
              HasSubstr("schedule.fill: there is no K-FAC work"));
  EXPECT_THAT(refusal("simulate", {"schedule.fill=evaluation"}),
              HasSubstr("schedule.fill: the bubbles take one kind"));
  EXPECT_THAT(refusal("simulate", {"run.optimizer=adamw", "schedule.fill=evaluation", "cluster.block_times=", "layout.pipeline=2", "layout.tensor=2"}),
              HasSubstr("layout.tensor: evaluation in the bubbles passes whole layers"));
  EXPECT_THAT(refusal("simulate", {"run.optimizer.refresh_steps=2"}),
              HasSubstr("run.optimizer.refresh_steps"));
  EXPECT_THAT(
      refusal("simulate", {"schedule.micro_batch=3", "schedule.global_batch=12"}),
      HasSubstr("cluster.block_times: the block table bert-base-p100 has no row for micro-batch 3"));
  EXPECT_THAT(refusal("simulate", {"layout.pipeline=2", "layout.tensor=2"}),
              HasSubstr("layout.tensor: K-FAC"));
  EXPECT_THAT(refusal("simulate", {"layout.pipeline=2", "layout.zero=1", "schedule.global_batch=256"}),
              HasSubstr("layout.zero: K-FAC"));
  EXPECT_THAT(refusal("execute", {}), HasSubstr("run.data is not set"));
  EXPECT_THAT(refusal("plan", {}), HasSubstr("slipway study"));
}

TEST_F(FillCommand, WithoutABubbleThereIsNoCeilingAboveWhatIsReachedWithoutFilling) {
  const auto json = summary({"layout.pipeline=1", "cluster.gpus_per_node=1"});
  EXPECT_NEAR(json["utilization_before"], 1, 1e-9);
  EXPECT_NEAR(json["utilization_ceiling"], 1, 1e-9);
}

TEST_F(FillCommand, EvaluationFillsSchedulesWithStagesInAVAndHasNoKfacModelBesideIt) {
  for (const char* schedule : {"zb-v", "dualpipe-v"}) {
    const std::vector<std::string> args{"simulate", bert, "--set", "run.optimizer=adamw", "--set",
                                        "schedule.fill=evaluation", "--set", std::string("schedule.name=") + schedule};
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    EXPECT_THAT(answer.out, testing::Not(testing::ContainsRegex("[Cc]losed form .*Osawa")));
  }
}

TEST_F(FillCommand, ABadBlockTableIsNamedWithItsLine) {
  const std::string file = path("bad.yaml");
  std::ofstream(file) << "source: test\nhidden: 768\nffn: 3072\nheads: 12\nsequence: 128\ndtype: float32\n"
                         "rows:\n  - {micro_batch: 32, forward: 1 ms}\n";
  EXPECT_THAT(refusal("simulate", {"cluster.block_times=" + file}),
              HasSubstr("bad.yaml:8: rows.0.backward"));
}

}  // namespace
}  // namespace slipway
