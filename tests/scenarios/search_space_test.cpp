// The space of a search against the loader.
#include <gtest/gtest.h>

#include <set>

#include "scenarios/commands/plan/answer.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/search/layout_text.h"
#include "scenarios/search/search.h"
#include "tests/support/small_spaces.h"

namespace slipway::test {
namespace {

class SpacesOfLayouts : public testing::TestWithParam<Small> {};

// The space is what the loader accepts: each of its layouts loads, and a wall of other values does not.
TEST_P(SpacesOfLayouts, HoldWhatTheLoaderAccepts) {
  const ScenarioFolder folder;
  const Small& small = GetParam();
  const Scenario scenario = load(folder, small);
  std::set<std::string> in_space;
  each_layout(scenario, search_space(scenario, {}), [&](const Step& choice) {
    const LoadResult loaded = load_scenario(scenario.path, overrides_of(choice));
    EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
    EXPECT_EQ(rank_count(choice.layout), small.nodes * small.gpus);
    EXPECT_TRUE(in_space.insert(layout_text(choice)).second) << layout_text(choice) << " comes twice";
  });
  int accepted = 0;
  for (const int t : {1, 2, 3, 4})
    for (const int p : {1, 2, 4})
      for (const int c : {1, 2, 4})
        for (const int v : {1, 2, 3})
          for (const int b : {1, 2, 3, 4})
            for (const bool sp : {false, true})
              for (const Schedule& schedule : all_schedules()) {
                if (!schedule.searched) continue;
                Step choice = scenario.step;
                choice.layout.tensor = t, choice.layout.pipeline = p, choice.layout.context = c;
                choice.layout.chunks = v, choice.layout.sequence_parallel = sp;
                choice.layout.data = std::max(1, small.nodes * small.gpus / (t * p * c));
                choice.schedule = schedule.name;
                choice.micro_batch = b;
                const bool disguised = p == 1 && (v > 1 || schedule.name != "1f1b");
                const bool loads = load_scenario(scenario.path, overrides_of(choice)).errors.empty();
                accepted += loads && !disguised ? 1 : 0;
                EXPECT_EQ(loads && !disguised, in_space.contains(layout_text(choice))) << layout_text(choice);
              }
  EXPECT_GT(accepted, 10);
}

INSTANTIATE_TEST_SUITE_P(Small, SpacesOfLayouts, testing::ValuesIn(smalls), name_of_small);

}  // namespace
}  // namespace slipway::test
