// `slipway execute` with a growing batch, with ranks over Gloo: it trains like a run resumed with other batches, is
// killed and resumed, run in one process and in several, and predicted. Impossible scenarios are refused.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/executing_test.h"

namespace slipway::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";  // two ranks
const std::string two_workers = "layout={data: 2}";
const std::string by_norms = "training.growth={rule: norm-test, largest: 32, eta: 0.3, sizes: 4}";
const std::string by_stages = "training.growth={rule: stages, largest: 16, stages: [{from: 20, batch: 16}]}";

class ExecuteGrowth : public ExecutingTest {
 protected:
  Answer execute(const std::string& folder, const std::vector<std::string>& settings,
                 const std::vector<std::string>& options = {}) const {
    std::vector<std::string> args{"execute", tiny, "--out", path(folder)};
    for (const std::string& setting : settings) args.insert(args.end(), {"--set", setting});
    args.insert(args.end(), options.begin(), options.end());
    return slipway_with(args);
  }
  nlohmann::json trained(const std::string& folder, std::vector<std::string> settings,
                         std::vector<std::string> options = {}) const {
    options.emplace_back("--json");
    const Answer answer = execute(folder, settings, options);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return answer.status == status_done ? nlohmann::json::parse(answer.out) : nlohmann::json();
  }
};

std::vector<int> batches_in(const nlohmann::json& run) {
  std::vector<int> batches;
  for (const auto& each : run.at("batches"))
    for (int step = each.at("first_step"); step <= each.at("last_step"); ++step) batches.push_back(each.at("batch"));
  return batches;
}

TEST_F(ExecuteGrowth, TrainsToTheLastBitAsRunsThatAreResumedWithTheNextBatch) {
  const nlohmann::json grown = trained("grown", {by_stages, "run.steps=6"});
  EXPECT_THAT(batches_in(grown), ElementsAre(8, 8, 8, 16, 16, 16));
  trained("byhand", {"run.steps=3", "run.checkpoint_steps=4"});
  const nlohmann::json by_hand = trained("byhand", {"run.steps=6", "schedule.global_batch=16"}, {"--resume", "latest"});
  EXPECT_EQ(grown["losses"], by_hand["losses"]);
  EXPECT_THAT(text_of(path("grown/losses.csv")), HasSubstr("step,samples,loss,learning_rate,batch\n1,8,"));
  EXPECT_THAT(text_of(path("grown/losses.csv")), HasSubstr("\n4,40,"));
}

TEST_F(ExecuteGrowth, TheNormTestDecidesAlikeInOneProcessAndInSeveralAndAfterACheckpoint) {
  const std::vector<std::string> settings{two_workers, by_norms, "training.growth.test_every=2", "run.steps=8",
                                          "run.checkpoint_steps=4"};
  const nlohmann::json whole = trained("whole", settings);
  const std::vector<int> batches = batches_in(whole);
  ASSERT_EQ(batches.size(), 8u);
  EXPECT_EQ(batches.front(), 8);
  EXPECT_GT(batches.back(), 8) << "a batch that grew";
  std::vector<std::string> shared = settings;
  shared.insert(shared.end(), {"cluster.ranks_per_gpu=2", "cluster.gpus_per_node=1"});
  const nlohmann::json together = trained("together", shared);
  EXPECT_EQ(batches_in(together), batches);
  for (std::size_t step = 0; step < batches.size(); ++step)
    EXPECT_NEAR(together["losses"][step].get<double>(), whole["losses"][step].get<double>(), 1e-9);
  const nlohmann::json resumed =
      trained("resumed", settings, {"--resume", path("whole/checkpoints/step-00000004"), "--overwrite"});
  EXPECT_EQ(batches_in(resumed), std::vector<int>(batches.begin() + 4, batches.end()));
  const auto& all = whole["losses"];
  EXPECT_EQ(resumed["losses"], nlohmann::json(std::vector<nlohmann::json>(all.begin() + 4, all.end())));
}

TEST_F(ExecuteGrowth, ConfirmSetsTheMeasuredStepOfEachBatchBesideThePredictedOne) {
  const std::vector<std::string> settings{two_workers, by_stages, "run.steps=9"};
  const Answer answer = execute("run", settings, {"--confirm"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("batches 8, 16, stages (2 step programs)"));
  EXPECT_THAT(answer.out, HasSubstr(" a step of batch 8\n"));
  EXPECT_THAT(answer.out, HasSubstr("Step time: of batch 16, which most steps have"));
  EXPECT_THAT(answer.out, HasSubstr("  batch   steps  step time  tokens/s  predicted"));
  EXPECT_THAT(answer.out, HasSubstr("\n  16     4 to 9 "));
  EXPECT_THAT(answer.out, HasSubstr("Predicted before the run, and measured (batch 16):"));
  const nlohmann::json run = trained("json", settings, {"--confirm"});
  EXPECT_GT(run["batches"][1]["predicted_step_s"], run["batches"][0]["predicted_step_s"]);
  EXPECT_GT(run["confirmation"]["measured_step_s"], 0);
}

// Only the steps of one batch are taken from its trace.
TEST_F(ExecuteGrowth, ItsTraceIsComparedAndFittedBatchByBatch) {
  trained("run", {two_workers, by_stages, "run.steps=9"});
  const auto with = [&](std::vector<std::string> args, const std::string& batch) {
    args.insert(args.end(), {"--set", two_workers, "--set", by_stages, "--set", "schedule.global_batch=" + batch});
    return slipway_with(args);
  };
  for (const char* batch : {"8", "16"}) {
    const Answer fitted =
        with({"calibrate", tiny, "--trace", path("run/trace.json"), "-o", path(std::string("m") + batch)}, batch);
    EXPECT_EQ(fitted.status, status_done) << fitted.err;
    ASSERT_EQ(with({"simulate", tiny, "--trace", path("p.json")}, batch).status, status_done);
    const Answer compared = slipway_with({"compare", path("p.json"), path("run/trace.json"), "--json"});
    ASSERT_EQ(compared.status, status_done) << compared.err;
    EXPECT_EQ(nlohmann::json::parse(compared.out)["only_measured"], nlohmann::json::array());
  }
  EXPECT_THAT(with({"calibrate", tiny, "--trace", path("run/trace.json"), "-o", path("m12")}, "12").err,
              HasSubstr("its batch grew, through 8, 16, and was never 12; name one of them"));
  ASSERT_EQ(with({"simulate", tiny, "--trace", path("p12.json")}, "12").status, status_done);
  const Answer other = slipway_with({"compare", path("p12.json"), path("run/trace.json")});
  EXPECT_EQ(other.status, status_usage);
  EXPECT_THAT(other.err, HasSubstr("the prediction has the tasks of none of them"));
}

TEST_F(ExecuteGrowth, WhatCannotBeRunIsRefusedBeforeAnythingStarts) {
  const auto refused = [&](const std::vector<std::string>& settings, const char* why) {
    const Answer answer = execute("refused", settings);
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_THAT(answer.err, HasSubstr(why));
    EXPECT_THAT(answer.out, IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(path("refused")));
  };
  refused({"training.growth={rule: stages, largest: 16}"}, "training.growth.stages is missing");
  refused({"training.growth={rule: norm-test, largest: 16, eta: 0.3}"}, "set layout.data to 2 or more");
  refused({by_stages, "run.optimizer.lr_decay_style=cosine"}, "set run.optimizer.lr_decay_samples");
  refused({"training.growth={rule: linear, largest: 1024, warmup: 100}"},
          "training.growth leads through 509 batches from 8 to 1024, each with a step program of its own; allowed: up "
          "to 64; set "
          "training.growth.sizes");
  refused({two_workers, "layout.context=2", "cluster.gpus_per_node=4", by_norms}, "set layout.context to 1");
}

TEST_F(ExecuteGrowth, ATrainingThatGoesOnIsToldWhatBecomesOfItsBatch) {
  trained("run", {by_stages, "run.steps=4", "run.checkpoint_steps=4"});
  const std::string less = "training.growth={rule: constant, largest: 8}";
  const Answer shrinks = execute("run", {less, "run.steps=6"}, {"--resume", "latest"});
  EXPECT_EQ(shrinks.status, status_usage);
  EXPECT_THAT(shrinks.err,
              HasSubstr("goes on with batch 16, and training.growth.largest is 8, though no rule shrinks a batch"));
  const Answer by_hand = execute("run", {"run.steps=6"}, {"--resume", "latest"});
  EXPECT_EQ(by_hand.status, status_done) << by_hand.err;
  EXPECT_THAT(by_hand.out,
              HasSubstr("the checkpoint's next batch was 16; this run resumes with schedule.global_batch = 8"));
}

TEST_F(ExecuteGrowth, ConfirmOfSeveralCasesWantsOneBatch) {
  const Answer answer =
      slipway_with({"confirm", tiny, "--set", by_stages, "--baseline", "as it is:", "--case", "wide: model.hidden=96"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("a step has no one time where the batch grows"));
}

// Shapes are judged by the batches that run, not by one that no stage reaches.
TEST_F(ExecuteGrowth, ARuleHasTheStepProgramsOfItsOwnBatches) {
  const Answer far = slipway_with({"lower", tiny, "--set",
                                   "training.growth={rule: stages, largest: 4096, stages: [{from: 20, batch: 16}]}",
                                   "-o", path("far.slip")});
  EXPECT_EQ(far.status, status_done) << far.err;
  const Answer constant =
      slipway_with({"lower", tiny, "--set", "training.growth={rule: constant, largest: 4096}", "-o", path("c.slip")});
  ASSERT_EQ(constant.status, status_done) << constant.err;
  EXPECT_THAT(constant.out, HasSubstr("batches 8, constant (1 step program)"));
}

TEST_F(ExecuteGrowth, ABundleSaysItsBatches) {
  const Answer answer = slipway_with({"lower", tiny, "--set", by_stages, "-o", path("run.slip")});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("first of batches 8, 16, stages (2 step programs)"));
}

}  // namespace
}  // namespace slipway::test
