// Moved rates against replays of scenarios whose machines really have those numbers.
#include "scenarios/search/rates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/simulated_step.h"
#include "scenarios/search/moved_step.h"
#include "schedules/time/work_price.h"
#include "tests/support/example.h"

namespace slipway::test {
namespace {

double seconds_at(MovedStep& step, const std::string& id, double speed) {
  for (const Rate& rate : rates_of(step.scenario(), step.cluster())) {
    if (rate.id != id) continue;
    Moved moved(step.cluster());
    rate.move(moved, speed);
    return step.seconds(moved);
  }
  ADD_FAILURE() << "no rate " << id;
  return 0;
}

TEST(MovedStep, IsTheReplayOfTheScenario) {
  for (const char* name : {"llama-8b-64xh100.yaml", "mixtral-8x7b-64xh100.yaml", "tiny-llama-cpu.yaml"}) {
    const Scenario scenario = loaded(name);
    MovedStep step(scenario);
    EXPECT_NEAR(step.seconds(), replayed_step_s(scenario), 1e-12 * step.seconds());
    EXPECT_NEAR(step.seconds(Moved(step.cluster())), step.seconds(), 1e-12 * step.seconds());
    EXPECT_NEAR(step.path().sum(), step.seconds(), 0.002 * step.seconds());  // as tests/scenarios/priced_run_test.cpp
    EXPECT_NEAR(step.ranks().sum(), step.seconds(), 1e-9 * step.seconds());
  }
}

// The order of tasks is that of the original prices in one of them and of the moved prices in the other.
constexpr double order = 0.01;

TEST(MovedStep, WithAnotherBandwidthIsTheReplayOfAMachineThatHasIt) {
  for (const char* link : {"node", "network"}) {
    const bool inside = link == std::string("node");
    const Scenario scenario = loaded("llama-8b-64xh100.yaml");
    MovedStep step(scenario);
    Scenario other = scenario;
    Machine& machine = other.cluster.groups.front().machine;
    (inside ? machine.node_link : machine.network_link).bandwidth /= 2;
    const double truth = replayed_step_s(other);
    EXPECT_GT(truth, 1.01 * step.seconds());
    EXPECT_NEAR(seconds_at(step, std::string(link) + "_bandwidth", 0.5), truth, order * truth) << link;
  }
}

TEST(MovedStep, WithOtherMemoryIsTheReplayOfAMachineThatHasIt) {
  for (const char* name : {"llama-8b-64xh100.yaml", "tiny-llama-cpu.yaml"}) {
    const Scenario scenario = loaded(name);
    MovedStep step(scenario);
    Scenario other = scenario;
    other.cluster.groups.front().machine.memory_bandwidth /= 2;
    const double truth = replayed_step_s(other);
    EXPECT_GT(truth, 1.01 * step.seconds());
    EXPECT_NEAR(seconds_at(step, "memory_bandwidth", 0.5), truth, order * truth) << name;
  }
}

// A step of products alone, nearly: half the efficiency of products is half of its arithmetic.
TEST(MovedStep, WithSlowerProductsIsTheReplayOfAMachineOfLessEfficiency) {
  const std::vector<std::string> large{"model.hidden=1024", "model.ffn=4096", "layout.pipeline=1", "layout.data=2"};
  const Scenario scenario = loaded("tiny-llama-cpu.yaml", large);
  MovedStep step(scenario);
  Scenario other = scenario;
  other.cluster.groups.front().machine.gemm_efficiency /= 2;
  const double truth = replayed_step_s(other);
  EXPECT_GT(truth, 1.7 * step.seconds());
  EXPECT_NEAR(seconds_at(step, "products", 0.5), truth, 0.03 * truth);  // launches are a part of products there
}

// Its bubbles are filled as in the scenario's own simulation, without contention.
TEST(MovedStep, HasTheBubbleWorkOfTheStepAndMovesIt) {
  LoadResult bert = load_scenario(SLIPWAY_SOURCE_DIR "/scenarios/studies/pipefisher-2022/bert-base.yaml", {});
  ASSERT_TRUE(bert.errors.empty());
  MovedStep step(bert.scenario);
  StepOptions whole;
  const SimulatedStep simulated = simulated_step(bert.scenario, whole);
  EXPECT_NEAR(step.seconds(), step_time_of(simulated.prepared.graph, simulated.simulation.timeline, nullptr),
              1e-6 * step.seconds());
  EXPECT_NEAR(step.seconds(Moved(step.cluster())), step.seconds(), 1e-9 * step.seconds());
  EXPECT_GT(step.ranks()[TimePart::bubble_work], 0);
  EXPECT_GT(seconds_at(step, "bubble_work", 0.25), 1.05 * step.seconds()) << "it does not fit into bubbles any more";
}

TEST(MovedStep, FindsTheSpeedThatMakesAStepAsLong) {
  const Scenario scenario = loaded("llama-8b-64xh100.yaml");
  MovedStep step(scenario);
  for (const Rate& rate : rates_of(step.scenario(), step.cluster())) {
    Moved moved(step.cluster());
    rate.move(moved, 0.4);
    const double target = step.seconds(moved);
    if (target < 1.01 * step.seconds()) continue;
    const auto speed = step.speed_for(rate, target);
    ASSERT_TRUE(speed) << rate.name;
    EXPECT_NEAR(*speed, 0.4, 0.02) << rate.name;
  }
}

TEST(MovedStep, NoSpeedOfARateThatIsNotUsedExplainsAStep) {
  const Scenario scenario = loaded("llama-8b-64xh100.yaml", {"layout.tensor=1", "layout.sequence_parallel=false",
                                                             "layout.data=16", "layout.pipeline=4"});
  MovedStep step(scenario);
  for (const Rate& rate : rates_of(step.scenario(), step.cluster()))
    if (rate.id == "fixed") {
      EXPECT_FALSE(step.speed_for(rate, step.seconds() / 2));
    }
}

TEST(MovedStep, ASlowPipelineRankMakesTheStepLonger) {
  const Scenario scenario = loaded("llama-8b-64xh100.yaml");
  MovedStep step(scenario);
  const auto speed = step.speed_of_stage_for(2, 1.2 * step.seconds());
  ASSERT_TRUE(speed);
  EXPECT_LT(*speed, 1);
  EXPECT_GT(*speed, 0.5);
}

TEST(Rates, HaveDistinctNamesAndSpreads) {
  for (const char* name : {"llama-8b-64xh100.yaml", "tiny-llama-cpu.yaml"}) {
    const Scenario scenario = loaded(name);
    std::vector<std::string> ids;
    for (const Rate& rate : rates_of(scenario, priced_cluster(scenario))) {
      EXPECT_GT(rate.spread, 0) << rate.name;
      ids.push_back(rate.id);
    }
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  }
}

}  // namespace
}  // namespace slipway::test
