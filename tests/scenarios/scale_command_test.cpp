// `simulate` at scale: represented ranks and periods are left out, and the answer is the same.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string scale = SLIPWAY_SOURCE_DIR "/scenarios/studies/scale/";

class Scale : public CommandTest {
 protected:
  nlohmann::json summary_of(std::vector<std::string> args) {
    args.insert(args.begin(), "simulate");
    args.push_back("--json");
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return nlohmann::json::parse(answer.out);
  }

  // Slopes sum over as many tasks as were simulated.
  void expect_same_slopes(const nlohmann::json& a, const nlohmann::json& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i]["constant"], b[i]["constant"]);
      EXPECT_NEAR(a[i]["percent"].get<double>(), b[i]["percent"].get<double>(), 1e-9) << a[i]["constant"];
    }
  }

  // Compares everything but the fields about how it was simulated.
  void expect_same_answer(const nlohmann::json& a, const nlohmann::json& b) {
    for (const auto& [key, value] : a.items()) {
      if (key == "tasks" || key == "simulate_wall_s" || key.starts_with("simulated_")) continue;
      if (key == "sensitivities")
        expect_same_slopes(value, b[key]);
      else if (value.is_number_float())
        EXPECT_NEAR(value.get<double>(), b[key].get<double>(), 1e-9 * std::abs(value.get<double>())) << key;
      else
        EXPECT_EQ(value, b[key]) << key;
    }
  }
};

TEST_F(Scale, RanksThatDoTheSameAreSimulatedOnceAndTheAnswerIsThatOfAll) {
  const std::string llama = scale + "llama-8b-64xh100.yaml";
  const nlohmann::json represented = summary_of({llama}), all = summary_of({llama, "--exact"});
  EXPECT_EQ(represented["simulated_ranks"], 4);
  EXPECT_EQ(all["simulated_ranks"], 64);
  EXPECT_GT(all["tasks"].get<int>(), 8 * represented["tasks"].get<int>());
  expect_same_answer(represented, all);
}

TEST_F(Scale, AHundredThousandRanksAreSimulatedAsOnePerPipelineRank) {
  const std::string llama = scale + "llama-405b-131072xh100.yaml";
  EXPECT_EQ(summary_of({llama})["simulated_ranks"], 16);
  const Answer answer = slipway_with({"simulate", llama});
  EXPECT_THAT(answer.out, HasSubstr("Simulated 16 of 131,072 ranks; the rest are identical."));
  EXPECT_THAT(answer.out, HasSubstr("fits: yes"));
}

TEST_F(Scale, NoRankHasARepresentativeWhereAllDiffer) {
  const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";
  EXPECT_THAT(slipway_with({"simulate", tiny}).out, Not(HasSubstr("the rest are identical")));
}

TEST_F(Scale, WhereNoRankHasARepresentativeTheReasonIsPrinted) {
  const std::string llama = scale + "llama-8b-64xh100.yaml";
  const auto said = [&](const std::string& setting) { return slipway_with({"simulate", llama, "--set", setting}).out; };
  const std::string network =
      "cluster.fabrics=[{scope: node, bandwidth: 450 GB/s, latency: 1 us}, {scope: cluster, bandwidth: 50 GB/s, "
      "latency: 5 us, topology: {kind: fat-tree, shape: [16], oversubscription: ";
  EXPECT_THAT(said(network + "2}}]"),
              HasSubstr("Simulated all 64 ranks: messages share links of a fabric's topology."));
  EXPECT_THAT(said(network + "1}}]"), HasSubstr("Simulated 4 of 64 ranks")) << "a full fat-tree is as good as a star";
  EXPECT_THAT(said("schedule.name=chimera"), HasSubstr("Simulated 4 of 64 ranks"))
      << "both copies of the model do the same";
  EXPECT_THAT(said("cluster.stragglers=[{node: 0, gpu: 3, slowdown: 1.5}]"),
              HasSubstr("Simulated all 64 ranks: no representative ranks exist for all pipeline ranks"));
  EXPECT_THAT(slipway_with({"simulate", llama, "--all-ranks"}).out, Not(HasSubstr("Simulated all")));
}

TEST_F(Scale, RunsOfTasksThatNobodyElseSeesAreSimulatedAsOneAndTheAnswerIsThatOfTaskByTask) {
  const std::string llama = scale + "llama-8b-64xh100.yaml";
  for (const std::string sequence_parallel : {"false", "true"}) {
    const std::string set = "layout.sequence_parallel=" + sequence_parallel;
    const nlohmann::json chained = summary_of({llama, "--set", set, "--all-ranks"}),
                         exact = summary_of({llama, "--set", set, "--exact"});
    EXPECT_EQ(chained["simulated_ranks"], 64);
    EXPECT_EQ(chained["tasks"], exact["tasks"]);
    EXPECT_EQ(exact["simulated_units"], exact["tasks"]);
    EXPECT_LT(7 * chained["simulated_units"].get<int>(), exact["tasks"].get<int>());
    expect_same_answer(chained, exact);
  }
}

TEST_F(Scale, MicroBatchesThatRepeatOthersAreLeftOutAndTheAnswerIsThatOfAll) {
  const std::string llama = scale + "llama-8b-64xh100.yaml", batch = "schedule.global_batch=512";
  const nlohmann::json part = summary_of({llama, "--set", batch}),
                       whole = summary_of({llama, "--set", batch, "--whole"});
  EXPECT_EQ(whole["simulated_micro_batches"], 256);
  EXPECT_LT(part["simulated_micro_batches"].get<int>(), 64);
  expect_same_answer(part, whole);
  EXPECT_THAT(slipway_with({"simulate", llama, "--set", batch}).out,
              HasSubstr(" of 256 micro-batches; the rest repeat every "));
  EXPECT_THAT(slipway_with({"simulate", llama, "--set", batch, "--set", "schedule.name=gpipe"}).out,
              Not(HasSubstr("repeat")));
}

TEST_F(Scale, ExactLeavesNothingOut) {
  const std::string llama = scale + "llama-8b-64xh100.yaml", batch = "schedule.global_batch=240";
  const nlohmann::json part = summary_of({llama, "--set", batch}),
                       exact = summary_of({llama, "--set", batch, "--exact"});
  EXPECT_LT(part["simulated_micro_batches"].get<int>(), 120);
  EXPECT_EQ(exact["simulated_micro_batches"], 120);
  EXPECT_EQ(exact["simulated_ranks"], 64);
  EXPECT_EQ(exact["simulated_units"], exact["tasks"]);
  expect_same_answer(part, exact);
}

}  // namespace
}  // namespace slipway::test
