// slipway growth, run in this process.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "models/training/loss_dynamics.h"
#include "scenarios/commands/command_line/command.h"
#include "tests/support/growth_asked.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using Commands = CommandTest;

const std::string study = SLIPWAY_SOURCE_DIR "/scenarios/studies/lau-2024/gpt3-175b-8192xh100.yaml";

TEST_F(Commands, GrowthOfAConstantBatchIsMcCandlishsStepsTimesTheSimulatedStep) {
  const auto json = answered({"--set", "training.growth.rule=constant"});
  const LossDynamics dynamics{3, 1, 1000, 0.5, 2e6, 3, 0};
  const double least = noiseless_steps_to(dynamics, 2.5), tokens = 32 * 8192;
  const auto& first = json["rules"][0];
  EXPECT_EQ(first["name"], "batch 32 throughout");
  EXPECT_NEAR(first["target"]["steps"].get<double>(), least * (1 + 2e6 / tokens), 1);
  const Answer simulated = slipway_with({"simulate", llama_8b, "--set", "schedule.global_batch=32", "--json"});
  const double step_s = nlohmann::json::parse(simulated.out)["step_time_s"];
  EXPECT_NEAR(first["target"]["time_s"].get<double>(), first["target"]["steps"].get<double>() * step_s, 1e-6 * step_s);
  EXPECT_EQ(json["speedup"].get<double>(), 1);
}

TEST_F(Commands, GrowthByTheNormTestTakesFewerStepsAndMoreSequencesThanTheFirstBatch) {
  const auto json = answered();
  const auto &own = json["rules"][0], &first = json["rules"][1], &largest = json["rules"][2];
  EXPECT_EQ(own["name"], "norm test, eta 0.7");
  EXPECT_EQ(first["name"], "batch 32 throughout");
  EXPECT_EQ(largest["name"], "batch 512 throughout");
  EXPECT_LT(own["target"]["steps"].get<int>(), first["target"]["steps"].get<int>());
  EXPECT_GT(own["target"]["sequences"].get<double>(), first["target"]["sequences"].get<double>());
  // B·(1/η² − 1) = 244.1 · 1.041 = 254.1 sequences, rounded up to a rung.
  const double last = own["spans"].back()["batch"];
  EXPECT_GE(last, 248);
  EXPECT_LE(last, 264);
}

TEST_F(Commands, GrowthRunsEveryBatchThatItNames) {
  const auto json = answered({"--set", "schedule.name=interleaved-1f1b", "--set", "layout.pipeline=4", "--set",
                              "layout.data=2", "--set", "layout.chunks=2"});
  for (const auto& rule : json["rules"])
    for (const auto& span : rule["spans"])
      EXPECT_EQ(span["batch"].get<int>() % 2, 0) << "whole micro-batches on two replicas";
}

TEST_F(Commands, GrowthComparesOnlyRulesOfWhichItIsToldEnough) {
  EXPECT_EQ(answered()["rules"].size(), 3U);
  const auto all =
      answered({"--set", "training.growth.warmup=10000", "--set", "training.growth.stages=[{from: 5000, batch: 128}]"});
  ASSERT_EQ(all["rules"].size(), 5U);
  EXPECT_EQ(all["rules"][3]["name"], "linear warm-up");
  EXPECT_EQ(all["rules"][4]["name"], "stages");
  EXPECT_EQ(all["rules"][4]["spans"].size(), 2U);
}

TEST_F(Commands, GrowthWithTokensEndsThereAndTellsTheLoss) {
  const auto json = answered({"--set", "run.tokens=20 M", "--set", "training.target_loss="});
  EXPECT_FALSE(json.contains("time_to_target_s"));
  const double sequences = json["rules"][1]["end"]["sequences"];
  EXPECT_GE(sequences, 20e6 / 8192);
  EXPECT_LT(sequences, 20e6 / 8192 + 32);
  EXPECT_LT(json["rules"][1]["end"]["loss"].get<double>(), json["rules"][2]["end"]["loss"].get<double>())
      << "of the same tokens small batches make more";
}

TEST_F(Commands, GrowthInWordsAnswersFirstAndSaysWhereNumbersComeFrom) {
  const Answer words = slipway_with(asked());
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_LT(words.out.find("Loss 2.5 after"), words.out.find("batch from"));
  EXPECT_THAT(words.out, HasSubstr("times as fast as batch 32 throughout"));
  EXPECT_THAT(words.out, HasSubstr("of unknown origin (training.source)"));
  EXPECT_THAT(words.out, HasSubstr("these steps measure the norms of the norm test"));
  EXPECT_THAT(words.out, HasSubstr("No trainer is named (cluster.trainer): priced as generic trains"));
  const Answer again = slipway_with(asked());
  EXPECT_EQ(words.out, again.out);
  EXPECT_THAT(slipway_with(asked({"--set", "training.source=my runs"})).out,
              HasSubstr("Loss and noise scale: my runs"));
}

TEST_F(Commands, GrowthByTwoRulesThatAreTheSameIsAsFast) {
  const Answer words = slipway_with(
      asked({"--set", "training.growth.rule=stages", "--set", "training.growth.stages=[{from: 1000000, batch: 512}]"}));
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_THAT(words.out, HasSubstr("; as fast as batch 32 throughout ("));
  EXPECT_THAT(words.out, HasSubstr("), with as many sequences."));
  EXPECT_THAT(words.out, HasSubstr("; noise scale constant;"));
}

// The norm test's steps have tasks that other rules do not have.
TEST_F(Commands, GrowthTimesARuleAlikeWhicheverRuleTheScenarioNames) {
  const auto rules_of = [&](const std::string& rule) {
    const Answer answer =
        slipway_with({"growth", study, "--rungs", "2", "--json", "--set", "training.growth.rule=" + rule});
    EXPECT_EQ(answer.status, status_done) << answer.err;
    std::map<std::string, double> seconds;
    const auto json = nlohmann::json::parse(answer.out);
    for (const auto& each : json["rules"]) seconds[each["name"]] = each["end"]["time_s"];
    EXPECT_NE(json["rungs"][0]["step_time_s"], json["other_rungs"][0]["step_time_s"]);
    return seconds;
  };
  const auto by_norms = rules_of("norm-test");
  EXPECT_EQ(by_norms.size(), 5U);
  EXPECT_EQ(rules_of("constant"), by_norms);
  EXPECT_EQ(rules_of("stages"), by_norms);
}

TEST_F(Commands, GrowthWithoutNoiseRefusesWithTheRemedyInsteadOfInventing) {
  const Answer answer = slipway_with({"growth", llama_8b, "--set", "training.growth={rule: constant, largest: 1024}"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.out, IsEmpty());
  EXPECT_THAT(answer.err, HasSubstr("training.noise.scale"));
  EXPECT_THAT(answer.err, HasSubstr("slipway growth --fit CURVES.csv"));
  EXPECT_THAT(slipway_with({"growth", llama_8b}).err, HasSubstr("training.growth.rule is missing"));
  EXPECT_THAT(slipway_with(asked({"--set", "training.target_loss="})).err,
              HasSubstr("run.tokens, training.target_loss are missing"));
  EXPECT_THAT(slipway_with(asked({"--set", "training.growth.eta="})).err, HasSubstr("training.growth.eta is missing"));
}

TEST_F(Commands, PlanFindsOnlyLayoutsThatCanRunEveryBatchOfTheGrowth) {
  const Answer answer = slipway_with(
      {"plan", llama_8b, "--set", "cluster.nodes=2", "--set", "layout={tensor: 8}", "--set", "schedule.global_batch=32",
       "--set", "training.growth={rule: norm-test, largest: 36, eta: 0.2}", "-o", path("best.yaml")});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const Answer shown = slipway_with({"simulate", path("best.yaml"), "--json"});
  EXPECT_EQ(shown.status, status_done) << shown.err;
}

TEST_F(Commands, CommandsThatKeepTheBatchSaySoWhereItIsToGrow) {
  EXPECT_THAT(slipway_with({"simulate", llama_8b, "--set", "run.tokens=1 G"}).out,
              HasSubstr("Training on 1.00 G tokens takes"));
  const std::vector<std::string> growing{
      "--set", "run.tokens=1 G",           "--set", "cluster.mtbf_per_node=50000 h",
      "--set", "run.checkpoint_cost=30 s", "--set", "training.growth={rule: constant, largest: 1024}"};
  for (const char* command : {"simulate", "goodput"}) {
    std::vector<std::string> args{command, llama_8b};
    args.insert(args.end(), growing.begin(), growing.end());
    const Answer answer = slipway_with(args);
    EXPECT_THAT(answer.out, HasSubstr("Training on 1.00 G tokens with batch 32 throughout takes")) << answer.err;
  }
}

TEST_F(Commands, GrowthOfTheStudyTakesTheTokensThatItsFirstBatchTook) {
  const Answer answer = slipway_with({"growth", study, "--rungs", "3", "--json"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  EXPECT_THAT(json["source"].get<std::string>(), HasSubstr("MLPerf Training"));
  // Median of 24 published runs with 2,048 sequences a step, each on the line between two of its losses.
  const auto& first = json["rules"][1];
  EXPECT_EQ(first["name"], "batch 2,048 throughout");
  EXPECT_NEAR(first["target"]["sequences"].get<double>() * 2048 / 1.188e9, 1, 0.02);
}

}  // namespace
}  // namespace slipway::test
