// slipway growth, run in this process.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/growth.h"
#include "scenarios/json_summary.h"
#include "tests/command_test.h"

namespace slipway {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Commands = CommandTest;

const std::string llama = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";
const std::string study = SLIPWAY_SOURCE_DIR "/scenarios/lau-2024/gpt3-175b-8192xh100.yaml";

// A noise scale that stays, so that closed forms hold.
std::vector<std::string> asked(std::vector<std::string> more = {}) {
  std::vector<std::string> args{"growth", llama};
  for (const char* setting :
       {"schedule.global_batch=32", "run.tokens=", "training.target_loss=2.5",
        "training.growth.rule=norm-test", "training.growth.largest=512", "training.growth.eta=0.7",
        "training.loss={start: 3, floor: 1, offset: 1000, exponent: 0.5}",
        "training.noise={scale: 2 M, at_loss: 3, exponent: 0}"})
    args.insert(args.end(), {"--set", setting});
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

nlohmann::json answered(std::vector<std::string> more = {}) {
  more.push_back("--json");
  const Answer answer = slipway_with(asked(more));
  EXPECT_EQ(answer.status, status_done) << answer.err;
  return answer.status == status_done ? nlohmann::json::parse(answer.out) : nlohmann::json();
}

TEST_F(Commands, GrowthOfAConstantBatchIsMcCandlishsStepsTimesTheSimulatedStep) {
  const auto json = answered({"--set", "training.growth.rule=constant"});
  const LossDynamics dynamics{3, 1, 1000, 0.5, 2e6, 3, 0};
  const double least = noiseless_steps_to(dynamics, 2.5), tokens = 32 * 8192;
  const auto& first = json["rules"][0];
  EXPECT_EQ(first["name"], "batch 32 throughout");
  EXPECT_NEAR(first["target"]["steps"].get<double>(), least * (1 + 2e6 / tokens), 1);
  const Answer simulated = slipway_with({"simulate", llama, "--set", "schedule.global_batch=32", "--json"});
  const double step_s = nlohmann::json::parse(simulated.out)["step_time_s"];
  EXPECT_NEAR(first["target"]["time_s"].get<double>(), first["target"]["steps"].get<double>() * step_s,
              1e-6 * step_s);
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
  const auto json = answered({"--set", "schedule.name=interleaved-1f1b", "--set", "layout.pipeline=4",
                              "--set", "layout.data=2", "--set", "layout.chunks=2"});
  for (const auto& rule : json["rules"])
    for (const auto& span : rule["spans"])
      EXPECT_EQ(span["batch"].get<int>() % (2 * 4), 0)
          << "whole rounds of four micro-batches on two replicas";
}

TEST_F(Commands, GrowthComparesOnlyRulesOfWhichItIsToldEnough) {
  EXPECT_EQ(answered()["rules"].size(), 3U);
  const auto all = answered({"--set", "training.growth.warmup=10000", "--set",
                             "training.growth.stages=[{from: 5000, batch: 128}]"});
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

TEST_F(Commands, GrowthWithANoiseScaleThatIsNotKnownTellsARange) {
  const auto json = answered({"--set", "training.noise.least=1 M", "--set", "training.noise.most=8 M"});
  const auto &first = json["rules"][1], &largest = json["rules"][2];
  // (offset)·(scale + 32 sequences) stays, and a step of 512 sequences is 1/(1 + scale/batch) of a
  // noiseless one.
  const double small = 32 * 8192, large = 512 * 8192, noiseless = 1000 * (std::pow(2 / 1.5, 2) - 1);
  const auto steps = [&](double scale) {
    return noiseless * (2e6 + small) / (scale + small) * (1 + scale / large);
  };
  const double step_s =
      largest["target"]["time_s"].get<double>() / largest["target"]["steps"].get<double>();
  EXPECT_NEAR(largest["target"]["steps"].get<double>(), steps(2e6), 1);
  EXPECT_NEAR(largest["target_range_s"][0].get<double>() / step_s, steps(8e6), 1);
  EXPECT_NEAR(largest["target_range_s"][1].get<double>() / step_s, steps(1e6), 1);
  EXPECT_TRUE(largest["always_reached"].get<bool>());
  // The first batch's own curve is what is known.
  EXPECT_NEAR(first["target_range_s"][0].get<double>() / first["target_range_s"][1].get<double>(), 1, 0.01);
}

TEST_F(Commands, GrowthInWordsAnswersFirstAndSaysWhereNumbersComeFrom) {
  const Answer words = slipway_with(asked());
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_LT(words.out.find("Loss 2.5 after"), words.out.find("batch from"));
  EXPECT_THAT(words.out, HasSubstr("times as fast as batch 32 throughout"));
  EXPECT_THAT(words.out, HasSubstr("not said where they come from (training.source)"));
  EXPECT_THAT(words.out, HasSubstr("`slipway execute` does not have them yet"));
  EXPECT_THAT(words.out, HasSubstr("No trainer's pace"));
  const Answer again = slipway_with(asked());
  EXPECT_EQ(words.out, again.out);
  EXPECT_THAT(slipway_with(asked({"--set", "training.source=my runs"})).out,
              HasSubstr("Loss and noise scale: my runs"));
}

TEST_F(Commands, GrowthWhoseTargetNotEveryNoiseScaleReachesSaysSo) {
  // Batches of 512 get to 2.5 in 1,150 steps, 4.8 G tokens, by 2 M tokens of noise; by 10 K they take as
  // many steps as batches of 32 do, 16 times the tokens.
  const std::vector<std::string> uncertain{
      "--set", "run.tokens=5 G", "--set", "training.growth.eta=0.05", "--set", "training.noise.least=10 K"};
  const Answer words = slipway_with(asked(uncertain));
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_THAT(words.out, HasSubstr(" (or not within 5.00 G tokens)"));
  EXPECT_THAT(words.out, HasSubstr("In brackets: with noise scales of 10,000 and 2.00 M tokens"));
}

TEST_F(Commands, GrowthWhoseTargetOnlyAnotherNoiseScaleReachesSaysSo) {
  // 4.8 G tokens of batches of 512 by 2 M tokens of noise; by 8 M 2.3 G.
  const Answer words = slipway_with(asked({"--set", "run.tokens=3 G", "--set", "training.growth.eta=0.05",
                                           "--set", "training.noise.most=8 M"}));
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_THAT(words.out, HasSubstr("Loss 2.5 is not reached"));
  EXPECT_THAT(words.out, HasSubstr("; with another noise scale that may be, after "));
  EXPECT_THAT(words.out, HasSubstr("not reached (or after "));
}

TEST_F(Commands, GrowthWithoutATargetSpeaksOfNoBrackets) {
  const Answer words = slipway_with(asked({"--set", "run.tokens=20 M", "--set",
                                           "training.target_loss=", "--set", "training.noise.least=10 K"}));
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_THAT(words.out, Not(HasSubstr("In brackets")));
}

TEST_F(Commands, GrowthByTwoRulesThatAreTheSameIsAsFast) {
  const Answer words = slipway_with(asked({"--set", "training.growth.eta=1"}));
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_THAT(words.out, HasSubstr("; as fast as batch 32 throughout ("));
  EXPECT_THAT(words.out, HasSubstr("), with as many sequences."));
  EXPECT_THAT(words.out, HasSubstr("; noise scale constant;"));
}

TEST_F(Commands, GrowthSaysBelowTheAnswerWhichBatchesDoNotFit) {
  const std::vector<std::string> whole{"--set", "layout={tensor: 2, pipeline: 1, data: 32}"};
  const Answer words = slipway_with(asked(whole));
  EXPECT_THAT(words.out, testing::ContainsRegex("more sequences\\.\nNone of these batches fits in memory"))
      << words.out << words.err;
  EXPECT_THAT(slipway_with(asked()).out, Not(HasSubstr("in memory")));
}

TEST_F(Commands, GrowthSaysWhatLiesOutsideOfTheFittedCurves) {
  EXPECT_THAT(answered()["outside_curves"], IsEmpty()) << "nothing is known of them";
  const std::vector<std::string> narrow{"--set", "training.fitted={batches: [32, 256], lowest_loss: 2.6}"};
  const auto outside = answered(narrow)["outside_curves"];
  ASSERT_EQ(outside.size(), 2U);
  EXPECT_EQ(outside[0]["here"], "batch 512");
  EXPECT_EQ(outside[0]["fitted"], "32 to 256");
  EXPECT_EQ(outside[1]["fitted"], "down to 2.6");
  EXPECT_THAT(slipway_with(asked(narrow)).out,
              HasSubstr("Outside the runs that loss and noise scale were fitted to: batch 512 (fitted: 32 "
                        "to 256), loss 2.5"));
  EXPECT_THAT(
      answered({"--set", "training.fitted={batches: [32, 512], lowest_loss: 2.5}"})["outside_curves"],
      IsEmpty());
}

TEST_F(Commands, GrowthWithoutNoiseRefusesWithTheRemedyInsteadOfInventing) {
  const Answer answer =
      slipway_with({"growth", llama, "--set", "training.growth={rule: constant, largest: 1024}"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.out, IsEmpty());
  EXPECT_THAT(answer.err, HasSubstr("training.noise.scale"));
  EXPECT_THAT(answer.err, HasSubstr("slipway growth --fit CURVES.csv"));
  EXPECT_THAT(slipway_with({"growth", llama}).err, HasSubstr("training.growth.rule is missing"));
  EXPECT_THAT(slipway_with(asked({"--set", "training.target_loss="})).err,
              HasSubstr("run.tokens, training.target_loss are missing"));
  EXPECT_THAT(slipway_with(asked({"--set", "training.growth.eta="})).err,
              HasSubstr("training.growth.eta is missing"));
}

TEST_F(Commands, GrowthThatWouldNeverEndIsRefused) {
  const Answer answer = slipway_with(asked({"--set", "training.target_loss=1.000001"}));
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err,
              HasSubstr("by this scenario's rule (norm test, eta 0.7) the end is more than 50.0 M steps "
                        "away; give a nearer end"));
}

TEST_F(Commands, GrowthTellsOfARuleThatNeedsTooManyStepsAndAnswersForTheOthers) {
  // Steps of 32 sequences are 1/3,815 of a noiseless one, of 512 1/239.
  const Answer words = slipway_with(
      asked({"--set", "training.growth.rule=stages", "--set",
             "training.growth.stages=[{from: 1, batch: 512}]", "--set", "training.growth.eta=", "--set",
             "training.loss={start: 3, floor: 1, offset: 30000, exponent: 0.5}", "--set",
             "training.noise={scale: 1 G, at_loss: 3, exponent: 0}"}));
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_THAT(words.out, HasSubstr("; batch 32 throughout takes more than 50.0 M steps.\n"));
  EXPECT_THAT(words.out, testing::ContainsRegex("batch 32 throughout +- +- +more than 50\\.0 M steps"));
}

TEST_F(Commands, PlanFindsOnlyLayoutsThatCanRunEveryBatchOfTheGrowth) {
  const Answer answer =
      slipway_with({"plan", llama, "--set", "cluster.nodes=2", "--set", "layout={tensor: 8}", "--set",
                    "schedule.global_batch=32", "--set",
                    "training.growth={rule: norm-test, largest: 36, eta: 0.2}", "-o", path("best.yaml")});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const Answer shown = slipway_with({"simulate", path("best.yaml"), "--json"});
  EXPECT_EQ(shown.status, status_done) << shown.err;
}

TEST_F(Commands, GrowthIsNotExecutedYetAndExecuteSaysSo) {
  const Answer answer =
      slipway_with({"execute", SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml", "--out",
                    path("run"), "--set", "training.growth.rule=constant"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err,
              HasSubstr("training.growth is simulated (`slipway growth`) and not executed yet"));
}

TEST_F(Commands, CommandsThatKeepTheBatchSaySoWhereItIsToGrow) {
  EXPECT_THAT(slipway_with({"simulate", llama, "--set", "run.tokens=1 G"}).out,
              HasSubstr("Training on 1.00 G tokens takes"));
  const std::vector<std::string> growing{
      "--set", "run.tokens=1 G",           "--set", "cluster.mtbf_per_node=50000 h",
      "--set", "run.checkpoint_cost=30 s", "--set", "training.growth={rule: constant, largest: 1024}"};
  for (const char* command : {"simulate", "goodput"}) {
    std::vector<std::string> args{command, llama};
    args.insert(args.end(), growing.begin(), growing.end());
    const Answer answer = slipway_with(args);
    EXPECT_THAT(answer.out, HasSubstr("Training on 1.00 G tokens with batch 32 throughout takes"))
        << answer.err;
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
}  // namespace slipway
