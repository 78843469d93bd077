// Predictions against what was measured beside them, by hand.
#include "scenarios/confirmation.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace slipway {
namespace {

using testing::HasSubstr;

TEST(Confirmation, BothPredictionsStartFromTheBaselinesMedianStep) {
  const Confirmation result =
      confirmation_of({"base", 2.0, {4.4, 3.6, 4.0}, 10}, {{"wide", 3.0, {5.0, 7.0}, 20}});
  ASSERT_EQ(result.cases.size(), 1u);
  EXPECT_DOUBLE_EQ(result.baseline_measured_s, 4.0);
  EXPECT_DOUBLE_EQ(result.cases[0].simulated_s, 3.0);
  EXPECT_DOUBLE_EQ(result.cases[0].predicted_s, 6.0);  // 4 × 3/2
  EXPECT_DOUBLE_EQ(result.cases[0].scaled_s, 8.0);     // 4 × 20/10
  EXPECT_DOUBLE_EQ(result.cases[0].measured_s, 6.0);   // the mean of two
}

TEST(Confirmation, AMachineThatIsTwiceAsSlowNowChangesNoPredictedError) {
  const RunCase baseline{"base", 1.0, {2.0}, 1};
  const Confirmation result = confirmation_of(baseline, {{"a", 1.5, {3.0}, 1}, {"b", 0.5, {1.1}, 1}});
  EXPECT_DOUBLE_EQ(result.cases[0].predicted_s, result.cases[0].measured_s);
  EXPECT_THAT(confirmation_text("base", result), HasSubstr("predicted = simulated × 2.000"));
}

TEST(Confirmation, TheLastLineIsTheMedianCasesOwn) {
  const RunCase baseline{"base", 1.0, {1.0}, 1};
  // Off by 50, 10, 0 and 20 %: the middle two are b and d, the larger one is d.
  const std::string text = confirmation_text("base", confirmation_of(baseline, {{"a", 1.5, {1.0}, 1},
                                                                                {"b", 1.1, {1.0}, 1},
                                                                                {"c", 1.0, {1.0}, 1},
                                                                                {"d", 0.8, {1.0}, 1}}));
  EXPECT_TRUE(text.ends_with("predicted 0.800 s, measured 1.000 s, off by 20.0 %\n")) << text;
  EXPECT_THAT(
      text, HasSubstr("Median error over 4 unseen cases, the larger of the middle two: 20.0 %, of \"d\""));
}

TEST(Confirmation, TheRangeOfTheRoundsIsToldBesideTheirMedianAndOfOneRoundNothingIs) {
  const Confirmation three = confirmation_of({"base", 1.0, {1.0, 1.2, 0.9}, 1}, {{"a", 1.0, {2.0, 1.0, 1.9}, 1}});
  EXPECT_DOUBLE_EQ(three.baseline_spread.value(), 0.15);           // (1.2 - 0.9) / 2 / 1.0
  EXPECT_DOUBLE_EQ(three.cases[0].spread.value(), 0.5 / 1.9);      // (2 - 1) / 2 / 1.9
  const std::string text = confirmation_text("base", three);
  EXPECT_THAT(text, HasSubstr("1.900 s ± 26 %"));
  EXPECT_THAT(text, HasSubstr("1.000 s ± 15 % (simulated"));
  EXPECT_THAT(text, HasSubstr("median of 3 rounds"));
  const Confirmation once = confirmation_of({"base", 1.0, {1.0}, 1}, {{"a", 1.0, {2.0}, 1}});
  EXPECT_FALSE(once.baseline_spread.has_value());
  EXPECT_THAT(confirmation_text("base", once), testing::Not(HasSubstr("±")));
  EXPECT_TRUE(nlohmann::json::parse(confirmation_json("base", once))["cases"][0]["spread"].is_null());
}

}  // namespace
}  // namespace slipway
