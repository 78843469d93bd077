// The loader's two promises, tried on many inputs: what it accepts can be lowered, and no user's file makes it throw.
#include <gtest/gtest.h>

#include <random>

#include "scenarios/language/scenario.h"
#include "schedules/lower/lowering.h"
#include "schedules/step/action.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

struct Counts {
  int accepted = 0, refused = 0;
};

// One of the grid's scenarios: most impossible ones must be refused by the loader, not by the lowering.
void try_one(const ScenarioFolder& folder, const std::vector<std::string>& overrides, Counts& counts) {
  const LoadResult result = folder.load(sound_scenario(), overrides);
  if (!result.errors.empty()) {
    ++counts.refused;
    return;
  }
  ++counts.accepted;
  std::string all;
  for (const std::string& option : overrides) all += " --set " + option;
  EXPECT_NO_THROW(lower(result.scenario.step)) << all;
}

TEST(Loader, AcceptsOnlyWhatCanBeLowered) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  Counts counts;
  int i = 0;
  for (const int tensor : {1, 2, 3, 4})
    for (const int pipeline : {1, 2, 3, 4})
      for (const char* chunks : {"", "1", "2", "3"})
        for (const int context : {1, 2})
          for (const char* sequence_parallel : {"false", "true"})
            for (const Schedule& schedule : all_schedules()) {
              ++i;
              const char* recomputes[] = {"none", "selective", "full"};
              const auto set = [](const char* key, const auto& value) {
                if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
                  return std::string(key) + "=" + std::to_string(value);
                else
                  return std::string(key) + "=" + std::string(value);
              };
              try_one(
                  folder,
                  {set("layout.tensor", tensor), set("layout.pipeline", pipeline), set("layout.chunks", chunks),
                   set("layout.context", context), set("layout.context_exchange", i % 4 < 2 ? "ring" : "all-gather"),
                   set("layout.sequence_parallel", sequence_parallel), set("schedule.name", schedule.name),
                   set("layout.zero", i % 4), set("schedule.recompute", recomputes[i % 3]),
                   set("layout.split", i % 2 == 0 ? "even" : "balanced"), set("schedule.micro_batch", 1 + i % 2),
                   set("schedule.global_batch", i % 5 == 0 ? 12 : 16), "cluster.nodes=2",
                   set("cluster.gpus_per_node", tensor * pipeline * context)},
                  counts);
            }
  EXPECT_GE(counts.accepted, 100);
  EXPECT_GE(counts.refused, 100);
}

// Random edits of a sound file: bytes replaced, lines dropped, doubled or swapped.
TEST(Loader, NeverThrowsWhateverTheFileHolds) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const std::string marks = "{}[]:,-#&*!|>'\"%@`? \t\n0123456789eE.+-~xX";
  for (int round = 0; round < 1000; ++round) {
    std::string text = sound_scenario();
    for (std::size_t edit = 0, edits = 1 + below(4); edit < edits; ++edit) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = marks[below(marks.size())];
          break;
        case 1:
          text.erase(at, 1 + below(8));
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), 1 + below(20)));
          break;
        default:
          text[at] = static_cast<char>(below(256));
      }
    }
    EXPECT_NO_THROW({
      const LoadResult result = folder.load(text, {});
      for (const ScenarioError& error : result.errors) {
        EXPECT_FALSE(error.message.empty()) << text;
        EXPECT_FALSE(error.remedy.empty()) << text;
      }
      EXPECT_EQ(result.errors.empty(), !result.scenario.resolved.empty()) << text;
    }) << text;
  }
}

}  // namespace
}  // namespace slipway::test
