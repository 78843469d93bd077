// Mistakes in `training`: one error each, with line, key, what is allowed and what to do, before anything runs.
#include <gmock/gmock.h>

#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

// On line 23 and following of the sound scenario: data 2, micro-batches of 2, so 4 sequences are a unit.
constexpr const char* training =
    "training:\n"                                                 // 23
    "  target_loss: 2.5\n"                                        // 24
    "  growth: {rule: norm-test, largest: 64, eta: 0.5}\n"        // 25
    "  loss: {start: 3, floor: 1, offset: 100, exponent: 0.5}\n"  // 26
    "  noise: {scale: 1 M, at_loss: 2.5}\n";                      // 27

struct Case {
  const char *title, *override, *key, *wrong, *remedy;
  const char* also = "run.steps=1";  // one more, valid override
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.title; }

class GrowthErrors : public testing::TestWithParam<Case> {
 protected:
  ScenarioFolder folder_;
};

TEST_P(GrowthErrors, AreToldOnceWithKeyAndRemedy) {
  folder_.write("box.yaml", test_machine());
  const LoadResult result =
      folder_.load(std::string(sound_scenario()) + training, {GetParam().override, GetParam().also});
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  EXPECT_EQ(result.errors[0].key, GetParam().key);
  EXPECT_THAT(result.errors[0].message, HasSubstr(GetParam().wrong));
  EXPECT_THAT(result.errors[0].message, HasSubstr("allowed"));
  EXPECT_THAT(result.errors[0].remedy, HasSubstr(GetParam().remedy));
}

const Case cases[] = {
    {"LargestIsNoWholeMicroBatches", "training.growth.largest=66", "training.growth.largest",
     "micro_batch 2 x data 2 = 4", "64 or 68"},
    {"LargestBelowTheFirst", "training.growth.largest=8", "training.growth.largest", "below schedule.global_batch = 16",
     "raise it"},
    {"LargestOfTooManyMicroBatches", "training.growth.largest=8000000", "training.growth.largest",
     "2000000 micro-batches", "lower it"},
    {"AStageIsNoWholeMicroBatches", "training.growth.stages=[{from: 100, batch: 33}]", "training.growth.stages.0.batch",
     "33 sequences", "32 or 36"},
    {"AStageAboveTheLargest", "training.growth.stages=[{from: 100, batch: 128}]", "training.growth.stages.0.batch",
     "above training.growth.largest", "lower it"},
    {"StagesOutOfOrder", "training.growth.stages=[{from: 100, batch: 32}, {from: 50, batch: 64}]",
     "training.growth.stages.1", "follow each other", "in order"},
    {"StagesThatShrink", "training.growth.stages=[{from: 100, batch: 64}, {from: 150, batch: 32}]",
     "training.growth.stages.1", "follow each other", "in order"},
    {"FloorAboveStart", "training.loss.start=0.5", "training.loss.floor", "below that", "lower training.loss.floor"},
    {"TargetAtTheFloor", "training.target_loss=1", "training.target_loss", "no training gets", "raise"},
    {"TargetAboveTheStart", "training.target_loss=3", "training.target_loss", "training starts", "lower"},
    {"NoiseOutsideOfItsRange", "training.noise.least=2 M", "training.noise", "least <= scale", "correct"},
    {"FittedBatchesAreNoRange", "training.fitted.batches=[2048]", "training.fitted.batches", "two ends",
     "[2048, 6144]"},
    {"UnknownRule", "training.growth.rule=norm", "training.growth.rule", "'norm' is not known", "norm-test"},
    {"ZeroEta", "training.growth.eta=0", "training.growth.eta", "out of range", "eta"},
    {"WorkInTheBubbles", "schedule.fill=evaluation", "training.growth", "placed for one batch", "remove",
     "layout.tensor=1"},
};
INSTANTIATE_TEST_SUITE_P(OfTraining, GrowthErrors, testing::ValuesIn(cases),
                         [](const auto& info) { return info.param.title; });

TEST(GrowthErrorsOfAFile, NameTheLine) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  std::string text = training;
  text.replace(text.find("largest: 64"), 11, "largest: 65");
  const LoadResult result = folder.load(std::string(sound_scenario()) + text);
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  EXPECT_EQ(result.errors[0].line, 25);
}

TEST(GrowthErrorsOfAFile, TheNormTestNeedsTwoDataParallelWorkers) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  const LoadResult result = folder.load(std::string(sound_scenario()) + training, {"layout.pipeline=4"});
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  EXPECT_EQ(result.errors[0].key, "training.growth.rule");
  EXPECT_THAT(result.errors[0].remedy, HasSubstr("layout.data to 2 or more"));
}

TEST(GrowthErrorsOfAFile, StepsOfChimeraHaveAnEvenNumberOfMicroBatches) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  // Two micro-batches of each of two replicas: 8 sequences.
  const std::vector<std::string> chimera{"schedule.name=chimera", "training.growth.largest=60"};
  const LoadResult result = folder.load(std::string(sound_scenario()) + training, chimera);
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  EXPECT_EQ(result.errors[0].key, "training.growth.largest");
  EXPECT_THAT(result.errors[0].remedy, HasSubstr("56 or 64"));
}

TEST(GrowthErrorsOfAFile, ASoundOneLoadsAndIsWrittenOut) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  const LoadResult result = folder.load(std::string(sound_scenario()) + training);
  ASSERT_TRUE(result.errors.empty()) << describe(result.errors);
  const GrowthChoice& growth = result.scenario.growth;
  EXPECT_EQ(growth.rule, BatchRule::norm_test);
  EXPECT_EQ(growth.dynamics.noise_tokens, 1e6);
  EXPECT_TRUE(growth.missing_dynamics.empty());
  const LoadResult again = folder.load(result.scenario.resolved);
  ASSERT_TRUE(again.errors.empty()) << describe(again.errors);
  EXPECT_EQ(again.scenario.resolved, result.scenario.resolved);
}

}  // namespace
}  // namespace slipway::test
