// The table against itself, against the loader and against the written reference.
#include "scenarios/language/keys.h"

#include <gmock/gmock.h>

#include <set>
#include <sstream>

#include "scenarios/language/settings.h"
#include "scenarios/listing.h"
#include "tests/scenario_file.h"

namespace slipway {
namespace {

std::string with_index(std::string_view path) {
  std::string text(path);
  for (std::size_t at = text.find('*'); at != std::string::npos; at = text.find('*'))
    text.replace(at, 1, "0");
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

// The scenario holds every section, so that the key under test is the only mistake.
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

TEST(Reference, HoldsBothTablesWordForWord) {
  std::ifstream in(std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/README.md");
  std::ostringstream text;
  text << in.rdbuf();
  std::ofstream wanted(std::string(SLIPWAY_BINARY_DIR) + "/keys.md");
  for (const auto table : {scenario_keys(), machine_keys(), block_table_keys()}) {
    std::ostringstream reference;
    list_keys_as_markdown(reference, table);
    wanted << reference.str() << "\n";
    EXPECT_NE(text.str().find(reference.str()), std::string::npos)
        << "a table of scenarios/README.md is out of date; the new ones are in " SLIPWAY_BINARY_DIR
           "/keys.md";
  }
}

}  // namespace
}  // namespace slipway
