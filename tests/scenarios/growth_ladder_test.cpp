// The batches that a schedule can run, and their step times.
#include "scenarios/commands/growth/ladder.h"

#include <gmock/gmock.h>

#include "scenarios/language/check_scenario.h"
#include "schedules/rules/rules.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

using testing::ElementsAre;

Scenario scenario_of(const std::vector<std::string>& overrides) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  const LoadResult result = folder.load(sound_scenario(), overrides);
  EXPECT_TRUE(result.errors.empty()) << describe(result.errors);
  return result.scenario;
}

std::vector<std::int64_t> rungs_of(const Scenario& scenario, std::int64_t largest) {
  return rungs_between(scenario.step, scenario.step.global_batch, largest);
}

TEST(Ladder, RungsAreWholeMicroBatchesOfEveryReplica) {
  EXPECT_THAT(rungs_of(scenario_of({}), 30), ElementsAre(16, 20, 24, 28));
}

TEST(Ladder, RungsOfChimeraHaveAnEvenNumberOfMicroBatchesAndThoseOfInterleavingAnyNumber) {
  EXPECT_THAT(rungs_of(scenario_of({"schedule.name=chimera"}), 40), ElementsAre(16, 24, 32, 40));
  EXPECT_THAT(rungs_of(scenario_of({"schedule.name=interleaved-1f1b", "layout.chunks=2"}), 30),
              ElementsAre(16, 20, 24, 28));
}

TEST(Ladder, ALayoutThatCannotRunABatchOrTheRuleDoesNotRunTheGrowth) {
  Scenario scenario = scenario_of({});
  EXPECT_TRUE(runs_every_batch(scenario.growth, scenario.step)) << "nothing grows";
  scenario.growth.given = true;
  scenario.growth.largest = 30;
  EXPECT_FALSE(runs_every_batch(scenario.growth, scenario.step));
  scenario.growth.largest = 32;
  EXPECT_TRUE(runs_every_batch(scenario.growth, scenario.step));
  scenario.growth.stages = {{100, 18}};
  EXPECT_FALSE(runs_every_batch(scenario.growth, scenario.step));
  scenario.growth.stages.clear();
  scenario.step.worker_norms = true;  // of the norm test
  EXPECT_TRUE(legal(scenario.step));
  scenario.step.layout.data = 1;
  EXPECT_FALSE(legal(scenario.step));
}

TEST(Ladder, SimulatedRungsHoldTheEndsAndTheStagesAndAreFew) {
  std::vector<std::int64_t> rungs;
  for (std::int64_t rung = 16; rung <= 4096; rung += 4) rungs.push_back(rung);
  EXPECT_THAT(some_rungs(rungs, {100}, 5), ElementsAre(16, 64, 100, 256, 1024, 4096));
  EXPECT_THAT(some_rungs({16, 20, 24}, {}, 5), ElementsAre(16, 20, 24));
  EXPECT_THAT(some_rungs(rungs, {}, 2), ElementsAre(16, 4096));
}

TEST(Ladder, StepTimesBetweenRungsLieOnTheirLineAndOutsideThereAreNone) {
  const std::vector<RungStep> rungs{{10, 1, 1.0, 0, 0, true}, {20, 2, 1.5, 0, 0, true}, {40, 4, 3.0, 0, 0, true}};
  EXPECT_DOUBLE_EQ(step_time_between(rungs, 10), 1);
  EXPECT_DOUBLE_EQ(step_time_between(rungs, 15), 1.25);
  EXPECT_DOUBLE_EQ(step_time_between(rungs, 40), 3);
  EXPECT_THROW(step_time_between(rungs, 9), std::invalid_argument);
  EXPECT_THROW(step_time_between(rungs, 41), std::invalid_argument);
  // The line from 10 to 40 gives 1 + 2/3 at 20.
  EXPECT_NEAR(line_error(rungs), (1 + 2.0 / 3) / 1.5 - 1, 1e-12);
}

TEST(Ladder, ASimulatedRungIsWhatSimulateSaysAndTheLineHoldsBetween) {
  const Scenario scenario = scenario_of({});
  const std::vector<RungStep> rungs = simulated_rungs(scenario, {16, 64, 128});
  EXPECT_THAT(std::vector<int>({rungs[0].micro_batches, rungs[1].micro_batches, rungs[2].micro_batches}),
              ElementsAre(4, 16, 32));
  Scenario middle = scenario;
  middle.step.global_batch = 96;
  const Prediction alone = prediction_of(simulated_step(middle, {}));
  EXPECT_NEAR(step_time_between(rungs, 96) / alone.step.step_time_s, 1, 1e-6);
  EXPECT_GT(rungs[2].tokens_per_s, rungs[0].tokens_per_s) << "the bubble is the same, the work more";
}

}  // namespace
}  // namespace slipway::test
