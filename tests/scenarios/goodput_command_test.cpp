// slipway goodput, run in this process on an example scenario.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "scenarios/commands/command_line/command.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using Commands = CommandTest;

const std::string llama = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";

std::vector<std::string> goodput(std::vector<std::string> settings, const std::vector<std::string>& more = {}) {
  std::vector<std::string> args{"goodput", llama};
  for (const std::string& setting : settings) args.insert(args.end(), {"--set", setting});
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

nlohmann::json answered(const std::vector<std::string>& settings, std::vector<std::string> more = {}) {
  more.push_back("--json");
  const Answer answer = slipway_with(goodput(settings, more));
  EXPECT_EQ(answer.status, status_done) << answer.err;
  return nlohmann::json::parse(answer.out);
}

const std::vector<std::string> faults{"cluster.mtbf_per_node=400 h", "run.checkpoint_cost=40 s",
                                      "cluster.restart=5 min", "cluster.repair=2 h", "cluster.spare_nodes=1000"};

TEST_F(Commands, GoodputWithSparesEnoughIsDalysWithinItsError) {
  const auto json = answered(faults, {"--days", "40", "--histories", "100"});
  const double error = json["goodput_error"];
  EXPECT_GT(error, 0);
  EXPECT_NEAR(json["goodput"].get<double>(), json["closed_form_goodput"].get<double>(), 4 * error + 1e-3);
  EXPECT_NEAR(json["goodput"].get<double>() + json["checkpoint_share"].get<double>() +
                  json["lost_share"].get<double>() + json["restart_share"].get<double>() +
                  json["waiting_share"].get<double>(),
              1, 1e-9);
  EXPECT_EQ(json["waiting_share"].get<double>(), 0);
  EXPECT_EQ(json["nodes"].get<int>(), 8);
  // Young: the root of 2 · 40 s · 50 h.
  EXPECT_NEAR(json["young_interval_s"].get<double>(), std::sqrt(2 * 40 * 50 * 3600.0), 1e-6);
  EXPECT_NEAR(json["checkpoint_interval_s"].get<double>(), json["best_interval_s"].get<double>(),
              json["step_time_s"].get<double>());
  EXPECT_EQ(json["intervals_s"].size(), 5U);
}

TEST_F(Commands, APlannedFailureWithoutSparesCostsItsLostWorkRepairAndRestart) {
  const auto json = answered({"cluster.failures=[{at: 36 h}]", "run.checkpoint_interval=1 h", "run.checkpoint_cost=0 s",
                              "cluster.restart=10 min", "cluster.repair=3 h"},
                             {"--days", "2"});
  EXPECT_EQ(json["histories"].get<int>(), 1);
  const double interval = json["checkpoint_interval_s"], two_days = 2 * 86400;
  EXPECT_NEAR(interval, 3600, json["step_time_s"].get<double>());
  EXPECT_NEAR(json["lost_share"].get<double>(), std::fmod(36 * 3600, interval) / two_days, 1e-9);
  EXPECT_NEAR(json["waiting_share"].get<double>(), 3 * 3600 / two_days, 1e-9);
  EXPECT_NEAR(json["restart_share"].get<double>(), 600 / two_days, 1e-9);
  EXPECT_FALSE(json.contains("best_interval_s"));
  EXPECT_FALSE(json.contains("goodput_error")) << "of one history no error is known";
}

TEST_F(Commands, WhereCheckpointsCostNothingOneAfterEveryStepIsBest) {
  std::vector<std::string> settings = faults;
  settings[1] = "run.checkpoint_cost=0 s";
  const auto json = answered(settings, {"--histories", "20"});
  EXPECT_EQ(json["best_interval_s"].get<double>(), 0);
  EXPECT_EQ(json["young_interval_s"].get<double>(), 0);
  EXPECT_EQ(json["checkpoint_steps"].get<int>(), 1);
  // Daly with τ = a step, δ = 0, R = 300 s, M = 50 h.
  const double step = json["step_time_s"], m = 50 * 3600;
  EXPECT_NEAR(json["closed_form_goodput"].get<double>(), step / m * std::exp(-300 / m) / std::expm1(step / m), 1e-12);
  const Answer words = slipway_with(goodput(settings, {"--histories", "20"}));
  EXPECT_THAT(words.out,
              HasSubstr("A checkpoint costs nothing here (run.checkpoint_cost), so one after every step is best"));
}

TEST_F(Commands, TheErrorOfTwoHistoriesIsHalfOfTheirDifference) {
  const auto alone = [](const char* seed) {  // a mean over the history of this seed and of the next
    std::vector<std::string> settings = faults;
    settings.push_back(std::string("run.seed=") + seed);
    return answered(settings, {"--histories", "2"});
  };
  std::vector<std::string> three = faults;
  three.push_back("run.seed=7");
  const auto first = alone("7"), second = alone("8"), all = answered(three, {"--histories", "3"});
  // With x, y, z the three goodputs: the means of (x, y), (y, z) and (x, y, z) give all of them.
  const double a = first["goodput"], b = second["goodput"], c = all["goodput"];
  const double x = 3 * c - 2 * b, y = 2 * a - x;
  EXPECT_GT(std::abs(x - y), 0);
  EXPECT_NEAR(first["goodput_error"].get<double>(), std::abs(x - y) / 2, 1e-12);
}

TEST_F(Commands, GoodputTakesTheStepsBetweenCheckpointsOfTheRunWhereNoIntervalIsGiven) {
  std::vector<std::string> settings = faults;
  settings.push_back("run.checkpoint_steps=123");
  EXPECT_EQ(answered(settings, {"--histories", "2"})["checkpoint_steps"].get<int>(), 123);
}

TEST_F(Commands, GoodputSaysTheSameInWordsAndTheSameAgain) {
  const Answer first = slipway_with(goodput(faults)), second = slipway_with(goodput(faults));
  EXPECT_EQ(first.status, status_done) << first.err;
  EXPECT_THAT(first.err, IsEmpty());
  EXPECT_THAT(first.out, HasSubstr("8 nodes, each failing every 16.7 days on average"));
  EXPECT_THAT(first.out, HasSubstr("The best interval between checkpoints is "));
  EXPECT_EQ(first.out, second.out);
}

TEST_F(Commands, GoodputPrintsOneUnitAColumnAndTheErrorOfEachMean) {
  const std::string out = slipway_with(goodput(faults)).out;
  EXPECT_THAT(out, testing::ContainsRegex("; [0-9.]+ ± 0\\.[0-9]+ failures \\(means over 1000 histories"));
  EXPECT_THAT(out, testing::ContainsRegex("standard error of the goodput 0\\.[0-9]*[1-9][0-9]* %\\)"));
  std::istringstream lines(out.substr(out.find("\n  checkpoint every ") + 1));
  std::string line;
  std::getline(lines, line);  // the heading
  for (int row = 0; row < 5 && std::getline(lines, line); ++row)
    EXPECT_THAT(line, testing::ContainsRegex("^  [0-9.]+ h "));
  const std::string many =
      slipway_with(goodput({"cluster.mtbf_per_node=10 min", "run.checkpoint_cost=1 s"}, {"--histories", "2"})).out;
  EXPECT_THAT(many, testing::ContainsRegex("; [0-9]+,[0-9]{3} ± [0-9,]+ failures"));
}

// 8 nodes of 400 h over D days fail 8·24·D/400 times on average.
TEST_F(Commands, TheMeanNumberOfFailuresIsWithinItsErrorOfTheExpectation) {
  for (const std::string days : {"40", "0.5"}) {
    const auto json = answered(faults, {"--days", days});
    const double expected = 8 * 24 * std::stod(days) / 400;
    EXPECT_NEAR(json["failures"].get<double>(), expected, 4 * json["failures_error"].get<double>());
    EXPECT_NEAR(json["failures_error"].get<double>(), std::sqrt(expected / 1000), 0.15 * std::sqrt(expected / 1000));
  }
  for (const std::string days : {"0", "-1", "x"})
    EXPECT_THAT(slipway_with(goodput(faults, {"--days", days})).err, HasSubstr("'" + days + "' is no number above 0"));
}

TEST_F(Commands, MoreFailuresThanCanBeSimulatedAreRefusedBeforeTheyAre) {
  std::vector<std::string> settings = faults;
  settings[0] = "cluster.mtbf_per_node=1 ms";
  for (const auto& more : {std::vector<std::string>{}, {"--days", "1000000", "--histories", "2"}}) {
    const Answer answer = slipway_with(goodput(settings, more));
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_THAT(answer.err, HasSubstr("cluster.mtbf_per_node = 1.00 ms on 8 nodes is a failure every 125 µs"));
    EXPECT_THAT(answer.err,
                HasSubstr("allowed: up to 1e9; raise cluster.mtbf_per_node, or lower --days or --histories"));
  }
}

TEST_F(Commands, GoodputAsksForTheKeysThatAreMissing) {
  Answer answer = slipway_with({"goodput", llama});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("cluster.mtbf_per_node is missing"));
  answer = slipway_with(goodput({"cluster.mtbf_per_node=400 h"}));
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("run.checkpoint_cost is missing"));
  answer = slipway_with(goodput({"cluster.failures=[{at: 1 h}]", "run.checkpoint_cost=1 s"}));
  EXPECT_THAT(answer.err, HasSubstr("run.checkpoint_interval is missing"));
}

TEST_F(Commands, GoodputRefusesMoreFailuresAtOnceThanThereAreNodes) {
  const std::vector<std::string> rest{"run.checkpoint_cost=1 s", "run.checkpoint_interval=1 h"};
  const auto with = [&](const std::string& failures) {
    std::vector<std::string> settings = rest;
    settings.push_back("cluster.failures=" + failures);
    return slipway_with(goodput(settings));
  };
  const Answer answer = with("[{at: 1 h, nodes: 8}, {at: 2 h, nodes: 9}]");
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("cluster.failures.1.nodes: 9 nodes cannot fail at once: the cluster has 8"));
  EXPECT_THAT(answer.err, HasSubstr("lower it, or raise the number of nodes"));
  EXPECT_EQ(with("[{at: 1 h, nodes: 8}]").status, status_done);
}

TEST_F(Commands, EveryKeyOfGoodputJsonIsDocumented) {
  std::vector<std::string> emitted;
  auto json = answered(faults);
  std::vector<std::string> trained = faults;
  trained.emplace_back("cluster.trainer=nanotron");
  json.update(answered(trained));  // adds other keys of the basis of a step's time
  for (const auto& [key, value] : json.items()) emitted.push_back(key);
  EXPECT_THAT(emitted, testing::UnorderedElementsAreArray(outermost(answers_of("goodput").front())));
}

}  // namespace
}  // namespace slipway::test
