// Output of `slipway simulate` for slow GPUs and links.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::Not;

using Commands = CommandTest;

const std::string llama = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";

nlohmann::json simulated(std::vector<std::string> options) {
  std::vector<std::string> args{"simulate", llama, "--json"};
  for (const std::string& option : options) args.insert(args.end(), {"--set", option});
  const Answer answer = slipway_with(args);
  EXPECT_EQ(answer.status, status_done) << answer.err;
  return nlohmann::json::parse(answer.out);
}

TEST_F(Commands, SimulateSaysWhatStragglersCostAndWhoWaits) {
  const Answer answer =
      slipway_with({"simulate", llama, "--set", "cluster.stragglers=[{node: 5, gpu: 2, slowdown: 1.5}]"});
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("Degradation (1 slow GPU, 0 slow ports) costs "));
  EXPECT_THAT(answer.out, HasSubstr("1.5 x, rank 42"));
  EXPECT_THAT(slipway_with({"simulate", llama}).out, Not(HasSubstr("Degradation")));
}

TEST_F(Commands, AnEntryForAllPortsOfANodeIsAsManySlowPortsAsTheNodeHas) {
  const Answer answer =
      slipway_with({"simulate", llama, "--set",
                    "cluster.slow_links=[{node: 1, bandwidth: 0.5}, {node: 3, gpu: 0, bandwidth: 0.5}]"});
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("Degradation (0 slow GPUs, 9 slow ports) costs "));
}

TEST_F(Commands, TheHealthyStepIsThatOfTheScenarioWithoutStragglers) {
  const auto plain = simulated({}), slow = simulated({"cluster.stragglers=[{node: 0, slowdown: 1.5}]"});
  EXPECT_NEAR(slow["healthy_step_time_s"].get<double>(), plain["step_time_s"].get<double>(), 1e-9);
  EXPECT_NEAR(slow["degradation_s"].get<double>(),
              slow["step_time_s"].get<double>() - plain["step_time_s"].get<double>(), 1e-9);
  EXPECT_GT(slow["degradation_s"].get<double>(), 0);
  ASSERT_EQ(slow["waiting_s"].size(), 4U);
  // Later pipeline ranks wait longer for the first; none of them computes longer.
  for (int p = 1; p < 4; ++p) EXPECT_GT(slow["waiting_s"][p].get<double>(), slow["healthy_waiting_s"][p].get<double>());
  EXPECT_FALSE(plain.contains("degradation_s"));
}

TEST_F(Commands, SoundGpusOfWholeSlowNodesAreStillSimulatedOnce) {
  const auto plain = simulated({}), node = simulated({"cluster.stragglers=[{node: 0, slowdown: 1.5}]"}),
             gpu = simulated({"cluster.stragglers=[{node: 0, gpu: 3, slowdown: 1.5}]"});
  EXPECT_LT(node["simulated_ranks"].get<int>(), 64);
  EXPECT_EQ(gpu["simulated_ranks"].get<int>(), 64);
  EXPECT_GE(node["simulated_ranks"].get<int>(), plain["simulated_ranks"].get<int>());
}

TEST_F(Commands, SimulateSaysWhatUnevenRoutingCosts) {
  const std::string mixtral = SLIPWAY_SOURCE_DIR "/scenarios/examples/mixtral-8x7b-64xh100.yaml";
  const auto step = [&](std::vector<std::string> options) {
    std::vector<std::string> args{
        "simulate", mixtral, "--json", "--set", "layout.expert=8", "--set", "layout.expert_tensor=1"};
    for (const std::string& option : options) args.insert(args.end(), {"--set", option});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return nlohmann::json::parse(answer.out);
  };
  const auto balanced = step({}), skewed = step({"run.routing_skew=0.5"});
  EXPECT_FALSE(balanced.contains("routing_skew_s"));
  EXPECT_GT(skewed["routing_load"].get<double>(), 1);
  EXPECT_GT(skewed["routing_skew_s"].get<double>(), 0);
  EXPECT_NEAR(skewed["routing_skew_s"].get<double>(),
              skewed["step_time_s"].get<double>() - balanced["step_time_s"].get<double>(), 1e-9);
}

TEST_F(Commands, StragglersAreRefusedBesideAnotherJob) {
  const Answer answer =
      slipway_with({"simulate", llama, "--beside", llama, "--set", "cluster.slow_links=[{node: 1, bandwidth: 0.5}]"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("remove cluster.stragglers, slow_links and link_factors"));
}

TEST_F(Commands, TheSameSeedGivesTheSameBytes) {
  const std::vector<std::string> args{"simulate", llama, "--set", "cluster.stragglers=[{sigma: 0.05}]", "--trace"};
  std::vector<std::string> first = args, second = args;
  first.push_back(path("a.json")), second.push_back(path("b.json"));
  EXPECT_EQ(slipway_with(first).status, status_done);
  EXPECT_EQ(slipway_with(second).status, status_done);
  EXPECT_EQ(text_of(path("a.json")), text_of(path("b.json")));
  EXPECT_FALSE(text_of(path("a.json")).empty());
}

}  // namespace
}  // namespace slipway::test
