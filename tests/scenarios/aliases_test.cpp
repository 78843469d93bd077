// Other names of models, machines and trainers, and that no two files claim one.
#include "scenarios/language/aliases.h"

#include <gtest/gtest.h>

#include "scenarios/language/scenario.h"
#include "scenarios/predict/load_scenario.h"

namespace slipway::test {
namespace {

TEST(Aliases, CaseBlanksAndSignsDoNotCount) {
  EXPECT_EQ(canonical_name(embedded_models(), "llama31_405b"), "llama-3.1-405b");
  EXPECT_EQ(canonical_name(embedded_models(), "Kimi-K2-Instruct"), "kimi-k2");
  EXPECT_EQ(canonical_name(embedded_models(), "Llama-4-Maverick-17B-128E"), "llama-4-maverick");
  EXPECT_EQ(canonical_name(embedded_machines(), "H100"), "h100-80gb");
  EXPECT_EQ(canonical_name(embedded_machines(), "AMD Instinct MI325X"), "mi325x");
  EXPECT_EQ(canonical_name(embedded_trainers(), "mcore"), "megatron-core");
}

TEST(Aliases, PathsAndUnknownNamesStayAsTheyAreWritten) {
  EXPECT_EQ(canonical_name(embedded_machines(), "./H100.yaml"), "./H100.yaml");
  EXPECT_EQ(canonical_name(embedded_models(), "GPT-5"), "GPT-5");
}

// What is written down has the file's name, so that it means the same for ever.
TEST(Aliases, AScenarioThatUsesThemResolvesToTheFilesNames) {
  const LoadResult loaded = load_scenario_text(
      "model: GPT2\ncluster: {machine: H100, gpus_per_node: 8, trainer: mcore}\nschedule: {global_batch: 8}\n", "");
  ASSERT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  EXPECT_NE(loaded.scenario.resolved.find("name: gpt2"), std::string::npos);
  EXPECT_NE(loaded.scenario.resolved.find("machine: h100-80gb"), std::string::npos);
  EXPECT_NE(loaded.scenario.resolved.find("trainer: megatron-core"), std::string::npos);
}

}  // namespace
}  // namespace slipway::test
