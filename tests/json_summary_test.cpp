#include "scenarios/json_summary.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace slipway {
namespace {

constexpr std::array keys{JsonKey{"b_s", "s", "second"}, JsonKey{"a", "count", "first", true}};

TEST(JsonSummary, KeysComeInTheOrderOfTheTableAndNumbersRoundTrip) {
  JsonSummary json(keys);
  json.set("a", 3);
  json.set("b_s", 0.1 + 0.2);
  EXPECT_EQ(json.text(), "{\n  \"b_s\": 0.30000000000000004,\n  \"a\": 3\n}\n");
}

TEST(JsonSummary, AKeyThatIsNotDocumentedCannotBeSet) {
  JsonSummary json(keys);
  EXPECT_THROW(json.set("c", 1), std::logic_error);
}

TEST(JsonSummary, AKeyThatIsNotOptionalCannotBeForgotten) {
  JsonSummary json(keys);
  json.set("a", 3);
  EXPECT_THROW(json.text(), std::logic_error);
}

TEST(JsonSummary, NumbersThatJsonCannotHoldBecomeNull) {
  JsonSummary json(keys);
  json.set("b_s", std::nan(""));
  EXPECT_TRUE(nlohmann::json::parse(json.text())["b_s"].is_null());
}

TEST(JsonKeys, EveryKeyIsNamedOnceAndHasUnitAndMeaning) {
  for (const auto table : {simulate_json_keys(), execute_json_keys(), compare_json_keys(), confirm_json_keys(), memory_json_keys(),
                           validate_json_keys()}) {
    std::set<std::string_view> names;
    for (const JsonKey& key : table) {
      EXPECT_TRUE(names.insert(key.name).second) << key.name;
      EXPECT_FALSE(key.unit.empty() || key.meaning.empty()) << key.name;
      EXPECT_THAT(describe(table), testing::HasSubstr(std::string(key.name)));
    }
  }
}

}  // namespace
}  // namespace slipway
