// The schedule of the learning rate in a scenario: what it means unsaid, and one clear error for what
// cannot be.
#include <gmock/gmock.h>

#include "tests/scenario_file.h"

namespace slipway {
namespace {

using testing::HasSubstr;

struct Case {
  const char* title;
  std::vector<std::string> keys;  // of run.optimizer
  const char *key, *wrong, *allowed, *remedy;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.title; }

class WrongRate : public testing::TestWithParam<Case> {};

TEST_P(WrongRate, IsOneErrorWithKeyAllowedAndRemedy) {
  const Case& test = GetParam();
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  std::vector<std::string> overrides;
  for (const std::string& key : test.keys) overrides.push_back("run.optimizer." + key);
  const LoadResult result = folder.load(sound_scenario(), overrides);
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  const ScenarioError& error = result.errors[0];
  EXPECT_EQ(error.key, std::string("run.optimizer.") + test.key);
  EXPECT_THAT(error.message, AllOf(HasSubstr(test.wrong), HasSubstr(test.allowed)));
  EXPECT_THAT(error.remedy, HasSubstr(test.remedy));
}

const char* const decays = "set run.optimizer.lr_decay_style to linear or cosine";
const Case cases[] = {
    {"NegativeWarmUp",
     {"lr_warmup_samples=-1"},
     "lr_warmup_samples",
     "-1 is out of range",
     "of at least 0",
     ""},
    {"WarmUpLongerThanTheDecay",
     {"lr_warmup_samples=5000000001", "lr_decay_style=linear", "lr_decay_samples=5000000000"},
     "lr_warmup_samples",
     "longer than the decay, which ends after 5000000000 (lr_decay_samples)",
     "up to 5000000000",
     "raise run.optimizer.lr_decay_samples"},
    {"NegativeLeastRate",
     {"lr_decay_style=linear", "min_lr=-0.2"},
     "min_lr",
     "-0.2 is out of range",
     "of at least 0",
     ""},
    {"LeastRateAboveTheRate",
     {"lr=0.1", "lr_decay_style=linear", "min_lr=0.2"},
     "min_lr",
     "0.2 is above the learning rate, 0.1",
     "up to it",
     "raise run.lr"},
    {"LeastRateOfAConstantOne",
     {"min_lr=1e-5"},
     "min_lr",
     "lr_decay_style is constant",
     "linear, cosine",
     decays},
    {"EndOfAConstantRate",
     {"lr_decay_samples=40"},
     "lr_decay_samples",
     "lr_decay_style is constant",
     "linear, cosine",
     decays},
    {"NoDecay",
     {"lr_decay_style=linear", "lr_decay_samples=0"},
     "lr_decay_samples",
     "0 is out of range",
     "of at least 1",
     ""},
    {"UnknownDecay",
     {"lr_decay_style=cosinus"},
     "lr_decay_style",
     "'cosinus' is not known",
     "constant, linear, cosine",
     "did you mean 'cosine'?"},
};
INSTANTIATE_TEST_SUITE_P(Scenario, WrongRate, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.title); });

LearningRateSchedule schedule_with(const std::vector<std::string>& overrides) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  const LoadResult result = folder.load(sound_scenario(), overrides);
  EXPECT_EQ(describe(result.errors), "");
  return result.scenario.run.optimizer.lr_schedule;
}

TEST(ScenarioRate, IsConstantUnlessTheScenarioSaysOtherwise) {
  EXPECT_TRUE(schedule_with({}).is_constant());
  EXPECT_TRUE(schedule_with({"run.optimizer.min_lr=0"}).is_constant());
  EXPECT_FALSE(schedule_with({"run.optimizer.lr_warmup_samples=16"}).is_constant());
}

// `execute` alone has to know how long the training is: others plan with the scenario, or try a few steps
// of it.
TEST(ScenarioRate, MayWarmUpForLongerThanRunSteps) {
  EXPECT_EQ(schedule_with({"run.optimizer.lr_warmup_samples=4900"}).warmup_samples, 4900);
  EXPECT_EQ(schedule_with({"run.optimizer.lr_warmup_samples=4900", "run.optimizer.lr_decay_style=linear"})
                .warmup_samples,
            4900);
}

TEST(ScenarioRate, DecaysToTheEndOfTheTrainingWhateverItsBatchesAre) {
  EXPECT_EQ(schedule_with({"run.optimizer.lr_decay_style=cosine"}).decay_samples, 0);
}

}  // namespace
}  // namespace slipway
