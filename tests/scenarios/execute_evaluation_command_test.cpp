// `slipway execute` with held-out micro-batches in the bubbles, as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "exec/run/run_files.h"
#include "tests/support/losses_csv.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string scenario = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";  // two ranks

// From the text that the scenario trains on, because these tests need no other data.
std::string held_out() {
  const std::string path = temporary_folder().path("held-out.txt");
  std::ofstream(path) << text_of_file(SLIPWAY_SOURCE_DIR "/scenarios/data/us-founding-documents.txt").substr(0, 3000);
  return path;
}

Ended executed(const std::string& folder, const std::string& more) {
  const std::string line = "exec env -u RANK -u WORLD_SIZE -u LOCAL_RANK -u MASTER_ADDR -u MASTER_PORT " +
                           std::string(SLIPWAY_PROGRAM) + " execute " + scenario + " --out " + folder + " " + more;
  const Ended ended =
      RankProcesses("/bin/sh", {"-c", line}, 1, folder, {{"SLIPWAY_RANK", SLIPWAY_RANK_PROGRAM}}).wait(120).front();
  EXPECT_EQ(ended.status, 0) << ended.errors;
  return ended;
}

// 4 micro-batches of 2 samples.
std::string evaluating() {
  return "--set schedule.fill=evaluation --set schedule.evaluation_micro_batches=4 --set run.evaluation_data=" +
         held_out() + " ";
}

// A training on the held-out text itself, whose first step has the same eight samples and the same weights.
TEST(ExecuteEvaluation, TellsTheHeldOutLossOfEachWindowAndConfirmsItsTasks) {
  const std::string folder = temporary_folder().path("confirmed");
  const auto json =
      nlohmann::json::parse(executed(folder, evaluating() + "--set run.steps=20 --confirm --json").output);
  EXPECT_THAT(json["confirmation"]["only_predicted"], IsEmpty());
  EXPECT_THAT(json["confirmation"]["only_measured"], IsEmpty());
  const int window = json["window"];
  ASSERT_GT(window, 1);
  ASSERT_EQ(json["evaluations"].size(), static_cast<std::size_t>(20 / window));
  EXPECT_EQ(json["evaluations"][0]["step"], window);
  const std::string other = temporary_folder().path("trained-on-it");
  const auto trained =
      nlohmann::json::parse(executed(other, "--set run.steps=2 --json --set run.data=" + held_out()).output);
  EXPECT_NEAR(json["evaluations"][0]["loss"].get<double>(), trained["first_loss"].get<double>(), 1e-12);
  EXPECT_LT(json["evaluations"].back()["loss"].get<double>(), json["evaluations"][0]["loss"].get<double>());
  EXPECT_THAT(losses_of(folder), HasSubstr("step,samples,loss,learning_rate,evaluation_loss\n1,8,"));
}

// Ends within a window, whose held-out loss is not printed; the losses are those of a training without evaluation.
TEST(ExecuteEvaluation, IsTheSameInOneProcessResumedOrCutAndChangesNoLoss) {
  const std::string whole = temporary_folder().path("whole"), apart = temporary_folder().path("one-process"),
                    plain = temporary_folder().path("plain");
  executed(whole, evaluating() + "--set run.steps=14");
  const std::string losses = losses_of(whole);
  executed(apart, evaluating() + "--set run.steps=14 --set cluster.gpus_per_node=1 --set cluster.ranks_per_gpu=2");
  EXPECT_EQ(losses_of(apart), losses);
  const std::string resumed = temporary_folder().path("resumed");
  executed(resumed, evaluating() + "--set run.steps=8 --set run.checkpoint_steps=8");
  const Ended more =
      executed(resumed, evaluating() + "--set run.steps=14 --set run.checkpoint_steps=8 --resume latest");
  EXPECT_EQ(losses_of(resumed), losses);
  // Windows of the start before this one, or of none, may have been of another length.
  EXPECT_THAT(more.output, HasSubstr("Held out: with the weights before the window of steps that ends there.\n"));
  executed(plain, "--set run.steps=14");
  std::istringstream with(losses), without(losses_of(plain));
  for (std::string line, bare; std::getline(with, line) && std::getline(without, bare);)
    EXPECT_EQ(line.substr(0, line.rfind(',')), bare);
}

TEST(ExecuteEvaluation, SaysWithWhichWeightsTheHeldOutLossIs) {
  const std::string four = executed(temporary_folder().path("four"), evaluating() + "--set run.steps=4").output;
  EXPECT_THAT(four, HasSubstr("Held out: with the weights before the 4 steps that end there.\n"));
  const std::string one =
      executed(temporary_folder().path("one"), evaluating() + "--set run.steps=2 --set schedule.name=zb-v").output;
  EXPECT_THAT(one, HasSubstr("Held out: with the weights before the step.\n"));
}

// All are reported before a long training, not after it.
TEST(ExecuteEvaluation, SaysBeforeTheRunWhyTheHeldOutLossWillBeNoneOrBiased) {
  const std::string folder = temporary_folder().path("short");
  const Ended cut = executed(folder, evaluating() + "--set run.steps=3");
  EXPECT_THAT(
      cut.output,
      AllOf(HasSubstr("note: the held-out loss is printed at the end of windows of 4 steps, but only 3 steps will run"),
            HasSubstr("raise run.steps to 4"), HasSubstr("of 3 steps, fewer than a window of 4 (steps 1 to 3)"),
            HasSubstr("\nSteps 1 to 3:\n"), Not(HasSubstr("held out\n"))));
  const std::string two = temporary_folder().path("two-samples.txt");
  std::ofstream(two) << text_of_file(held_out()).substr(0, 140);
  const Ended repeated = executed(temporary_folder().path("repeated"),
                                  evaluating() + "--set run.steps=4 --set run.evaluation_data=" + two);
  EXPECT_THAT(repeated.output,
              HasSubstr("note: run.evaluation_data has 2 samples of 64 tokens, and each window evaluates 8"));
  const Ended unread =
      executed(temporary_folder().path("unread"), "--set run.steps=2 --set run.evaluation_data=" + held_out());
  EXPECT_THAT(
      unread.output,
      HasSubstr(
          "note: run.evaluation_data is not read, because nothing evaluates it; set schedule.fill to evaluation"));
}

// A bundle moves to the GPUs' machine, where its data are elsewhere.
TEST(ExecuteEvaluation, OfABundleFindsItsHeldOutDataWhereTheRanksAreToldTo) {
  const std::string folder = temporary_folder().path("carried"), there = temporary_folder().path("there.txt");
  executed(folder, evaluating() + "--set run.steps=4");
  const std::string expected = text_of_file(losses_path(folder));
  std::filesystem::rename(temporary_folder().path("held-out.txt"), there);
  const auto ranks = [&](const std::string& bundle, const std::string& name) {
    const std::string out = temporary_folder().path(name);
    std::filesystem::create_directories(out);
    return RankProcesses(SLIPWAY_RANK_PROGRAM,
                         {bundle, "--out", out, "--ranks-per-process", "2", "--evaluation-data", there}, 1, out)
        .wait(120)
        .front();
  };
  const Ended run = ranks(folder + "/run.slip", "carried-there");
  EXPECT_EQ(run.status, 0) << run.errors;
  EXPECT_EQ(text_of_file(losses_path(temporary_folder().path("carried-there"))), expected);
  const std::string plain = temporary_folder().path("carried-plain");
  executed(plain, "--set run.steps=2");
  const Ended refused = ranks(plain + "/run.slip", "carried-refused");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors,
              HasSubstr("evaluates nothing; leave it out, or lower the scenario with schedule.fill evaluation"));
}

}  // namespace
}  // namespace slipway::test
