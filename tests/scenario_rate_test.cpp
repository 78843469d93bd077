// The schedule of the learning rate in a scenario: what it means unsaid, one clear error for what cannot
// be, and what `execute` says of it.
#include <gmock/gmock.h>

#include "scenarios/commands/command.h"
#include "scenarios/execution/learning_rate.h"
#include "tests/scenario_file.h"

namespace slipway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

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
     "lr_warmup_samples: 0"},
    {"RateBeyondCounting",
     {"lr=1e308"},
     "lr",
     "1e308 is out of range (at most 1e+300)",
     "of at least 0",
     "lr: 0"},
    {"WarmUpBeyondCounting",
     {"lr_warmup_samples=99999999999999999999"},
     "lr_warmup_samples",
     "99999999999999999999 is out of range (at most 9223372036854774784)",
     "of at least 0",
     "lr_warmup_samples: 0"},
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
     "min_lr: 0"},
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
     "lr_decay_samples: 1"},
    {"DampingOfAdamW",
     {"damping=0.1"},
     "damping",
     "of K-FAC's inverses, but run.optimizer is adamw",
     "with kfac",
     "set run.optimizer.name to kfac"},
    {"UnknownDecay",
     {"lr_decay_style=cosinus"},
     "lr_decay_style",
     "'cosinus' is not known",
     "constant, linear, cosine",
     "did you mean 'cosine'?"},
};
INSTANTIATE_TEST_SUITE_P(Scenario, WrongRate, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.title); });

Scenario scenario_with(const std::vector<std::string>& overrides) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  const LoadResult result = folder.load(sound_scenario(), overrides);
  EXPECT_EQ(describe(result.errors), "");
  return result.scenario;
}
LearningRateSchedule schedule_with(const std::vector<std::string>& overrides) {
  return scenario_with(overrides).run.optimizer.lr_schedule;
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

// A warm-up that leads straight to the least rate, and a decay that changes nothing.
TEST(ScenarioRate, MayWarmUpToTheEndOfTheDecayAndDecayToTheRateItself) {
  const LearningRateSchedule schedule = schedule_with(
      {"run.optimizer.lr=0.1", "run.optimizer.min_lr=0.1", "run.optimizer.lr_decay_style=linear",
       "run.optimizer.lr_warmup_samples=40", "run.optimizer.lr_decay_samples=40"});
  EXPECT_EQ(schedule.warmup_samples, schedule.decay_samples);
  EXPECT_EQ(schedule.least, 0.1);
}

// 3 steps of 16; from a checkpoint of 20 samples after one step, 20 + 2 x 16.
TEST(ExecutedRate, MayWarmUpForTheWholeTrainingAndNoLonger) {
  const std::string decay = "run.optimizer.lr_decay_style=cosine",
                    warmup = "run.optimizer.lr_warmup_samples=";
  const Resumption resumed{.checkpoint = "c", .done = 1, .samples = 20};
  EXPECT_NO_THROW(refuse_warmup_beyond_end(scenario_with({decay, warmup + "48"}), {}));
  EXPECT_NO_THROW(refuse_warmup_beyond_end(scenario_with({decay, warmup + "52"}), resumed));
  EXPECT_NO_THROW(refuse_warmup_beyond_end(scenario_with({warmup + "49"}), {}))
      << "a constant rate has no end";
  EXPECT_NO_THROW(refuse_warmup_beyond_end(
      scenario_with({decay, warmup + "49", "run.optimizer.lr_decay_samples=50"}), {}));
  EXPECT_THROW(refuse_warmup_beyond_end(scenario_with({decay, warmup + "53"}), resumed), UsageError);
  EXPECT_THAT(
      [&] {
        refuse_warmup_beyond_end(scenario_with({decay, warmup + "49"}), {});
      },
      ThrowsMessage<UsageError>(HasSubstr("49 sequences is longer than the training")));
}

TEST(ExecutedRate, ThatWarmsUpTooLongIsRefusedWithAllDigits) {
  const Scenario scenario = scenario_with({"run.optimizer.lr_decay_style=cosine", "run.steps=1500",
                                           "run.optimizer.lr_warmup_samples=123456789"});
  EXPECT_THAT([&] { refuse_warmup_beyond_end(scenario, {}); },
              ThrowsMessage<UsageError>(HasSubstr("the warm-up of 123456789 sequences is longer than the "
                                                  "training, with which the decay ends: 24000 "
                                                  "(1500 steps x schedule.global_batch 16)")));
}

TEST(ExecutedRate, IsToldAsTheScenarioMeansIt) {
  const auto told = [](const LearningRateSchedule& schedule) {
    return rate_text({.lr = 0.003, .lr_schedule = schedule});
  };
  EXPECT_EQ(told({.warmup_samples = 64}), "learning rate: 0.003 after a warm-up of 64 sequences");
  EXPECT_EQ(told({.decay = DecayStyle::linear}),
            "learning rate: 0.003, linear decay to 0 over the training");
  EXPECT_EQ(told({.warmup_samples = 1, .decay = DecayStyle::cosine, .least = 3e-4}),
            "learning rate: 0.003 after a warm-up of 1 sequence, cosine decay to 0.0003 over the training");
  EXPECT_EQ(told({.decay = DecayStyle::cosine, .decay_samples = 160, .least = 3e-4}),
            "learning rate: 0.003, cosine decay to 0.0003 after 160 sequences");
}

// A checkpoint does not know where its own run would have ended.
TEST(ExecutedRate, OfAResumedRunSaysWhereItEndsUnlessTheScenarioDoes) {
  const Resumption resumed{.checkpoint = "c", .done = 1, .samples = 16};
  const std::string decay = "run.optimizer.lr_decay_style=linear";
  const auto unsaid = scenario_with({decay}).run;
  EXPECT_THAT(rate_notes(unsaid, resumed),
              ElementsAre(AllOf(HasSubstr("decays to the end of this start, step 3"),
                                HasSubstr("lr_decay_samples"))));
  EXPECT_THAT(rate_notes(unsaid, {}), IsEmpty());
  EXPECT_THAT(rate_notes(scenario_with({decay, "run.optimizer.lr_decay_samples=48"}).run, resumed),
              IsEmpty());
  EXPECT_THAT(rate_notes(scenario_with({"run.optimizer.lr_warmup_samples=48"}).run, resumed), IsEmpty());
}

}  // namespace
}  // namespace slipway
