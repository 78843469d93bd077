// `slipway explain` as a command: its answer, its keys, its refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "scenarios/predict/readable.h"
#include "scenarios/search/explanation.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";
const std::string llama = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";

class ExplainCommand : public CommandTest {
 protected:
  // Its JSON.
  static nlohmann::json explained(std::vector<std::string> args) {
    args.insert(args.begin(), "explain");
    args.push_back("--json");
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return nlohmann::json::parse(answer.out);
  }
};

TEST_F(ExplainCommand, AnswersFirstInOneParagraphThenInTables) {
  const Answer answer = slipway_with({"explain", llama});
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, StartsWith("A step takes "));
  for (const char* part : {"Where a step goes", "critical path", "matrix products", "tensor messages", "bubble",
                           "twice as", "NVLink bandwidth", "Levers, each alone", "--set '"})
    EXPECT_THAT(answer.out, HasSubstr(part));
}

TEST_F(ExplainCommand, IsEightyColumnsWide) {
  for (const auto& args : std::vector<std::vector<std::string>>{{llama}, {llama, "--measured", "9 s"}, {tiny}}) {
    std::vector<std::string> all{"explain"};
    all.insert(all.end(), args.begin(), args.end());
    std::istringstream lines(slipway_with(all).out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
  }
}

TEST_F(ExplainCommand, ItsStepIsThatOfSimulate) {
  const auto answer = explained({llama});
  const Answer simulated = slipway_with({"simulate", llama, "--json"});
  const auto other = nlohmann::json::parse(simulated.out);
  EXPECT_EQ(answer["step_time_s"], other["step_time_s"]);
  EXPECT_EQ(answer["step_time_low_s"], other["step_time_low_s"]);
  EXPECT_EQ(answer["fit_probability"], other["fit_probability"]);
}

// K-FAC's work of a window of several steps: the step is that of simulate, and its kernels are a part of it.
TEST_F(ExplainCommand, ExplainsAStepWhoseBubblesAreFilled) {
  const std::string bert = SLIPWAY_SOURCE_DIR "/scenarios/studies/pipefisher-2022/bert-base.yaml";
  const auto answer = explained({bert});
  const auto simulated = nlohmann::json::parse(slipway_with({"simulate", bert, "--json"}).out);
  EXPECT_EQ(answer["step_time_s"], simulated["step_time_s"]);
  std::map<std::string, double> spent;
  double ranks = 0, path = 0;
  for (const auto& part : answer["spent"]) {
    ranks += spent[part["part"]] = part["rank_s"];
    path += part["path_s"].get<double>();
  }
  const double step_s = answer["step_time_s"];
  EXPECT_NEAR(ranks, step_s, 1e-6 * step_s);
  EXPECT_NEAR(path, step_s, 0.002 * step_s);
  EXPECT_GT(spent["bubble work"], 0);
  EXPECT_NEAR(spent["measured blocks"] + spent["optimizer"] + spent["bubble work"],
              simulated["compute_share"].get<double>() * step_s, 1e-6 * step_s);
  EXPECT_NEAR(spent["bubble"], simulated["bubble_share"].get<double>() * step_s, 1e-6 * step_s);
  const auto slow = explained({bert, "--measured", "10 s"});
  EXPECT_FALSE(slow["measured"]["causes"].empty());
}

TEST_F(ExplainCommand, PartsSumToTheStep) {
  for (const std::string& path : {llama, tiny}) {
    const auto answer = explained({path});
    double ranks = 0, on_path = 0;
    for (const auto& part : answer["spent"])
      ranks += part["rank_s"].get<double>(), on_path += part["path_s"].get<double>();
    const double step = answer["step_time_s"], replayed = answer["replayed_s"];
    EXPECT_NEAR(ranks, step, 1e-9 * step);
    EXPECT_NEAR(on_path, replayed, 0.002 * replayed);
  }
}

TEST_F(ExplainCommand, LeversAreThoseOfSimulateWithTheirSettings) {
  const auto answer = explained({llama});
  const auto best = answer["levers"][0];
  ASSERT_TRUE(best["simulated"]);
  std::vector<std::string> args{"simulate", llama, "--json"};
  for (const auto& setting : best["settings"]) args.insert(args.end(), {"--set", setting.get<std::string>()});
  const Answer simulated = slipway_with(args);
  ASSERT_EQ(simulated.status, status_done) << simulated.err;
  EXPECT_NEAR(nlohmann::json::parse(simulated.out)["step_time_s"].get<double>(), best["step_s"].get<double>(),
              1e-9 * best["step_s"].get<double>());
  EXPECT_NEAR(best["gain"].get<double>(), 1 - best["step_s"].get<double>() / answer["step_time_s"].get<double>(),
              1e-12);
}

TEST_F(ExplainCommand, AMeasuredStepInsideTheIntervalIsSaidToBe) {
  const double step = explained({llama})["step_time_s"];
  const auto answer = explained({llama, "--measured", std::to_string(1.01 * step) + " s"});
  EXPECT_TRUE(answer["measured"]["inside"]);
  EXPECT_THAT(answer["answer"].get<std::string>(), HasSubstr("inside its 90 % interval"));
}

TEST_F(ExplainCommand, AMeasuredStepOutsideHasCausesByTheirDeviation) {
  const double step = explained({llama})["step_time_s"];
  const auto answer = explained({llama, "--measured", std::to_string(2 * step) + " s"});
  EXPECT_FALSE(answer["measured"]["inside"]);
  const auto& causes = answer["measured"]["causes"];
  ASSERT_GE(causes.size(), 3);
  for (std::size_t i = 0; i < causes.size(); ++i) {
    EXPECT_LT(causes[i]["speed"].get<double>(), 1) << causes[i];
    if (i > 0) {
      EXPECT_LE(causes[i - 1]["deviation"].get<double>(), causes[i]["deviation"].get<double>());
    }
  }
}

// Rates of the same step: tokens of a step by its seconds, and Megatron's count by GPUs and seconds.
TEST_F(ExplainCommand, AMeasurementMayBeTokensOrFlopsPerSecond) {
  const auto simulated = nlohmann::json::parse(slipway_with({"simulate", llama, "--json"}).out);
  const double step = simulated["step_time_s"];
  for (const std::string& text : {std::to_string(simulated["tokens_per_s"].get<double>()) + " tokens/s",
                                  std::to_string(simulated["megatron_tflops_per_gpu"].get<double>()) + " TFLOP/s"})
    EXPECT_NEAR(explained({llama, "--measured", text})["measured"]["step_s"].get<double>(), step, 1e-5 * step) << text;
}

TEST_F(ExplainCommand, FindsTheSlowRankOfATrace) {
  const std::vector<std::string> more{"--set", "cluster.nodes=2", "--set", "layout.pipeline=2",
                                      "--set", "layout.data=2",   "--set", "model.hidden=256",
                                      "--set", "model.ffn=640"};
  std::vector<std::string> args{"simulate", tiny, "--trace", path("slow.json"),
                                "--steps",  "4",  "--set",   "cluster.stragglers=[{node: 1, gpu: 0, slowdown: 1.4}]"};
  args.insert(args.end(), more.begin(), more.end());
  ASSERT_EQ(slipway_with(args).status, status_done);
  args = {tiny, "--run", path("slow.json")};
  args.insert(args.end(), more.begin(), more.end());
  const auto answer = explained(args);
  EXPECT_EQ(answer["trace"]["causes"][0]["id"], "gpu:2");
  EXPECT_NEAR(answer["trace"]["causes"][0]["speed"].get<double>(), 1 / 1.4, 0.01);
  EXPECT_THAT(answer["answer"].get<std::string>(), HasSubstr("GPU of rank 2"));
}

TEST_F(ExplainCommand, RefusesInOneLineWithStatusTwo) {
  const auto refused = [](const std::vector<std::string>& args, const std::string& words) {
    std::vector<std::string> all{"explain"};
    all.insert(all.end(), args.begin(), args.end());
    const Answer answer = slipway_with(all);
    EXPECT_EQ(answer.status, status_usage) << words;
    EXPECT_THAT(answer.err, HasSubstr(words));
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
    EXPECT_EQ(answer.out, "");
  };
  refused({tiny, "--measured", "fast"}, "--measured fast is no step time; allowed: seconds");
  refused({tiny, "--measured", "-1 s"}, "is no step time");
  refused({tiny, "--run", path("nothing.json")}, "nothing.json");
  refused({}, "scenario");
}

TEST_F(ExplainCommand, ATraceOfAnotherLayoutIsRefused) {
  ASSERT_EQ(slipway_with({"simulate", tiny, "--trace", path("t.json")}).status, status_done);
  const Answer answer = slipway_with({"explain", tiny, "--set", "cluster.nodes=2", "--run", path("t.json")});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("the trace has 2 ranks and the scenario 4"));
}

TEST_F(ExplainCommand, TheSameScenarioGivesTheSameBytes) {
  EXPECT_EQ(slipway_with({"explain", tiny, "--json"}).out, slipway_with({"explain", tiny, "--json"}).out);
}

}  // namespace
}  // namespace slipway::test
