// Output of slipway growth where a noise scale is unknown, or an end, memory or the fitted curves are out of reach.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/commands/growth/comparison.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "tests/support/growth_asked.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Commands = CommandTest;

TEST_F(Commands, GrowthWithANoiseScaleThatIsNotKnownTellsARange) {
  const auto json = answered({"--set", "training.noise.least=1 M", "--set", "training.noise.most=8 M"});
  const auto &first = json["rules"][1], &largest = json["rules"][2];
  // (offset)·(scale + 32 sequences) is constant, and a step of 512 sequences is 1/(1 + scale/batch) of a noiseless one.
  const double small = 32 * 8192, large = 512 * 8192, noiseless = 1000 * (std::pow(2 / 1.5, 2) - 1);
  const auto steps = [&](double scale) { return noiseless * (2e6 + small) / (scale + small) * (1 + scale / large); };
  const double step_s = largest["target"]["time_s"].get<double>() / largest["target"]["steps"].get<double>();
  EXPECT_NEAR(largest["target"]["steps"].get<double>(), steps(2e6), 1);
  EXPECT_NEAR(largest["target_range_s"][0].get<double>() / step_s, steps(8e6), 1);
  EXPECT_NEAR(largest["target_range_s"][1].get<double>() / step_s, steps(1e6), 1);
  EXPECT_TRUE(largest["always_reached"].get<bool>());
  // Only the first batch's own curve is known.
  EXPECT_NEAR(first["target_range_s"][0].get<double>() / first["target_range_s"][1].get<double>(), 1, 0.01);
}

TEST_F(Commands, GrowthWhoseTargetNotEveryNoiseScaleReachesSaysSo) {
  // With 2 M tokens of noise, batches of 512 reach 2.5 in 1,150 steps, 4.8 G tokens. With 10 K they take as many steps
  // as batches of 32, so 16 times the tokens.
  const std::vector<std::string> uncertain{"--set", "run.tokens=5 G",           "--set", "training.growth.eta=0.05",
                                           "--set", "training.noise.least=10 K"};
  const Answer words = slipway_with(asked(uncertain));
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_THAT(words.out, HasSubstr(" (or not within 5.00 G tokens)"));
  EXPECT_THAT(words.out, HasSubstr("In brackets: with noise scales of 10,000 and 2.00 M tokens"));
}

TEST_F(Commands, GrowthWhoseTargetOnlyAnotherNoiseScaleReachesSaysSo) {
  // 4.8 G tokens of batches of 512 by 2 M tokens of noise; by 8 M 2.3 G.
  const Answer words = slipway_with(
      asked({"--set", "run.tokens=3 G", "--set", "training.growth.eta=0.05", "--set", "training.noise.most=8 M"}));
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_THAT(words.out, HasSubstr("Loss 2.5 is not reached"));
  EXPECT_THAT(words.out, HasSubstr("; with another noise scale in the range, after "));
  EXPECT_THAT(words.out, HasSubstr("not reached (or after "));
}

TEST_F(Commands, GrowthWithoutATargetSpeaksOfNoBrackets) {
  const Answer words = slipway_with(
      asked({"--set", "run.tokens=20 M", "--set", "training.target_loss=", "--set", "training.noise.least=10 K"}));
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_THAT(words.out, Not(HasSubstr("In brackets")));
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
  EXPECT_THAT(answered({"--set", "training.fitted={batches: [32, 512], lowest_loss: 2.5}"})["outside_curves"],
              IsEmpty());
}

TEST_F(Commands, GrowthThatWouldNeverEndIsRefused) {
  const Answer answer = slipway_with(asked({"--set", "training.target_loss=1.000001"}));
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("by this scenario's rule (norm test, eta 0.7) the end is more than 50.0 M steps "
                                    "away; give a nearer end"));
}

TEST_F(Commands, GrowthTellsOfARuleThatNeedsTooManyStepsAndAnswersForTheOthers) {
  // Steps of 32 sequences are 1/3,815 of a noiseless one, of 512 1/239.
  const Answer words = slipway_with(
      asked({"--set", "training.growth.rule=stages", "--set", "training.growth.stages=[{from: 1, batch: 512}]", "--set",
             "training.growth.eta=", "--set", "training.loss={start: 3, floor: 1, offset: 30000, exponent: 0.5}",
             "--set", "training.noise={scale: 1 G, at_loss: 3, exponent: 0}"}));
  EXPECT_EQ(words.status, status_done) << words.err;
  EXPECT_THAT(words.out, HasSubstr("; batch 32 throughout takes more than 50.0 M steps.\n"));
  EXPECT_THAT(words.out, testing::ContainsRegex("batch 32 throughout +- +- +more than 50\\.0 M steps"));
}

TEST_F(Commands, GrowthReportsAShareOfAllItsWorkThatNeverFalls) {
  // 297,000 steps of 32 sequences by the first batch throughout, and more by other noise scales.
  auto settings = asked({"--set", "training.loss={start: 3, floor: 1, offset: 1000, exponent: 0.5}", "--set",
                         "training.noise={scale: 100 M, at_loss: 3, exponent: 0, least: 90 M, most: 110 M}"});
  std::vector<std::string> overrides;
  for (std::size_t i = 3; i < settings.size(); i += 2) overrides.push_back(settings[i]);
  double last = 0;
  std::set<std::string> named;
  growth_of(checked_scenario(llama_8b, overrides), 3, [&](double share, const std::string& detail) {
    EXPECT_GE(share, last) << detail;
    EXPECT_LE(share, 1);
    last = share;
    named.insert(detail);
  });
  EXPECT_TRUE(named.contains("batch 32 throughout"));
}

}  // namespace
}  // namespace slipway::test
