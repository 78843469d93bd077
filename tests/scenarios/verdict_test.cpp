// One verdict on memory: `memory`, `plan` and `simulate` print the same number for a layout, the largest known one. The
// sharded parts of ZeRO 2 and 3 are in all of them.
#include "scenarios/predict/verdict.h"
#include "scenarios/predict/load_scenario.h"

#include <gtest/gtest.h>

#include "scenarios/commands/memory/report.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/predict/verdict.h"
#include "scenarios/search/search.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

const std::string root = SLIPWAY_SOURCE_DIR;

Scenario llama_70b(const std::vector<std::string>& overrides) {
  LoadResult loaded = load_scenario(root + "/scenarios/examples/llama-70b-1024xh100.yaml", overrides);
  EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  return loaded.scenario;
}

const std::vector<std::vector<std::string>> layouts{
    {},
    {"layout.tensor=4", "layout.data=64", "layout.zero=2"},
    {"layout.tensor=4", "layout.data=64", "layout.zero=3"},
    {"layout.tensor=4", "layout.pipeline=2", "layout.data=128", "layout.zero=3", "schedule.recompute=full"},
    {"cluster.trainer=nanotron"},
};

Step choice_of(const Scenario& scenario) { return scenario.step; }

TEST(MemoryVerdict, IsTheSameNumberInMemoryPlanAndSimulate) {
  for (const auto& overrides : layouts) {
    const Scenario scenario = llama_70b(overrides);
    const SimulatedStep step = simulated_step(scenario, StepOptions{});
    const Prediction simulated = prediction_of(step);
    const MemoryReport memory = memory_report(step.prepared, step.simulation.timeline, periodic_of(step));
    const PricedLayout planned = price_layout(scenario, choice_of(scenario));
    EXPECT_DOUBLE_EQ(simulated.verdict.odds.bytes, memory.verdict.odds.bytes);
    EXPECT_DOUBLE_EQ(planned.memory_bytes, memory.verdict.odds.recommended());
    EXPECT_DOUBLE_EQ(planned.fit_probability, memory.verdict.probability);
    EXPECT_DOUBLE_EQ(simulated.verdict.probability, memory.verdict.probability);
    EXPECT_EQ(planned.memory_share <= 1, memory.verdict.fits_cautious);
    EXPECT_EQ(simulated.fits(), memory.verdict.fits);
    const StageReport& fullest = memory.stages[memory.verdict.fullest];
    EXPECT_GE(memory.verdict.odds.bytes, sum(fullest.timeline));
    EXPECT_GE(memory.verdict.odds.bytes, sum(fullest.estimate) * (1 - 1e-9));
  }
}

// A trainer whose runs are known is surer than one of which none is.
TEST(MemoryVerdict, OfNoParticularTrainerHasAWiderInterval) {
  const Verdict generic = verdict_of(llama_70b({})), known = verdict_of(llama_70b({"cluster.trainer=nanotron"}));
  EXPECT_GT(generic.odds.spread, known.odds.spread);
  EXPECT_GT(generic.odds.most(), generic.odds.bytes);
  EXPECT_LT(generic.odds.least(), generic.odds.bytes);
}

// The count from the scenario alone equals what the timeline then shows: two blocks, no more.
TEST(MemoryVerdict, CountsWhatZero2And3HoldOfTwoBlocksBeforeThereIsAGraph) {
  for (const char* zero : {"layout.zero=2", "layout.zero=3"}) {
    const Scenario scenario = llama_70b({"layout.tensor=4", "layout.data=64", zero});
    const std::vector<StageTerms> counted = counted_memory(scenario);
    StepOptions once;
    once.steps = 1;
    const SimulatedStep step = simulated_step(scenario, once);
    const std::vector<StageMemory> seen = stage_memory(step.prepared, step.simulation.timeline, periodic_of(step));
    for (std::size_t stage = 0; stage < seen.size(); ++stage)
      for (const MemoryPart part : {MemoryPart::gradient_buckets, MemoryPart::gathered_weights}) {
        EXPECT_LE(seen[stage].use.parts[part], counted[stage].parts[part] * (1 + 1e-9)) << zero << " stage " << stage;
        EXPECT_LE(counted[stage].parts[part], 0.05 * 80e9) << "two blocks of eighty, not all";
      }
    EXPECT_GT(counted[1].parts[MemoryPart::gradient_buckets], 0);
  }
}

TEST(MemoryVerdict, IsTheTimelinesWhereThatIsLargest) {
  const Scenario scenario = llama_70b({});
  std::vector<OnTimeline> seen(4);
  const Verdict before = verdict_of(stage_needs(scenario, seen));
  EXPECT_EQ(before.way, MemoryWay::estimate);
  seen[2].bytes = 90e9;
  const Verdict after = verdict_of(stage_needs(scenario, seen));
  EXPECT_TRUE(before.fits);
  EXPECT_FALSE(after.fits);
  EXPECT_EQ(after.fullest, 2);
  EXPECT_EQ(after.way, MemoryWay::timeline);
  EXPECT_DOUBLE_EQ(after.odds.bytes, 90e9);
  EXPECT_LT(after.probability, 0.5);
}

}  // namespace
}  // namespace slipway::test
