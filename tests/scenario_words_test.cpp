// What first-time users write, and whether the answer gets them on.
#include <gmock/gmock.h>

#include "tests/scenario_file.h"

namespace slipway {
namespace {

using testing::HasSubstr;

class Words : public testing::Test {
 protected:
  Words() { folder.write("box.yaml", test_machine()); }
  // Of the sound scenario with this setting, whose key is the only mistake.
  std::vector<ScenarioError> errors(const std::vector<std::string>& settings, const std::string& key) const {
    const LoadResult result = folder.load(sound_scenario(), settings);
    EXPECT_EQ(result.errors.size(), 1U) << describe(result.errors);
    if (result.errors.empty()) return {{}};
    EXPECT_EQ(result.errors[0].key, key);
    return result.errors;
  }
  ScenarioFolder folder;
};

TEST_F(Words, AWordThatMeansSomethingIsAnsweredWithTheWordForIt) {
  const auto remedy = [&](const std::string& setting) {
    const std::string key = setting.substr(0, setting.find('='));
    return errors({setting}, key)[0].remedy;
  };
  EXPECT_EQ(remedy("cluster.machine=h100"), "did you mean 'h100-80gb' or 'h100-94gb'?");
  EXPECT_EQ(remedy("cluster.stack=megatron"), "did you mean 'megatron-core', 'megatron-deepspeed' or 'megatron-lm'?");
  EXPECT_EQ(remedy("run.dtype=bf16"), "did you mean 'bfloat16'?");
  EXPECT_EQ(remedy("run.dtype=fp16"), "did you mean 'float16'?");
  EXPECT_THAT(remedy("run.dtype=fp8"), HasSubstr("fp8 is not modelled; use bfloat16"));
  EXPECT_EQ(remedy("schedule.name=zero-bubble"), "did you mean 'zb-h1', 'zb-h2' or 'zb-v'?");
  EXPECT_EQ(remedy("cluster.mtbf_per_node=2000"), "write 'mtbf_per_node: 2000 h' if these are hours");
}

TEST_F(Words, ARelativePathStartsWhereItWasWritten) {
  for (const std::string key : {"run.data", "schedule.csv"})
    EXPECT_THAT(errors({key + "=nowhere.x"}, key)[0].remedy, HasSubstr("with --set it is relative to the current folder"));
  std::string text = sound_scenario();
  text.replace(text.find("  steps: 3"), 10, "  steps: 3\n  data: nowhere.txt");
  const LoadResult result = folder.load(text);
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  EXPECT_THAT(result.errors[0].remedy, HasSubstr("it is relative to the scenario file"));
}

TEST_F(Words, ManyGpusAreWrittenInDigits) {
  EXPECT_THAT(errors({"cluster.nodes=1000000", "layout.data=2"}, "layout.data")[0].message, HasSubstr("the cluster's 4000000 GPUs"));
}

}  // namespace
}  // namespace slipway
