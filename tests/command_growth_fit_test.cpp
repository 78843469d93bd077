// slipway growth --fit: the study's curves, and tables that are none.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/command_test.h"

namespace slipway {
namespace {

using testing::HasSubstr;

using Commands = CommandTest;

const std::string curves = SLIPWAY_SOURCE_DIR "/scenarios/lau-2024/curves.csv";

TEST_F(Commands, TheStudysFitPredictsLeftOutBatchesBetterThanAGuessThatKnowsNone) {
  const Answer answer = slipway_with(
      {"growth", "--fit", curves, "--floor", "1.6", "--after", "200 M", "--target", "2.69", "--json"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  EXPECT_EQ(json["left_out"].size(), 8U);
  EXPECT_LT(json["predicted_error"].get<double>(), json["constant_error"].get<double>());
  EXPECT_LT(json["error"].get<double>(), 1e-3);
  EXPECT_EQ(json["by_learning_rate"].size(), 2U);
  const double noise = json["parameters"][3]["value"];
  EXPECT_LT(json["noise_range"][0].get<double>(), noise);
  EXPECT_GT(json["noise_range"][1].get<double>(), noise);
}

std::string table(
    const std::string& rows,
    const std::string& header = "submission,run,sequence,global_batch,learning_rate,tokens,loss") {
  return header + "\n" + rows;
}

TEST_F(Commands, AFitOfWhatIsNoTableOfCurvesNamesLineAndColumn) {
  const std::pair<std::string, const char*> wrong[] = {
      {table("a,0,2048,8,1e-4,16384,3", "submission,run,sequence,global_batch,rate,tokens,loss"),
       "no column learning_rate"},
      {table("a,0,2048,8,1e-4,16384,three"), ":2: column loss: 'three'"},
      {table("a,0,2048,8,1e-4,16384,0"), ":2: column loss: 0 is not above 0"},
      {table("a,0,2048,8,1e-4,16384,3\na,0,2048,8,1e-4,16384,2.9"),
       ":3: column tokens: 16384 is not above"},
      {table("a,0,2048,8,1e-4,16384,3\na,1,1024,8,1e-4,16384,3"), ":3: column sequence: 1024 after 2048"},
      {table("a,0,2048,8,1e-4,16384"), ":2: 6 fields below 7 columns"},
      {table("a,0,2048,8,1e-4,16384,3"), "curves of one batch size do not tell the noise scale"},
  };
  for (const auto& [text, message] : wrong) {
    std::ofstream(path("curves.csv")) << text;
    const Answer answer = slipway_with({"growth", "--fit", path("curves.csv")});
    EXPECT_EQ(answer.status, status_usage) << text;
    EXPECT_THAT(answer.err, HasSubstr(message));
  }
  EXPECT_THAT(slipway_with({"growth", "--fit", path("none.csv")}).err, HasSubstr("No such file"));
}

TEST_F(Commands, AFitTakesNoScenarioAndItsOptionsGoWithItAlone) {
  EXPECT_THAT(slipway_with({"growth", "s.yaml", "--fit", curves}).err, HasSubstr("leave out the scenario"));
  EXPECT_THAT(slipway_with({"growth", "s.yaml", "--floor", "1"}).err, HasSubstr("--floor goes with --fit"));
  EXPECT_THAT(slipway_with({"growth"}).err, HasSubstr("a scenario file, or --fit"));
  EXPECT_THAT(slipway_with({"growth", "--fit", curves, "--after", "soon"}).err,
              HasSubstr("no number of tokens"));
  EXPECT_THAT(slipway_with({"growth", "--fit", curves, "--floor", "-1"}).err,
              HasSubstr("--floor -1 is no loss"));
  EXPECT_THAT(slipway_with({"growth", "--fit", curves, "--floor", "2.9"}).err,
              HasSubstr("the floor must lie below every loss"));
}

}  // namespace
}  // namespace slipway
