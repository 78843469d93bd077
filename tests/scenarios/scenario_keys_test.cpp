// The table against itself, against the loader and against the written reference.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>
#include <sstream>

#include "models/machine/topology.h"
#include "models/memory/memory_constants.h"
#include "scenarios/commands/list/listing.h"
#include "scenarios/files/embedded_files.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/settings.h"
#include "schedules/step/action.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {

namespace {

std::string with_index(std::string_view path) {
  std::string text(path);
  for (std::size_t at = text.find('*'); at != std::string::npos; at = text.find('*')) text.replace(at, 1, "0");
  return text;
}

TEST(Keys, DefaultsHaveTheTypeOfTheirKey) {
  for (const auto table : {scenario_keys(), machine_keys(), library_keys(), block_table_keys()})
    for (const Key& key : table) {
      if (key.fallback.empty()) continue;
      EXPECT_EQ(wrong_with(key, scalar(std::string(key.fallback), {})), "") << key.path;
    }
}

TEST(Keys, AreListedOnceBelowTheirSection) {
  for (const auto table : {scenario_keys(), machine_keys(), library_keys(), block_table_keys()}) {
    std::set<std::string_view> seen;
    for (const Key& key : table) {
      EXPECT_TRUE(seen.insert(key.path).second) << key.path;
      EXPECT_FALSE(key.meaning.empty()) << key.path;
      EXPECT_EQ(key_of(table, with_index(key.path)), &key);
    }
  }
}

// A value that is wrong for every type but text and section: for those a map / a list.
std::string wrong_value(KeyType type) {
  switch (type) {
    case KeyType::section:
    case KeyType::text:
      return "[wrong]";
    case KeyType::sections:
      return "{wrong: 1}";
    default:
      return "certainly wrong";
  }
}

class WrongType : public testing::TestWithParam<std::string> {};

// The scenario has every section, so that the key under test is the only mistake.
TEST_P(WrongType, IsOneErrorThatNamesTheKey) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  const Key& key = *key_of(scenario_keys(), GetParam());
  std::vector<std::string> overrides;
  if (GetParam().starts_with("cluster.groups"))
    overrides.push_back("cluster={groups: [{machine: " + (folder.path() / "box.yaml").string() +
                        ", nodes: 2, gpus_per_node: 4}]}");
  if (GetParam().starts_with("cluster.fabrics"))
    overrides.push_back("cluster.fabrics=[{scope: cluster, bandwidth: 1 GB/s, latency: 0}]");
  // Lists of which each item is complete, so that only the key under test is wrong.
  const std::pair<const char*, const char*> lists[] = {{"cluster.stragglers", "[{node: 0}]"},
                                                       {"cluster.slow_links", "[{node: 0}]"},
                                                       {"cluster.link_factors", "[{nodes: [0, 1], factor: 0.5}]"},
                                                       {"cluster.failures", "[{at: 1 h}]"},
                                                       {"training.growth.stages", "[{from: 100, batch: 32}]"}};
  for (const auto& [list, item] : lists)
    if (GetParam().starts_with(std::string(list) + ".")) overrides.push_back(std::string(list) + "=" + item);
  overrides.push_back(with_index(GetParam()) + "=" + wrong_value(key.type));
  const LoadResult result = folder.load(sound_scenario(), overrides);
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  EXPECT_EQ(result.errors[0].key, with_index(GetParam()));
  EXPECT_THAT(result.errors[0].message, testing::HasSubstr("allowed: "));
  EXPECT_EQ(result.errors[0].file, "--set " + overrides.back());
}

std::vector<std::string> all_paths() {
  std::vector<std::string> paths;
  for (const Key& key : scenario_keys()) paths.push_back(with_index(key.path));
  return paths;
}
INSTANTIATE_TEST_SUITE_P(OfEveryKey, WrongType, testing::ValuesIn(all_paths()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// True for a key that a topology declares. `list topologies` prints it, and a new topology must not change the
// reference.
bool is_of_a_topology(const Key& key) {
  constexpr std::string_view section = "cluster.fabrics.*.topology.";
  return key.path.starts_with(section) && leaf_of(key.path) != "kind";
}

std::string in_markdown(std::span<const Key> table) {
  std::string text = "| key | meaning | type | default | allowed |\n|---|---|---|---|---|\n";
  for (const Key& key : table)
    if (!is_of_a_topology(key))
      text += fmt::format("| `{}` | {} | {} | {} | {} |\n", key.path, key.meaning, type_text(key), default_of(key),
                          allowed_text(key));
  return text;
}

TEST(Reference, HoldsBothTablesWordForWord) {
  std::ifstream in(std::string(SLIPWAY_SOURCE_DIR) + "/docs/scenario-reference.md");
  std::ostringstream text;
  text << in.rdbuf();
  std::ofstream wanted(std::string(SLIPWAY_BINARY_DIR) + "/keys.md");
  for (const auto table : {scenario_keys(), machine_keys(), block_table_keys()}) {
    const std::string reference = in_markdown(table);
    wanted << reference << "\n";
    EXPECT_NE(text.str().find(reference), std::string::npos)
        << "a table of docs/scenario-reference.md is out of date; the new ones are in " SLIPWAY_BINARY_DIR "/keys.md";
  }
}

// docs/networks.md has a row for each parameter of the topologies that it describes.
TEST(Reference, HoldsTheParametersOfItsTopologiesWordForWord) {
  std::ifstream in(std::string(SLIPWAY_SOURCE_DIR) + "/docs/networks.md");
  std::set<std::string> declared, described;
  for (const Topology& topology : all_topologies())
    for (const TopologyParameter& each : topology.parameters)
      declared.insert("| `" + topology.name + "` | `" + each.name + "` | " + each.meaning + " | " + each.otherwise +
                      " |");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("| `") && std::count(line.begin(), line.end(), '|') == 5) {
      EXPECT_TRUE(declared.contains(line)) << line;
      described.insert(line.substr(3, line.find('`', 3) - 3));
    }
  EXPECT_GE(described.size(), 5U);
}

TEST(Listing, NamesEveryParameterOfATopology) {
  std::ostringstream list;
  list_topologies(list);
  for (const Topology& topology : all_topologies())
    for (const TopologyParameter& each : topology.parameters) {
      EXPECT_THAT(list.str(), testing::HasSubstr(each.meaning));
      EXPECT_NE(key_of(scenario_keys(), "cluster.fabrics.0.topology." + each.name), nullptr) << each.name;
    }
}

// Values that a key of the type could have; those that a scenario cannot use are passed over.
std::vector<std::string> possible_values(const Key& key) {
  if (key.type == KeyType::words) {
    std::vector<std::string> lists;
    for (const std::string_view word : key.choices()) lists.push_back("[" + std::string(word) + "]");
    return lists;
  }
  if (key.choices != nullptr) {
    const auto choices = key.choices();
    return {choices.rbegin(), choices.rend()};
  }
  switch (key.type) {
    case KeyType::integer:
      return {"2", "4", "16", "0", "1", "100"};
    case KeyType::number:
      return {"0.25", "3", "0.97", "1e6", "1e9", "90 s", "0.0001"};
    case KeyType::flag:
      return {"true", "false"};
    case KeyType::integers:
      return {"[1, 0]", "[8, 16]"};
    default:
      return {"some words"};
  }
}

// A bound key that differs from its default is read into its field, and the resolved text gives the same field again.
TEST(BoundKeys, ComeBackFromTheResolvedTextAsTheyWere) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  const std::vector<std::vector<std::string>> settings{
      {},
      {"layout.tensor=1", "run.optimizer.name=kfac"},
      {"layout.tensor=1", "run.optimizer.name=kfac", "schedule.fill=none"},
      {"layout.pipeline=1", "schedule.name=gpipe"},
      {"training.growth.rule=linear", "training.growth.largest=32", "training.growth.warmup=100"},
      {"training.growth.rule=norm-test", "training.growth.largest=32"},
      {"run.optimizer.lr_decay_style=cosine", "run.optimizer.lr_decay_samples=1000"},
      {"cluster.mtbf_per_node=1000 h", "cluster.restart=1 min"},
      {"schedule.name=interleaved-1f1b"},
      {"schedule.name=terapipe"},
      {"cluster.machine=h100-80gb"},
      {"model.experts=8", "model.experts_per_token=2"},
      {"layout.tensor=1", "layout.zero=1"},
      {"schedule.name=1f1b-merged"},
      {"model.experts=8", "model.experts_per_token=2", "run.balancing_loss=0.01"},
      {"cluster.machine=h100-80gb", "model.experts=8", "model.experts_per_token=2", "run.fp8=tensorwise"},
  };
  std::vector<std::string_view> never;
  int bound = 0;
  for (const Key& key : scenario_keys()) {
    if (key.bound.read == nullptr) continue;
    ++bound;
    bool tried = false;
    for (std::size_t i = 0; i < settings.size() && !tried; ++i) {
      const LoadResult plain = folder.load(sound_scenario(), settings[i]);
      ASSERT_TRUE(plain.errors.empty()) << describe(plain.errors);
      for (const std::string& value : possible_values(key)) {
        std::vector<std::string> changed = settings[i];
        changed.push_back(std::string(key.path) + "=" + value);
        const LoadResult given = folder.load(sound_scenario(), changed);
        if (!given.errors.empty() || key.bound.write(given.scenario) == key.bound.write(plain.scenario)) continue;
        const LoadResult again = folder.load(given.scenario.resolved);
        ASSERT_TRUE(again.errors.empty()) << changed.back() << "\n" << describe(again.errors);
        EXPECT_EQ(key.bound.write(again.scenario), key.bound.write(given.scenario)) << changed.back();
        EXPECT_EQ(again.scenario.resolved, given.scenario.resolved) << changed.back();
        tried = true;
        break;
      }
    }
    if (!tried) never.push_back(key.path);
  }
  EXPECT_GT(bound, 60);
  EXPECT_THAT(never, testing::ElementsAre("layout.data", "layout.expert"));  // one legal value each
}

}  // namespace

// First-time users' words, and whether the answer helps them.

namespace {

using testing::HasSubstr;

class Words : public testing::Test {
 protected:
  Words() { folder.write("box.yaml", test_machine()); }
  // Errors of the sound scenario with this setting, whose key is the only mistake.
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
  EXPECT_EQ(remedy("cluster.machine=a100"), "did you mean 'a100-40gb' or 'a100-80gb'?");
  EXPECT_EQ(remedy("cluster.trainer=megatron"),
            "did you mean 'megatron-bridge', 'megatron-core', 'megatron-deepspeed' or 'megatron-lm'?");
  EXPECT_EQ(remedy("run.dtype=bf16"), "did you mean 'bfloat16'?");
  EXPECT_EQ(remedy("run.dtype=fp16"), "did you mean 'float16'?");
  EXPECT_THAT(remedy("run.dtype=fp8"), HasSubstr("products in FP8 are run.fp8"));
  EXPECT_EQ(remedy("schedule.name=zero-bubble"), "did you mean 'zb-h1', 'zb-h2' or 'zb-v'?");
  EXPECT_EQ(remedy("cluster.mtbf_per_node=2000"), "write 'mtbf_per_node: 2000 h' if these are hours");
}

TEST_F(Words, ARelativePathStartsWhereItWasWritten) {
  for (const std::string key : {"run.data", "schedule.csv"})
    EXPECT_THAT(errors({key + "=nowhere.x"}, key)[0].remedy,
                HasSubstr("with --set it is relative to the current folder"));
  std::string text = sound_scenario();
  text.replace(text.find("  steps: 3"), 10, "  steps: 3\n  data: nowhere.txt");
  const LoadResult result = folder.load(text);
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  EXPECT_THAT(result.errors[0].remedy, HasSubstr("it is relative to the scenario file"));
}

TEST_F(Words, ManyGpusAreWrittenInDigits) {
  EXPECT_THAT(errors({"cluster.nodes=1000000", "layout.data=2"}, "layout.data")[0].message,
              HasSubstr("the cluster's 4000000 GPUs"));
}

}  // namespace

// The lists name everything that the loader takes.

namespace {

using testing::HasSubstr;

TEST(Listing, NamesEveryModelMachineScheduleAndKey) {
  std::ostringstream models, machines, schedules, keys;
  list_models(models);
  list_machines(machines);
  list_schedules(schedules);
  list_keys(keys, scenario_keys());
  for (const EmbeddedFile& file : embedded_families())
    EXPECT_THAT(models.str(), HasSubstr(" " + std::string(file.name)));
  for (const EmbeddedFile& file : embedded_models()) EXPECT_THAT(models.str(), HasSubstr(std::string(file.name)));
  for (const EmbeddedFile& file : embedded_machines()) EXPECT_THAT(machines.str(), HasSubstr(std::string(file.name)));
  for (const Schedule& schedule : all_schedules()) EXPECT_THAT(schedules.str(), HasSubstr(schedule.summary));
  for (const Key& key : scenario_keys()) EXPECT_THAT(keys.str(), HasSubstr(std::string(key.path) + "\n"));
}

TEST(Listing, NamesEveryTrainerWithTheNumberOfItsFacts) {
  std::ostringstream trainers;
  list_trainers(trainers);
  for (const EmbeddedFile& file : embedded_trainers()) {
    int facts = 0;
    for (std::size_t at = 0; (at = file.text.find("{value:", at)) != std::string_view::npos; ++at) ++facts;
    EXPECT_THAT(trainers.str(), testing::ContainsRegex(std::string(file.name) + " +" + std::to_string(facts) + " "));
  }
  EXPECT_THAT(trainers.str(),
              testing::ContainsRegex("llm-foundry +[0-9]+  a100-40gb, a100-80gb, h100-80gb\n"));  // MosaicML's tables
  EXPECT_THAT(trainers.str(), testing::ContainsRegex("torchtitan +[0-9]+  none\n"));
}

TEST(Listing, NamesEveryFactOfATrainerAndEveryConstantOfAStep) {
  std::ostringstream facts, constants;
  list_trainer_keys(facts);
  list_constants(constants);
  EXPECT_THAT(facts.str(), testing::ContainsRegex("facts\\.hopper +flash1, triton, flash2, best\n"));
  for (const MemoryFact& fact : memory_facts()) EXPECT_THAT(facts.str(), HasSubstr("memory." + std::string(fact.name)));
  for (const StepConstant& constant : step_constants())
    EXPECT_THAT(constants.str(), HasSubstr(std::string("\n") + constant.name + " "));
}

TEST(Listing, ShowsPublishedSizes) {
  std::ostringstream models, machines;
  list_models(models);
  list_machines(machines);
  EXPECT_THAT(models.str(),
              testing::ContainsRegex("llama-3\\.1-8b +llama +8\\.03 G +32 +4096 +14336 +32 +8 +128256 +8192"));
  EXPECT_THAT(machines.str(), testing::ContainsRegex("v100-32gb +125 TFLOP/s"));  // float16, as it has no bfloat16
  EXPECT_THAT(machines.str(),
              testing::ContainsRegex("h100-80gb +989\\.4 TFLOP/s +85\\.52 GB +3\\.35 TB/s +nvlink4 450 GB/s"));
}

}  // namespace

}  // namespace slipway::test
