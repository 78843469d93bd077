// What execute finds in its folder and leaves there: an earlier run, and steps as people count them.
#include <gmock/gmock.h>

#include "scenarios/execution/run_folder.h"
#include "tests/rank_script.h"

namespace slipway {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";  // two ranks

class RunFolder : public RankScriptTest {
 protected:
  Answer execute(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"execute", tiny, "--out", path("run"), "--overwrite", "--set", "run.steps=3"});
    return slipway_with(more);
  }
};

// Every step is counted from 1, in the words of the ranks ("step 1/3"), in tables, texts and losses.csv.
TEST_F(RunFolder, StepsAreCountedFromTheBeginningOfTheTrainingEverywhere) {
  prepare_records(3);
  rank_script(copying_script());
  Answer answer = execute({"--confirm"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("median of 1 step (step 2);"));
  EXPECT_THAT(answer.out, HasSubstr("\n  1           8  5.500000          0.003\n"));
  EXPECT_THAT(answer.out, HasSubstr("\n  3          24  3.500000          0.003\n"));
  EXPECT_THAT(answer.out, HasSubstr("\nStep 2:\n"));
  EXPECT_THAT(answer.out, HasSubstr("against the median of steps 2 to 2 of the training"));
  // Three more after six steps, whose losses the ranks kept (without rates, as once): the run's second step is the eighth of the training.
  std::ofstream losses(path("ready-losses"));
  for (int k = 0; k < 9; ++k) losses << k << ' ' << 8 * (k + 1) << " 5.5\n";
  losses.close();
  answer = execute();
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("median of 1 step (step 8);"));
  EXPECT_THAT(answer.out, HasSubstr("\n  9          72  5.500000\n"));
  EXPECT_THAT(answer.out, HasSubstr("\nStep 8:\n"));
}

TEST_F(RunFolder, AFinishedRunIsOverwrittenOnlyWhenAskedTo) {
  prepare_records(3);
  rank_script(copying_script());
  const std::vector<std::string> args{"execute", tiny, "--out", path("run"), "--set", "run.steps=3"};
  ASSERT_EQ(slipway_with(args).status, status_done);
  const std::string trace = text_of(path("run/trace.json"));
  for (const char* left : {"trace.json", "losses.csv"}) {
    const Answer again = slipway_with(args);
    EXPECT_EQ(again.status, status_usage);
    EXPECT_THAT(again.err, HasSubstr(path("run/") + left + " is of an earlier run"));
    EXPECT_THAT(again.err, HasSubstr("give --out another folder, or --overwrite"));
    EXPECT_THAT(again.out, IsEmpty());
    if (left == std::string("trace.json")) {
      EXPECT_EQ(text_of(path("run/trace.json")), trace);
    }
    std::filesystem::remove(path("run/") + left);
  }
  ASSERT_TRUE(std::filesystem::exists(path("run/rank-0.losses")));
  EXPECT_EQ(slipway_with(args).status, status_done) << "of a run that was killed on its way";
  EXPECT_EQ(execute().status, status_done);
}

// What the run of the folder was is there again, and the answer says so.
TEST_F(RunFolder, AStartThatFailsLeavesTheEarlierRunWhole) {
  prepare_records(3);
  rank_script(copying_script());
  ASSERT_EQ(execute().status, status_done);
  const std::string trace = text_of(path("run/trace.json")), losses = text_of(path("run/losses.csv"));
  rank_script("echo no such device >&2; exit 3");
  const Answer failed = execute();
  EXPECT_EQ(failed.status, status_failed);
  EXPECT_THAT(failed.err, HasSubstr("no step was completed; what the earlier run left in " + path("run") + " is there again"));
  EXPECT_EQ(text_of(path("run/trace.json")), trace);
  EXPECT_EQ(text_of(path("run/losses.csv")), losses);
  EXPECT_TRUE(std::filesystem::exists(path("run/rank-1.records")));
  // After a step it is the new run's folder.
  rank_script("[ $RANK = 0 ] && echo '0 8 9.5' > $OUT/rank-0.losses && echo 'step 1/3  loss 9.5'; exit 3");
  EXPECT_EQ(execute().status, status_failed);
  EXPECT_FALSE(std::filesystem::exists(path("run/trace.json")));
  EXPECT_THAT(text_of(path("run/losses.csv")), HasSubstr("1,8,9.5"));
}

TEST_F(RunFolder, AStepIsDoneOnceTheLineOfItsLossIsWhole) {
  const auto done_from = [&](int steps, const std::string& losses) {
    std::ofstream(path("rank-0.losses")) << losses;
    return has_done_a_step(path(""), steps);
  };
  EXPECT_TRUE(done_from(0, "0 8 5.5\n"));
  EXPECT_FALSE(done_from(0, "0 8 5.5"));
  EXPECT_FALSE(done_from(0, "")) << "no line";
  EXPECT_FALSE(done_from(0, "\nloss 5.5\n7\n")) << "no step with a loss";
  EXPECT_FALSE(done_from(2, "0 8 5.5\n1 16 5.25\n")) << "steps before this run";
  EXPECT_TRUE(done_from(2, "1 16 5.25\n2 24 5.125\n"));
}

}  // namespace
}  // namespace slipway
