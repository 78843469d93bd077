// Trainers' facts: each with a source, and clear errors.
#include "scenarios/language/load_trainer.h"

#include <gmock/gmock.h>

#include "scenarios/files/embedded_files.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

Defects defects_of(const std::string& text) {
  Defects defects;
  trainer_from_yaml(text, "t.yaml", "t", defects);
  return defects;
}

TEST(LoadTrainer, EveryBuiltInTrainerLoads) {
  for (const EmbeddedFile& file : embedded_stacks()) {
    const TrainerFacts* facts = built_in_trainer(file.name);
    ASSERT_NE(facts, nullptr) << file.name;
    EXPECT_EQ(facts->name, file.name);
  }
  EXPECT_TRUE(built_in_trainer("nanotron")->host_driven_collectives);
  EXPECT_EQ(built_in_trainer("llm-foundry")->ampere, FlashKernel::triton);
  EXPECT_EQ(built_in_trainer("nobody's"), nullptr);
}

TEST(LoadTrainer, AFactThatIsLeftOutIsThatOfTheGenericTrainer) {
  Defects defects;
  const auto facts = trainer_from_yaml("facts:\n  eager: {value: true, source: seen}\n", "t.yaml", "t", defects);
  ASSERT_TRUE(facts.has_value());
  EXPECT_TRUE(facts->eager);
  EXPECT_EQ(facts->hopper, TrainerFacts{}.hopper);
}

TEST(LoadTrainer, AFactWithoutSourceAnUnknownOneAndAWrongValueAreErrorsWithTheirLine) {
  const Defects defects = defects_of(
      "facts:\n  eager: {value: true}\n  speed: {value: 3, source: x}\n  hopper: {value: flash9, source: x}\n");
  ASSERT_EQ(defects.size(), 3u);
  EXPECT_EQ(defects[0].line, 2);
  EXPECT_THAT(defects[0].message, HasSubstr("source"));
  EXPECT_EQ(defects[1].key, "facts.speed");
  EXPECT_THAT(defects[1].message, HasSubstr("accumulate_bytes"));
  EXPECT_THAT(defects[2].message, HasSubstr("flash1, triton, flash2, best"));
}

}  // namespace
}  // namespace slipway::test
