// slipway study: points, table, CSV, picture, and points that fail.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "scenarios/commands/study/vary_option.h"
#include "scenarios/files/csv.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string bert = SLIPWAY_SOURCE_DIR "/scenarios/studies/pipefisher-2022/bert-base.yaml";
const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";

class StudyCommand : public CommandTest {};

TEST(StudyPoints, AreAllCombinationsTheLastVariationFastest) {
  const std::vector<StudyPoint> points =
      points_of({"s.yaml"}, {"run.seed=1"},
                {variation_from("schedule.name=gpipe,1f1b"), variation_from("layout.pipeline=2,4 model.layers=8,16")});
  ASSERT_EQ(points.size(), 4U);
  EXPECT_THAT(points[1].values, ElementsAre("gpipe", "4", "16"));
  EXPECT_THAT(points[2].overrides,
              ElementsAre("run.seed=1", "schedule.name=1f1b", "layout.pipeline=2", "model.layers=8"));
}

TEST(StudyPoints, ListsAreOneValue) {
  EXPECT_THAT(variation_from("layout.split=[3, 5],even").values,
              ElementsAre(ElementsAre("[3, 5]"), ElementsAre("even")));
}

TEST(StudyPoints, BlanksAndCommasInQuotesBelongToAValue) {
  EXPECT_THAT(variation_from("cluster.machine=\"/my dir/a,b.yaml\",h200").values,
              ElementsAre(ElementsAre("\"/my dir/a,b.yaml\""), ElementsAre("h200")));
}

TEST_F(StudyCommand, EveryPointIsWhatSimulateSays) {
  const std::string csv = path("s.csv");
  const Answer answer = slipway_with({"study", bert, "--vary", "schedule.name=gpipe,1f1b", "--csv", csv});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  std::istringstream in(text_of(csv));
  const CsvTable table = read_csv(in, csv);
  ASSERT_EQ(table.rows.size(), 2U);
  for (const CsvRow& row : table.rows) {
    const auto cell = [&](const std::string& name) {
      for (std::size_t i = 0; i < table.header.size(); ++i)
        if (table.header[i] == name) return row.fields.at(i);
      return std::string("no column " + name);
    };
    const Answer alone = slipway_with({"simulate", bert, "--json", "--set", "schedule.name=" + cell("schedule.name")});
    EXPECT_THAT(alone.out, HasSubstr("\"step_time_s\": " + cell("step_time_s")));
    EXPECT_THAT(alone.out, HasSubstr("\"utilization\": " + cell("utilization")));
    EXPECT_EQ(cell("error"), "");
  }
}

TEST_F(StudyCommand, JsonHasTheFiguresOfTheTableAndTheReasonOfAPointWithout) {
  const Answer answer =
      slipway_with({"study", tiny, "--vary", "schedule.micro_batch=1,3", "--json", "--csv", path("s.csv")});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  EXPECT_THAT(json["varied"].get<std::vector<std::string>>(), ElementsAre("schedule.micro_batch"));
  ASSERT_EQ(json["points"].size(), 2U);
  EXPECT_EQ(json["points"][0]["set"]["schedule.micro_batch"], "1");
  const auto alone = nlohmann::json::parse(slipway_with({"simulate", tiny, "--json"}).out);
  for (const char* metric : {"step_time_s", "tokens_per_s", "mfu"}) EXPECT_EQ(json["points"][0][metric], alone[metric]);
  EXPECT_EQ(json["points"][0]["fits"], alone["fits"]);
  EXPECT_TRUE(json["points"][0]["fits"].is_boolean());
  const auto& needed = alone["needed_memory_bytes"];
  EXPECT_EQ(json["points"][0]["needed_memory_bytes"], *std::max_element(needed.begin(), needed.end()));
  EXPECT_FALSE(json["points"][1].contains("step_time_s"));
  EXPECT_THAT(json["points"][1]["error"].get<std::string>(), HasSubstr("global_batch"));
}

TEST_F(StudyCommand, AnImpossiblePointIsARowWithItsReasonAndStopsNobody) {
  const Answer answer = slipway_with({"study", tiny, "--vary", "schedule.micro_batch=1,3", "--csv", path("s.csv")});
  EXPECT_EQ(answer.status, status_done);
  EXPECT_THAT(answer.out, HasSubstr("Without results:\n  3: "));
  EXPECT_THAT(answer.out, HasSubstr("global_batch"));
  EXPECT_THAT(text_of(path("s.csv")), HasSubstr("global_batch = "));
  const Answer none = slipway_with({"study", tiny, "--vary", "schedule.micro_batch=3"});
  EXPECT_EQ(none.status, status_failed);
}

TEST_F(StudyCommand, ThePictureHasABarPerPointAndTheSameStudyTheSameBytes) {
  const std::vector<std::string> args{
      "study", bert, "--vary", "schedule.name=gpipe,1f1b", "--vary", "schedule.fill=kfac,none", "--plot"};
  std::vector<std::string> first = args, second = args;
  first.push_back(path("a.svg"));
  second.push_back(path("b.svg"));
  second.insert(second.end(), {"--jobs", "1"});
  ASSERT_EQ(slipway_with(first).status, status_done);
  ASSERT_EQ(slipway_with(second).status, status_done);
  const std::string svg = text_of(path("a.svg"));
  EXPECT_EQ(svg, text_of(path("b.svg")));
  EXPECT_THAT(svg, HasSubstr("<svg xmlns"));
  for (const char* text : {">gpipe<", ">1f1b<", ">kfac<", ">none<", ">schedule.fill<"})
    EXPECT_THAT(svg, HasSubstr(text));
  std::size_t dark = 0;
  for (std::size_t at = svg.find("fill-opacity=\"0.45\""); at != std::string::npos;
       at = svg.find("fill-opacity=\"0.45\"", at + 1))
    ++dark;
  EXPECT_EQ(dark, 4U);
}

TEST_F(StudyCommand, MistakesAreNamedBeforeAnythingIsSimulated) {
  const auto refusal = [](std::vector<std::string> args) {
    args.insert(args.begin(), {"study", bert});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_usage);
    return answer.err;
  };
  EXPECT_THAT(refusal({"--vary", "schedule.nam=gpipe"}), HasSubstr("there is no key 'schedule.nam'; did you mean"));
  EXPECT_THAT(refusal({"--vary", "schedule.name"}), HasSubstr("is no KEY=VALUE"));
  EXPECT_THAT(refusal({"--vary", "schedule.name=gpipe,"}), HasSubstr("is empty"));
  EXPECT_THAT(refusal({"--vary", "layout.pipeline=2,4 model.layers=8"}),
              HasSubstr("layout.pipeline has 2, model.layers 1"));
  EXPECT_THAT(refusal({"--figure", "speed"}), HasSubstr("there is no such figure"));
  EXPECT_THAT(refusal({"--csv", bert}), HasSubstr("would overwrite"));
  EXPECT_THAT(refusal({"nowhere.yaml", "--vary", "schedule.name=gpipe,1f1b"}), HasSubstr("cannot read 'nowhere.yaml'"));
}

TEST_F(StudyCommand, TheTableHasTheColumnsThatWereAskedFor) {
  const Answer answer =
      slipway_with({"study", bert, "--vary", "schedule.name=gpipe,1f1b", "--columns", "step_time_s,fits"});
  EXPECT_THAT(answer.out, testing::StartsWith("name   step time  fits\n"
                                              "gpipe     571 ms   yes\n"
                                              "1f1b      571 ms   yes\n\n"));
  const Answer wrong = slipway_with({"study", bert, "--columns", "steptime_s"});
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'step_time_s'"));
}

TEST_F(StudyCommand, KeysSpokenTwiceOneFileForTwoOutputsAndTooManyPointsAreRefused) {
  const auto refusal = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"study", bert});
    const Answer answer = slipway_with(more);
    EXPECT_EQ(answer.status, status_usage);
    return answer.err;
  };
  EXPECT_THAT(refusal({"--vary", "schedule.name=gpipe", "--vary", "schedule.name=1f1b"}), HasSubstr("varied twice"));
  EXPECT_THAT(refusal({"--vary", "schedule.name=gpipe", "--set", "schedule.name=1f1b"}), HasSubstr("varied as well"));
  EXPECT_THAT(refusal({"--csv", path("a"), "--plot", path("a")}), HasSubstr("the same file"));
  EXPECT_THAT(refusal({"--figure", "utilization"}), HasSubstr("give --plot"));
  std::string values;
  for (int i = 1; i <= 400; ++i) values += (i > 1 ? "," : "") + std::to_string(i);
  EXPECT_THAT(refusal({"--vary", "run.seed=" + values, "--vary", "run.steps=" + values}),
              HasSubstr("1 x 400 x 400 points"));
}

TEST_F(StudyCommand, WithoutAVariationItIsOnePoint) {
  const Answer answer = slipway_with({"study", bert});
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("88.7 %"));
}

}  // namespace
}  // namespace slipway::test
