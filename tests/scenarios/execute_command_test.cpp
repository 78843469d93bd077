// execute with a shell script as the rank program: what it starts, merges, refuses and prints. execute_*_test.cpp test
// real ranks.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/execute/run_folder.h"
#include "scenarios/predict/chrome_trace.h"
#include "tests/support/rank_script.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";  // two ranks

class Execute : public RankScriptTest {
 protected:
  Answer execute(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"execute", tiny, "--out", path("run"), "--overwrite", "--set", "run.steps=3"});
    return slipway_with(more);
  }
};

TEST_F(Execute, MergesWhatTheRanksWroteAndSplitsWaitingOff) {
  prepare_records(3);
  rank_script(copying_script());
  const Answer answer = execute();
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("\nhello from 0\n"));
  EXPECT_THAT(answer.out, HasSubstr("[rank 1] hello from 1\n"));
  EXPECT_THAT(answer.out, HasSubstr("5.5000 to 3.5000"));
  EXPECT_EQ(text_of(path("run/losses.csv")),
            "step,samples,loss,learning_rate\n1,8,5.5,0.003\n2,16,4.5,0.003\n3,24,3.5,0.003\n");
  std::ifstream in(path("run/trace.json"));
  const Trace trace = read_chrome_trace(in, "trace.json");
  EXPECT_EQ(trace.engine, "libtorch");
  EXPECT_EQ(trace.records.size(), 12u);
  for (const TraceRecord& record : trace.records) {
    if (record.kind == "transfer") {
      EXPECT_EQ(record.wait_s, record.rank == 1 ? 1 : 0);
    }
  }
}

TEST_F(Execute, SaysWhatTheRanksRunOnWhereTheScenarioHasAnotherKindOfMachine) {
  prepare_records(3);
  const std::vector<std::string> on_gpus{"--set", "cluster.machine=h100-80gb", "--set", "run.dtype=bfloat16"};
  rank_script(copying_script());
  EXPECT_THAT(execute().out, Not(HasSubstr("the ranks run on")));
  EXPECT_THAT(execute(on_gpus).out, HasSubstr("the ranks run on this machine's CPU"));
  rank_script(copying_script(), "slipway-rank-cuda");
  EXPECT_THAT(execute().out, HasSubstr("the ranks run on this machine's GPUs"));
  EXPECT_THAT(execute(on_gpus).out, Not(HasSubstr("the ranks run on")));
}

TEST_F(Execute, SaysThatItsAttentionWritesNoScoresWhereTheScenarioHasKernelsThatDo) {
  prepare_records(3);
  rank_script(copying_script());
  EXPECT_THAT(execute().out, Not(HasSubstr("schedule.kernels")));
  const Answer unfused = execute({"--set", "schedule.kernels=torch"});
  EXPECT_THAT(
      unfused.out,
      HasSubstr(
          "note: schedule.kernels says that attention writes its scores to memory; the ranks' attention does not"));
  EXPECT_THAT(unfused.out, HasSubstr("set schedule.kernels: flash2\n"));
}

TEST_F(Execute, JsonIsAloneOnStandardOutputWithExactlyTheDocumentedKeys) {
  prepare_records(3);
  rank_script(copying_script());
  const Answer answer = execute({"--json", "--trace", path("t.json")});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  std::vector<std::string> emitted, documented;
  for (const auto& [key, value] : json.items()) emitted.push_back(key);
  const AnswerKeys keys = answers_of("execute").front();
  for (const AnswerKey& key : keys.keys)
    // With --confirm; with --save-weights; with ranks that measure it; with work in the bubbles; where the batch grows.
    if (key.name != "confirmation" && key.name != "weights" && key.name != "peak_memory_bytes" &&
        key.name != "window" && !key.name.starts_with("batches") && !key.name.starts_with("evaluations"))
      documented.emplace_back(key.name);
  EXPECT_THAT(emitted, testing::UnorderedElementsAreArray(documented));
  EXPECT_EQ(json["step_time_s"], 10);
  EXPECT_EQ(json["tokens_per_s"].get<double>(), 8 * 64 / 10.0);
  EXPECT_NEAR(json["waiting_share"].get<double>(), (6 + 7) / 20.0, 1e-12);
  EXPECT_EQ(json["last_loss"], 3.5);
  EXPECT_EQ(json["learning_rates"], (std::vector<double>{0.003, 0.003, 0.003}));
  EXPECT_TRUE(std::filesystem::exists(path("t.json")));
  EXPECT_THAT(answer.err, HasSubstr("hello from 0"));
}

// The scripted ranks take 4 s for 0F0 and 10 s a step; the prediction is the simulator's of the same scenario.
TEST_F(Execute, ConfirmSimulatesFirstAndSaysHowFarOffItWasPerKindOfTask) {
  prepare_records(3);
  rank_script(copying_script());
  const Answer answer = execute({"--confirm"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const std::size_t said = answer.out.find("predicted: ");
  ASSERT_NE(said, std::string::npos);
  EXPECT_LT(said, answer.out.find("hello from 0"));
  EXPECT_THAT(answer.out, HasSubstr("Predicted before the run, and measured:"));
  EXPECT_THAT(answer.out, HasSubstr("Work per kind of task"));

  prepare_records(3);
  const auto json = nlohmann::json::parse(execute({"--confirm", "--json"}).out)["confirmation"];
  const auto simulated = nlohmann::json::parse(slipway_with({"simulate", tiny, "--json"}).out);
  EXPECT_NEAR(json["predicted_step_s"].get<double>(), simulated["step_time_s"].get<double>(),
              1e-9 * simulated["step_time_s"].get<double>());
  EXPECT_EQ(json["measured_step_s"], 10);
  EXPECT_EQ(json["joined"], 4);  // 0F0, 1F0 and the transfer on each of its members
}

TEST_F(Execute, ConfirmNeedsAStepBetweenTheFirstAndTheLast) {
  const Answer answer = execute({"--confirm", "--set", "run.steps=2"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("set run.steps to 3 or more"));
}

TEST_F(Execute, TheFirstFailingRankIsNamedWithItsCauseAndNothingIsMerged) {
  rank_script("[ $RANK = 1 ] && { echo 'bad tensor in 1F0' > $OUT/rank-1.error; exit 7; }; sleep 0.3; exit 1");
  const Answer answer = execute();
  EXPECT_EQ(answer.status, status_failed);
  EXPECT_THAT(answer.err, HasSubstr("slipway execute: rank 1 ended with exit status 7: bad tensor in 1F0"));
  EXPECT_FALSE(std::filesystem::exists(path("run/trace.json")));
}

TEST_F(Execute, AKilledRankLeavesItsCauseForTheOthers) {
  rank_script(
      "[ $RANK = 1 ] && kill -9 $$\nwhile [ ! -s $OUT/rank-1.error ]; do sleep 0.05; done\ncat "
      "$OUT/rank-1.error; exit 1");
  const Answer answer = execute();
  EXPECT_EQ(answer.status, status_failed);
  EXPECT_THAT(answer.out, HasSubstr("\nkilled by signal 9 (Killed)\n"));
  EXPECT_THAT(answer.err, HasSubstr("rank 1 was killed by signal 9 (Killed)"));
}

TEST_F(Execute, FilesOfAnEarlierRunAreNotTakenForThisOnes) {
  prepare_records(3);
  rank_script(copying_script());
  ASSERT_EQ(execute().status, status_done);
  rank_script("exit 0");
  const Answer answer = execute();
  EXPECT_EQ(answer.status, status_failed);
  EXPECT_THAT(answer.err, HasSubstr("rank-0.losses is not there"));
}

TEST_F(Execute, ADamagedRecordIsNamedByFileAndLine) {
  prepare_records(3);
  rank_script(copying_script() + "\n[ $RANK = 1 ] && echo nonsense >> $OUT/rank-1.records; exit 0");
  EXPECT_THAT(execute().err, HasSubstr("rank-1.records:7: "));
}

TEST_F(Execute, ALastLineWithoutItsEndIsLeftOutAndSaidSo) {
  prepare_records(3);
  rank_script(copying_script() +
              "\n[ $RANK = 1 ] && printf '2\\t1\\tcompute\\t1F9\\tforward\\t0\\t1\\t0\\t0\\t0\\t1' >> "
              "$OUT/rank-1.records; exit 0");
  const Answer answer = execute();
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("note: " + path("run/rank-1.records:7: the last line is cut off")));
  EXPECT_THAT(text_of(path("run/trace.json")), Not(HasSubstr("1F9")));
}

TEST_F(Execute, ACutLineInTheMiddleIsAnErrorOfRecordsAndOfLosses) {
  prepare_records(3);
  rank_script(copying_script() + "\n[ $RANK = 1 ] && sed -i '3s/.\\{9\\}$//' $OUT/rank-1.records; exit 0");
  Answer answer = execute();
  EXPECT_EQ(answer.status, status_failed);
  EXPECT_THAT(answer.err, HasSubstr(path("run/rank-1.records:3: ")));
  rank_script(copying_script() + "\n[ $RANK = 0 ] && sed -i '2s/ [^ ]* [^ ]*$//' $OUT/rank-0.losses; exit 0");
  answer = execute();
  EXPECT_EQ(answer.status, status_failed);
  EXPECT_THAT(answer.err, HasSubstr(path("run/rank-0.losses:2: expected \"step samples loss [learning-rate [batch "
                                         "[norm-squared variance]]] [evaluation=loss]\", not \"1 16\"")));
}

TEST_F(Execute, AFailedRunKeepsItsLossesAndLeavesNoTraceOfAnEarlierRun) {
  prepare_records(3);
  rank_script(copying_script());
  ASSERT_EQ(execute().status, status_done);
  rank_script("[ $RANK = 0 ] && printf '0 8 5.5\\n1 16 4' > $OUT/rank-0.losses; exit $RANK");
  const Answer answer = execute();
  EXPECT_EQ(answer.status, status_failed);
  EXPECT_THAT(answer.err, HasSubstr("\nkept: losses of 1 step (losses.csv); no trace was made"));
  EXPECT_EQ(text_of(path("run/losses.csv")), "step,samples,loss,learning_rate\n1,8,5.5,\n");
  EXPECT_FALSE(std::filesystem::exists(path("run/trace.json")));
}

TEST_F(Execute, WhatTheExecutorCannotRunIsRefusedBeforeAnythingStarts) {
  rank_script("touch " + path("started"));
  std::ofstream(path("short.txt")) << std::string(64, 'x');
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
      {{"--set", "schedule.fill=evaluation"}, "run.evaluation_data: it is not set; name a file of held-out text"},
      {{"--set", "run.optimizer=kfac", "--set", "schedule.fill=none", "--cuda-graphs"},
       "--cuda-graphs: K-FAC keeps inputs"},
      {{"--set", "model.experts=4", "--set", "model.experts_per_token=2", "--cuda-graphs"},
       "--cuda-graphs: segments with experts"},
      {{"--set", "run.data="}, "run.data"},
      {{"--set", "run.data=" + path("short.txt")},
       "run.data: " + path("short.txt") + " has 64 bytes; sequences of 64 tokens need at least 65; name a longer one"},
      {{"--set", "model.vocab=128"},
       "is read byte by byte, which needs a vocabulary of 256; that of custom-llama is 128; raise model.vocab"},
      {{"--set", "cluster.machine=v100-32gb", "--set", "run.dtype=float16"},
       "small gradients of float16 need loss scaling"},
      {{"--set", "run.optimizer.lr_decay_style=cosine", "--set", "run.optimizer.lr_warmup_samples=25"},
       "the warm-up of 25 sequences is longer than the training, with which the decay ends: 24 (3 steps x "
       "schedule.global_batch 8)"},
      {{"--set", "model=llama-3.2-1b"},
       "model: the executor does not compute what 'rope_scaling' of its config.json changes; allowed: models without "
       "it; "
       "choose another model"},
      {{"--set", "layout.tensr=2"}, "layout.tensr"}};
  for (const auto& [settings, words] : refused) {
    const Answer answer = execute(settings);
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_THAT(answer.err, HasSubstr(words));
    EXPECT_THAT(answer.out, IsEmpty());
  }
  EXPECT_EQ(files(), 2u);  // rank.sh, short.txt
}

TEST_F(Execute, WhatDoesNotFitIsRefusedUnlessForced) {
  prepare_records(3);
  rank_script(copying_script());
  std::string profile = text_of(SLIPWAY_SOURCE_DIR "/scenarios/examples/machines/cpu-test.yaml");
  const std::size_t at = profile.find("\nmemory_bytes");
  ASSERT_NE(at, std::string::npos);
  profile.replace(at, profile.find('\n', at + 1) - at, "\nmemory_bytes: 1 MB");
  std::ofstream(path("small.yaml")) << profile;
  const std::vector<std::string> small{"--set", "cluster.machine=" + path("small.yaml")};
  const Answer refused = execute(small);
  EXPECT_EQ(refused.status, status_usage) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("does not fit into memory; nothing was started"));
  EXPECT_THAT(refused.err, HasSubstr("rank 0 needs "));  // the violation of I7
  EXPECT_THAT(refused.err, HasSubstr(", most of it during "));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  EXPECT_EQ(execute({small[0], small[1], "--force"}).status, status_done);
}

TEST_F(Execute, WithoutTheRankProgramNothingIsWritten) {
  ::setenv("SLIPWAY_RANK", "/nowhere/slipway-rank", 1);
  const Answer answer = execute();
  EXPECT_EQ(answer.status, status_failed);
  EXPECT_THAT(answer.err, HasSubstr("/nowhere/slipway-rank is not there"));
  EXPECT_EQ(files(), 0u);
}

TEST_F(Execute, AJoinedRankRunsItselfAndOnlyRankZeroMerges) {
  prepare_records(3);
  rank_script(copying_script());
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("RANK", "1", 1);
  const Answer one = execute();
  EXPECT_EQ(one.status, status_done) << one.err;
  EXPECT_EQ(text_of(path("run/rank-1.done")), "0\n");
  EXPECT_FALSE(std::filesystem::exists(path("run/trace.json")));
  ::setenv("RANK", "0", 1);
  const Answer zero = execute();
  EXPECT_EQ(zero.status, status_done) << zero.err;
  EXPECT_THAT(zero.out, HasSubstr("step time"));
  EXPECT_TRUE(std::filesystem::exists(path("run/trace.json")));
}

TEST_F(Execute, AJoinedRankOfAnotherWorldIsRefused) {
  rank_script("exit 0");
  ::setenv("RANK", "0", 1);
  ::setenv("WORLD_SIZE", "3", 1);
  const Answer answer = execute();
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("started 3 ranks, but the layout has 2"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(Execute, RankZeroMergesNothingWhenAnotherJoinedRankFailed) {
  prepare_records(3);
  rank_script(copying_script() + "\n[ $RANK = 1 ] && { echo 'disk full' > $OUT/rank-1.error; exit 1; }; exit 0");
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("RANK", "1", 1);
  EXPECT_EQ(execute().status, status_failed);
  ::setenv("RANK", "0", 1);
  const Answer zero = execute();
  EXPECT_EQ(zero.status, status_failed);
  EXPECT_THAT(zero.err, HasSubstr("rank 1 ended with exit status 1: disk full"));
  EXPECT_FALSE(std::filesystem::exists(path("run/trace.json")));
}

TEST(RunFolder, MissingRanksAreNamedWhenTimeIsUp) {
  EXPECT_THAT([] { wait_for_done(testing::TempDir(), 1, 0.1); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("rank 0 has left nothing")));
}

}  // namespace
}  // namespace slipway::test
