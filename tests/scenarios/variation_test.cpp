#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/search/variation.h"

namespace slipway::test {
namespace {

const std::string path = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";

std::optional<double> always(const MemoryNeed&) { return std::numeric_limits<double>::infinity(); }
std::optional<double> never(const MemoryNeed&) { return std::nullopt; }

TEST(Variation, IsLoadedOverTheOverridesThatMadeTheScenario) {
  const std::vector<std::string> overrides{"schedule.micro_batch=2"};
  const Scenario origin = checked_scenario(path, overrides);
  const VariedScenario one = varied(origin, overrides, {"micro-batch 1", {"schedule.micro_batch=1"}});
  ASSERT_TRUE(one.scenario);
  EXPECT_EQ(one.scenario->step.micro_batch, 1);
  EXPECT_EQ(one.variation.words, "micro-batch 1");
  const VariedScenario none = varied(origin, overrides, {"micro-batch 0", {"schedule.micro_batch=0"}});
  EXPECT_FALSE(none.scenario);
  EXPECT_THAT(none.why_not, testing::HasSubstr("allowed"));
}

TEST(Evaluation, OfMemoryAloneHasNoTimeline) {
  const Scenario scenario = checked_scenario(path, {});
  const Evaluation found = evaluate(scenario, TimelineBy::simulation, never);
  EXPECT_FALSE(found.has_timeline);
  EXPECT_EQ(found.step.step_time_s, 0);
  EXPECT_EQ(found.memory.bytes, verdict_of(scenario).odds.bytes);
}

TEST(Evaluation, IsThatOfSimulate) {
  const Scenario scenario = checked_scenario(path, {});
  StepOptions options;
  options.makespan = false;
  const Prediction prediction = prediction_of(simulated_step(scenario, options));
  const Evaluation found = evaluate(scenario, TimelineBy::simulation, always);
  EXPECT_EQ(found.step.step_time_s, prediction.step.step_time_s);
  EXPECT_EQ(found.memory.bytes, prediction.verdict.odds.bytes);
  EXPECT_EQ(found.memory.fit_probability, prediction.verdict.probability);
}

TEST(Evaluation, OfASimulatedStepIsThatOfItsScenario) {
  const Scenario scenario = checked_scenario(path, {});
  StepOptions options;
  options.makespan = false;
  nlohmann::json whole = evaluate(scenario, TimelineBy::simulation, always),
                 of_step = evaluation_of(simulated_step(scenario, options));
  for (nlohmann::json* each : {&whole, &of_step}) each->erase("replayed_s");  // only a limit asks for it
  EXPECT_EQ(of_step, whole);
}

TEST(Evaluation, ByReplayIsTheReplayedStep) {
  const Scenario scenario = checked_scenario(path, {});
  EXPECT_EQ(evaluate(scenario, TimelineBy::replay, always).step.step_time_s, replayed_step_s(scenario));
}

TEST(Evaluation, OfAStepBeyondItsLimitIsItsReplay) {
  const Scenario scenario = checked_scenario(path, {});
  const Evaluation found =
      evaluate(scenario, TimelineBy::simulation, [](const MemoryNeed&) { return std::optional(1e-9); });
  EXPECT_FALSE(found.has_timeline);
  EXPECT_EQ(found.replayed_s, replayed_step_s(scenario));
}

TEST(Evaluation, ComesOutOfJsonAsItWentIn) {
  const nlohmann::json json = evaluate(checked_scenario(path, {}), TimelineBy::simulation, always);
  EXPECT_EQ(nlohmann::json(json.get<Evaluation>()), json);
  EXPECT_EQ(nlohmann::json::parse(json.dump()), json);
}

}  // namespace
}  // namespace slipway::test
