// Every command that predicts a time has the 90 % interval that simulate gives to the same step: in its JSON, its text,
// its CSV and the cards of its page.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "scenarios/predict/readable.h"
#include "tests/support/command_test.h"
#include "tests/support/growth_asked.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Intervals : public CommandTest {
 protected:
  std::string in_words(double low_s, double high_s) {
    return readable_seconds(low_s) + " to " + readable_seconds(high_s);
  }
  nlohmann::json simulated(const std::vector<std::string>& more = {}) {
    std::vector<std::string> args{"simulate", llama_8b, "--json"};
    args.insert(args.end(), more.begin(), more.end());
    return nlohmann::json::parse(slipway_with(args).out);
  }
  std::string text(std::vector<std::string> args) {
    args.insert(args.end(), {"--report", path("a.html")});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return answer.out;
  }
  std::string page() const { return text_of(path("a.html")); }
};

TEST_F(Intervals, OfAStudyAreSimulatesInTableCsvJsonAndOnThePage) {
  const nlohmann::json alone = simulated();
  const double low = alone["step_time_low_s"], high = alone["step_time_high_s"];
  const std::string words = in_words(low, high);
  EXPECT_THAT(text({"study", llama_8b, "--csv", path("s.csv")}),
              testing::AllOf(HasSubstr("90 % interval"), HasSubstr(words)));
  EXPECT_THAT(page(), HasSubstr("90 % interval: " + words));
  const std::string csv = text_of(path("s.csv"));
  EXPECT_THAT(csv, HasSubstr(",step_time_s,step_time_low_s,step_time_high_s,"));
  EXPECT_THAT(csv, HasSubstr("," + alone["step_time_low_s"].dump() + "," + alone["step_time_high_s"].dump() + ","));
  const nlohmann::json point = nlohmann::json::parse(slipway_with({"study", llama_8b, "--json"}).out)["points"][0];
  EXPECT_EQ(point["step_time_low_s"], alone["step_time_low_s"]);
  EXPECT_EQ(point["step_time_high_s"], alone["step_time_high_s"]);
}

TEST_F(Intervals, OfAStudyOfCpuRanksWithoutAFitAreAbsent) {
  const std::string cpu = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";
  ASSERT_FALSE(nlohmann::json::parse(slipway_with({"simulate", cpu, "--json"}).out).contains("step_time_low_s"));
  EXPECT_THAT(text({"study", cpu}), Not(HasSubstr("90 % interval")));
  EXPECT_THAT(page(), HasSubstr("no interval"));
}

TEST_F(Intervals, OfGoodputAreOfTheStepAndOfTokensADayWhichAreAtLeastAsWide) {
  const std::vector<std::string> asked{"goodput",     llama_8b,
                                       "--histories", "40",
                                       "--set",       "cluster.mtbf_per_node=400 h",
                                       "--set",       "run.checkpoint_cost=40 s",
                                       "--set",       "cluster.restart=5 min"};
  std::vector<std::string> as_json = asked;
  as_json.emplace_back("--json");
  const nlohmann::json alone = simulated(), json = nlohmann::json::parse(slipway_with(as_json).out);
  const double low = alone["step_time_low_s"], high = alone["step_time_high_s"], step = json["step_time_s"];
  EXPECT_NEAR(json["step_time_low_s"].get<double>(), low, 1e-9 * low);
  EXPECT_NEAR(json["step_time_high_s"].get<double>(), high, 1e-9 * high);
  EXPECT_LE(json["goodput_low"], json["goodput"]);
  EXPECT_GE(json["goodput_high"], json["goodput"]);
  const double tokens = json["tokens_per_day"];
  EXPECT_LE(json["tokens_per_day_low"].get<double>(), tokens * step / high);
  EXPECT_GE(json["tokens_per_day_high"].get<double>(), tokens * step / low);
  const std::string words = text(asked);
  EXPECT_THAT(words, HasSubstr("90 % interval: " + in_words(low, high)));
  EXPECT_LT(words.find("90 % of histories: "), words.find("checkpoint every"));
  EXPECT_THAT(page(), HasSubstr("90 % of histories: "));
  EXPECT_THAT(page(), HasSubstr("90 % interval: " + in_words(low, high)));
}

TEST_F(Intervals, OfAConstantBatchsTrainingIsThatOfItsStepTimesItsSteps) {
  const nlohmann::json alone = simulated({"--set", "schedule.global_batch=32"});
  const nlohmann::json json = answered({"--set", "training.growth.rule=constant"});
  const nlohmann::json& target = json["rules"][0]["target"];
  const double low = target["steps"].get<double>() * alone["step_time_low_s"].get<double>(),
               high = target["steps"].get<double>() * alone["step_time_high_s"].get<double>();
  EXPECT_NEAR(target["time_low_s"].get<double>(), low, 1e-6 * low);
  EXPECT_NEAR(target["time_high_s"].get<double>(), high, 1e-6 * high);
  EXPECT_EQ(json["time_to_target_low_s"], target["time_low_s"]);
  EXPECT_EQ(json["rungs"][0]["step_time_low_s"], alone["step_time_low_s"]);
  const std::string words = text(asked({"--set", "training.growth.rule=constant"}));
  EXPECT_LT(words.find(" (90 % interval: " + in_words(low, high) + ")"), words.find('\n', words.find("Loss 2.5")));
  EXPECT_THAT(page(), HasSubstr("90 % interval: " + in_words(low, high)));
}

TEST_F(Intervals, OfTwoJobsAreThoseOfEachAloneAndAsWideBesideTheOther) {
  const nlohmann::json alone = simulated();
  const std::vector<std::string> both{"simulate", llama_8b, "--beside", llama_8b};
  std::vector<std::string> as_json = both;
  as_json.emplace_back("--json");
  const nlohmann::json json = nlohmann::json::parse(slipway_with(as_json).out);
  const double width = std::log(alone["step_time_high_s"].get<double>() / alone["step_time_low_s"].get<double>());
  for (const int job : {0, 1}) {
    for (const std::string name : {"alone", "beside"}) {
      const double low = json[name + "_low_s"][job], high = json[name + "_high_s"][job];
      EXPECT_NEAR(std::log(high / low), width, 1e-2 * width) << name;
      EXPECT_NEAR(std::sqrt(low * high), json[name + "_s"][job].get<double>(), 1e-9 * high) << name;
    }
  }
  EXPECT_THAT(slipway_with(both).out, HasSubstr("90 % interval"));
}

}  // namespace
}  // namespace slipway::test
