// What a scenario may say of experts: one clear error for everything else.
#include <gmock/gmock.h>

#include "scenarios/scenario.h"
#include "tests/scenario_file.h"

namespace slipway {
namespace {

using testing::HasSubstr;

class ScenarioWithExperts : public testing::Test {
 protected:
  ScenarioWithExperts() { folder_.write("box.yaml", test_machine()); }
  LoadResult loaded(std::vector<std::string> overrides) { return folder_.load(sound_scenario(), overrides); }
  ScenarioError only_error(std::vector<std::string> overrides) {
    const LoadResult result = loaded(std::move(overrides));
    if (result.errors.size() != 1) {
      ADD_FAILURE() << result.errors.size() << " errors\n" << describe(result.errors);
      return {};
    }
    return result.errors.front();
  }

 private:
  ScenarioFolder folder_;
};

TEST_F(ScenarioWithExperts, HasThemInEveryLayer) {
  const LoadResult result = loaded({"model.experts=8", "model.experts_per_token=2"});
  ASSERT_TRUE(result.errors.empty()) << describe(result.errors);
  EXPECT_EQ(result.scenario.model.runs[1].block.experts, 8);
  EXPECT_EQ(result.scenario.model.runs[1].block.experts_per_token, 2);
  EXPECT_EQ(result.scenario.model.runs[0].block.experts, 0);
}

TEST_F(ScenarioWithExperts, SaysHowManyATokenGoesThrough) {
  const ScenarioError missing = only_error({"model.experts=8"});
  EXPECT_EQ(missing.key, "model.experts_per_token");
  EXPECT_THAT(missing.message, HasSubstr("missing with experts = 8; allowed: 1 to 8"));
  EXPECT_THAT(only_error({"model.experts=8", "model.experts_per_token=9"}).message,
              HasSubstr("experts_per_token = 9 is more than experts = 8"));
  EXPECT_EQ(only_error({"model.experts_per_token=2"}).key, "model.experts_per_token");
}

// Of its experts' width then.
TEST_F(ScenarioWithExperts, LeavesThemOutOfABuiltInModelWhereTheyAreSetToNone) {
  const Block block = loaded({"model=mixtral-8x7b", "model.experts=0"}).scenario.model.runs[1].block;
  EXPECT_EQ(block.ffn, 14336);
  EXPECT_EQ(block.experts_per_token, 0);
}

TEST_F(ScenarioWithExperts, IsOfTheLlamaFamily) {
  const LoadResult gpt = loaded({"model.family=gpt", "model.kv_heads=", "model.experts=8"});
  EXPECT_THAT(describe(gpt.errors), HasSubstr("models of family gpt have no experts"));
}

TEST_F(ScenarioWithExperts, NamesWhatKnowsNoExperts) {
  const std::vector<std::string> experts{"model.experts=8", "model.experts_per_token=2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), experts.begin(), experts.end());
    return describe(loaded(more).errors);
  };
  EXPECT_THAT(with({"run.optimizer=kfac", "layout.tensor=1"}), HasSubstr("K-FAC of experts is not modelled"));
  EXPECT_THAT(with({"cluster.stack=nanotron"}), HasSubstr("no trainer's formula of step time has a term for experts"));
  EXPECT_THAT(with({"layout.expert=2"}), HasSubstr("expert parallelism is reserved"));
}

}  // namespace
}  // namespace slipway
