// Trainers' files: facts about time and memory, each with a source, and clear errors.
#include "scenarios/language/load_trainer.h"
#include "models/machine/priced_cluster.h"

#include <gmock/gmock.h>

#include "scenarios/files/embedded_files.h"
#include "scenarios/predict/load_scenario.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/host_issue.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

Defects defects_of(const std::string& text) {
  Defects defects;
  trainer_from_yaml(text, "t.yaml", "t", defects);
  return defects;
}

Trainer read(const std::string& text) {
  Defects defects;
  const auto trainer = trainer_from_yaml(text, "t.yaml", "t", defects);
  EXPECT_TRUE(trainer.has_value()) << describe(defects);
  return trainer.value_or(Trainer{});
}

// Without the sources, which are texts.
void expect_same_memory(const MemoryFacts& a, const MemoryFacts& b) {
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.gathered, b.gathered);
  for (const MemoryFact& fact : memory_facts())
    if (fact.number != nullptr) {
      EXPECT_EQ(a.*fact.number, b.*fact.number) << fact.name;
    } else if (fact.flag != nullptr) {
      EXPECT_EQ(a.*fact.flag, b.*fact.flag) << fact.name;
    }
}

TEST(LoadTrainer, EveryBuiltInFileStatesOnlyKnownFactsWithTheirSources) {
  ASSERT_GE(embedded_trainers().size(), 10u);
  for (const EmbeddedFile& file : embedded_trainers()) {
    Defects defects;
    const auto trainer =
        trainer_from_yaml(std::string(file.text), std::string(file.path), std::string(file.name), defects);
    EXPECT_TRUE(defects.empty()) << describe(defects);
    ASSERT_TRUE(trainer.has_value()) << file.name;
    EXPECT_GT(trainer->named, 0) << file.name;
    EXPECT_EQ(trainer->facts.name, file.name);
    ASSERT_NE(built_in_trainer(file.name), nullptr) << file.name;
    EXPECT_EQ(built_in_trainer(file.name)->facts, trainer->facts);
  }
  EXPECT_EQ(built_in_trainer("nobody's"), nullptr);
}

TEST(LoadTrainer, FactsOfSomeTrainersAreWhatTheirCodeDoes) {
  EXPECT_TRUE(built_in_trainer("nanotron")->facts.host_driven_collectives);
  EXPECT_TRUE(built_in_trainer("nanotron")->facts.balances_layers);
  EXPECT_EQ(built_in_trainer("nanotron")->memory.gathered, GatheredInputs::by_stages);
  EXPECT_EQ(built_in_trainer("llm-foundry")->facts.ampere, FlashKernel::triton);
  EXPECT_EQ(built_in_trainer("llm-foundry")->memory.loss, LossMemory::fused);
  EXPECT_TRUE(built_in_trainer("torchtitan")->facts.eager);
  EXPECT_FALSE(built_in_trainer("torchtitan")->facts.ring_attention);
  EXPECT_EQ(built_in_trainer("megatron-bridge")->facts.accumulate_bytes, 8);
  EXPECT_FALSE(built_in_trainer("deepspeed")->facts.overlaps_reduction);
  EXPECT_TRUE(built_in_trainer("megatron-core")->facts.ring_attention);
  EXPECT_TRUE(built_in_trainer("megatron-lm")->facts.cuts_transfers);
  EXPECT_EQ(built_in_trainer("megatron-bridge")->facts.narrow_weights,
            set_of(NarrowRecipe::delayed, NarrowRecipe::tensorwise, NarrowRecipe::mxfp8));
  EXPECT_FALSE(built_in_trainer("torchtitan")->facts.caches_narrow_weights);
}

TEST(LoadTrainer, TheGenericFileStatesEveryFactAndAllAreTheDefaults) {
  const Trainer* generic = built_in_trainer("generic");
  ASSERT_NE(generic, nullptr);
  EXPECT_EQ(generic->facts, TrainerFacts{});
  expect_same_memory(generic->memory, MemoryFacts{});
  constexpr int words_about_memory = 3;  // the numbers are 0
  EXPECT_EQ(generic->named, static_cast<int>(trainer_fact_names().size()) + words_about_memory);
}

TEST(LoadTrainer, AFactThatIsLeftOutIsThatOfTheGenericTrainer) {
  const Trainer trainer = read("facts:\n  eager: {value: true, source: seen}\n");
  TrainerFacts expected;
  expected.name = "t", expected.eager = true;
  EXPECT_EQ(trainer.facts, expected);
  EXPECT_EQ(trainer.named, 1);
  expect_same_memory(trainer.memory, MemoryFacts{});
}

TEST(LoadTrainer, ReadsFactsAboutMemoryAndKeepsTheirSources) {
  const Trainer trainer = read(
      "memory:\n  loss: {value: plain, source: its code}\n  gathered_inputs: {value: with-context, source: seen}\n"
      "  copies_gradient_shard: {value: true, source: seen}\n  table_bytes: {value: 4096, source: counted}\n");
  EXPECT_EQ(trainer.memory.loss, LossMemory::plain);
  EXPECT_EQ(trainer.memory.gathered, GatheredInputs::with_context);
  EXPECT_TRUE(trainer.memory.copies_gradient_shard);
  EXPECT_EQ(trainer.memory.table_bytes, 4096);
  EXPECT_EQ(trainer.named, 4);
  ASSERT_EQ(trainer.memory.sources.size(), 4u);
  EXPECT_EQ(trainer.memory.sources[0], "loss: its code");
}

TEST(LoadTrainer, ReadsWhichValuesOfALeverItHas) {
  const Trainer trainer = read("levers:\n  schedule.name: {value: \"gpipe, 1f1b\", source: its code}\n");
  EXPECT_EQ(trainer.levers.at("schedule.name"), (std::vector<std::string>{"gpipe", "1f1b"}));
  EXPECT_THAT(defects_of("levers:\n  run.lr: {value: 1, source: x}\n").at(0).message, HasSubstr("no key of layout"));
  EXPECT_THAT(defects_of("levers:\n  layout.zero: {value: 1}\n").at(0).message, HasSubstr("source"));
}

TEST(LoadTrainer, AFactWithoutSourceAnUnknownOneAndAWrongValueAreErrorsWithTheirLine) {
  const Defects defects = defects_of(
      "facts:\n  eager: {value: true}\n  speed: {value: 3, source: x}\n  hopper: {value: flash9, source: x}\n"
      "  accumulate_bytes: {value: -1, source: x}\n  narrow_weights: {value: [mxfp8, fp9], source: x}\n");
  ASSERT_EQ(defects.size(), 5u);
  EXPECT_EQ(defects[0].file, "t.yaml");
  EXPECT_EQ(defects[0].line, 2);
  EXPECT_EQ(defects[0].key, "facts.eager");
  EXPECT_THAT(defects[0].message, HasSubstr("source"));
  EXPECT_EQ(defects[1].key, "facts.speed");
  EXPECT_THAT(defects[1].message, HasSubstr("accumulate_bytes"));
  EXPECT_EQ(defects[2].line, 4);
  EXPECT_THAT(defects[2].message, HasSubstr("flash1, triton, flash2, best"));
  EXPECT_THAT(defects[3].message, HasSubstr("a number from 0"));
  EXPECT_THAT(defects[4].message, HasSubstr("a list of what run.fp8 may be"));
}

TEST(LoadTrainer, AnUnknownFactAboutMemoryAndAWrongWordAreErrors) {
  const Defects defects = defects_of("memory:\n  loss: {value: none, source: x}\n  speed: {value: 1, source: x}\n");
  ASSERT_EQ(defects.size(), 2u);
  EXPECT_THAT(defects[0].message, HasSubstr("vocabulary-parallel, plain, fused"));
  EXPECT_EQ(defects[1].key, "memory.speed");
  EXPECT_EQ(defects[1].line, 3);
}

TEST(LoadTrainer, ASectionThatIsNoneAndAnEmptyFileAreErrors) {
  const Defects old = defects_of("facts:\n  eager: {value: true, source: x}\ntime:\n  a100-80gb: {}\n");
  ASSERT_EQ(old.size(), 1u);
  EXPECT_EQ(old[0].key, "time");
  EXPECT_EQ(old[0].line, 3);
  EXPECT_THAT(old[0].message, HasSubstr("facts, memory"));
  EXPECT_FALSE(defects_of("{}\n").empty());
  EXPECT_FALSE(defects_of("facts: 3\n").empty());
}

TEST(LoadTrainer, AFileOfOnesOwnHasItsName) {
  const ScenarioFolder folder;
  folder.write("mine.yaml", "facts:\n  dropout: {value: true, source: seen}\n");
  Defects defects;
  const auto trainer = load_trainer("./mine.yaml", {{}, "cluster.trainer", folder.path().string()}, defects);
  ASSERT_TRUE(trainer.has_value()) << describe(defects);
  EXPECT_EQ(trainer->facts.name, "mine");
  EXPECT_TRUE(trainer->facts.dropout);
}

// A graph of a whole step is one launch, graphs of modules leave what is outside them (Megatron-LM's --cuda-graph-impl).
TEST(LoadTrainer, AGraphOfTheWholeStepTakesTheHostsLaunchesAway) {
  const auto issued = [](const std::string& graphs) {
    LoadResult loaded = load_scenario(SLIPWAY_SOURCE_DIR "/scenarios/examples/mixtral-8x7b-64xh100.yaml",
                                      {"cluster.trainer=megatron-core", "schedule.cuda_graphs=" + graphs});
    EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
    const PricedCluster cluster = priced_cluster(loaded.scenario);
    TaskGraph graph = lower(loaded.scenario.step);
    order_and_price(graph, cluster);
    double seconds = 0;
    for (const HostIssue::Share& share : host_issue_of(graph, cluster).shares)
      if (share.rank == 0) seconds += share.after - (share.waits ? 0 : share.before);
    return seconds;
  };
  const double none = issued("[]"), modules = issued("[attn, moe_router]");
  EXPECT_GT(none, 0);
  EXPECT_LT(modules, none);
  EXPECT_GT(modules, 0);
  EXPECT_EQ(issued("[full]"), 0);
}

const char* const by_version =
    "versions: [\"1\", \"2\", \"3\"]\narguments: megatron\nfacts:\n"
    "  eager: {value: true, source: seen, until: \"1\"}\n"
    "  hopper: [{value: flash2, source: x, until: \"2\"}, {value: best, source: y, since: \"3\"}]\n";

Trainer read_version(const std::string& version) {
  Defects defects;
  const auto trainer = trainer_from_yaml(by_version, "t.yaml", "t", defects, version);
  EXPECT_TRUE(trainer.has_value()) << describe(defects);
  return trainer.value_or(Trainer{});
}

TEST(LoadTrainer, AFactMayBeOneOfSomeVersionsAndTheLastIsMeant) {
  EXPECT_TRUE(read_version("1").facts.eager);
  EXPECT_FALSE(read_version("2").facts.eager);
  EXPECT_EQ(read_version("2").facts.hopper, FlashKernel::flash2);
  EXPECT_EQ(read_version("").facts.hopper, FlashKernel::best);
  EXPECT_EQ(read_version("3").facts.hopper, FlashKernel::best);
  EXPECT_EQ(read_version("2").dictionary, "megatron");
  EXPECT_EQ(read_version("2").arguments_version(), "2");
  EXPECT_EQ(read_version("").arguments_version(), "");
}

TEST(LoadTrainer, AVersionThatIsNoneIsAnErrorWithThoseThatThereAre) {
  const auto error_of = [](const std::string& name) {
    Defects defects;
    EXPECT_FALSE(load_trainer(name, {{"s.yaml", 4}, "cluster.trainer", ""}, defects).has_value());
    return describe(defects);
  };
  EXPECT_THAT(error_of("megatron-core@0.99"),
              HasSubstr("s.yaml:4: cluster.trainer: there is no version '0.99' of megatron-core; allowed: 0.4, "));
  EXPECT_THAT(error_of("nanotron@1"), HasSubstr("no versions of nanotron are described; write nanotron alone"));
  EXPECT_EQ(built_in_trainer("megatron-core@0.99"), nullptr);
  EXPECT_THAT(defects_of("facts:\n  eager: {value: true, source: x, since: \"1\"}\n").at(0).message,
              HasSubstr("there is no version '1'; allowed: none, as `versions` is missing"));
}

// Its name, by which constants deviate, is the plain one; the text keeps what the user wrote.
TEST(LoadTrainer, AScenarioNamesAVersionBehindAnAt) {
  const auto loaded = [](const std::string& trainer) {
    return load_scenario(SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml",
                         {"cluster.trainer=" + trainer});
  };
  const LoadResult old = loaded("megatron-core@0.12");
  ASSERT_TRUE(old.errors.empty()) << describe(old.errors);
  EXPECT_EQ(old.scenario.trainer.name, "megatron-core");
  EXPECT_EQ(old.scenario.trainer_version, "0.12");
  EXPECT_TRUE(old.scenario.trainer_file.empty());
  EXPECT_THAT(old.scenario.resolved, HasSubstr("trainer: \"megatron-core@0.12\""));
  EXPECT_THAT(describe(loaded("megatron-core@9").errors), HasSubstr("there is no version '9'"));
  EXPECT_EQ(built_in_trainer("megatron-core@0.11")->levers.at("schedule.recompute_modules"),
            std::vector<std::string>{"none"});
  EXPECT_FALSE(built_in_trainer("megatron-core")->levers.contains("schedule.recompute_modules"));
}

TEST(LoadTrainer, AFileOfOnesOwnHasVersionsToo) {
  const ScenarioFolder folder;
  folder.write("mine.yaml", by_version);
  Defects defects;
  const auto trainer = load_trainer("./mine.yaml@1", {{}, "cluster.trainer", folder.path().string()}, defects);
  ASSERT_TRUE(trainer.has_value()) << describe(defects);
  EXPECT_EQ(trainer->facts.name, "mine");
  EXPECT_TRUE(trainer->facts.eager);
}

TEST(LoadTrainer, ANameThatIsNoneIsAnErrorWithTheNearestOnes) {
  Defects defects;
  EXPECT_FALSE(load_trainer("nanotorn", {{"s.yaml", 4}, "cluster.trainer", ""}, defects).has_value());
  ASSERT_EQ(defects.size(), 1u);
  EXPECT_EQ(defects[0].key, "cluster.trainer");
  EXPECT_EQ(defects[0].line, 4);
  EXPECT_THAT(defects[0].remedy, HasSubstr("nanotron"));
}

}  // namespace
}  // namespace slipway::test
