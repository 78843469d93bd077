// `slipway execute --resume if-any`: one command starts a training, resumes it after any end, and does nothing when it is
// complete.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "exec/run/checkpoint_folder.h"
#include "exec/run/run_files.h"
#include "tests/support/resumed_runs.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> one_command{"--set run.checkpoint_steps=2", "--resume if-any"};

void damage(const std::string& path) {
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(1000).put('?');
}

// A run that is killed by SIGKILL to its launcher when it has printed this step.
void killed_at(const std::string& folder, const std::string& step, const std::vector<std::string>& words) {
  RankProcesses run = started(folder, words);
  ASSERT_TRUE(run.printed(0, step, starting_s));
  run.kill(0, SIGKILL);
  run.wait(promised_s);
}

TEST(ResumeIfAny, StartsGoesOnAndEndsWithOneCommand) {
  const std::string folder = fresh("if-any");
  std::filesystem::create_directories(checkpoints_path(folder));
  std::ofstream(checkpoints_path(folder) + "/one-folder-abcdef.partial") << "";
  killed_at(folder, "step 3/", one_command);
  const Ended resumed = executed(folder, one_command);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_THAT(resumed.output, HasSubstr("from step "));
  EXPECT_EQ(losses_of(folder), whole_losses());
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints_path(folder)))
    EXPECT_NE(entry.path().extension(), ".partial");
  const Ended again = executed(folder, one_command);
  EXPECT_EQ(again.status, 0) << again.errors;
  EXPECT_THAT(again.output, AllOf(HasSubstr("its 8 steps are done"), Not(HasSubstr("step 8/8"))));
}

// A run that ended well is no failed one: without checkpoints nothing says that it may go.
TEST(ResumeIfAny, AFinishedRunWithoutCheckpointsStays) {
  const std::string folder = fresh("if-any-finished");
  ASSERT_EQ(executed(folder, {}).status, 0);
  const Ended refused = executed(folder, {"--resume if-any"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors, HasSubstr("is of an earlier run, which this one would replace"));
}

TEST(ResumeIfAny, GoesOnFromTheNewestCheckpointThatIsWhole) {
  const std::string folder = fresh("if-any-damaged");
  ASSERT_EQ(executed(folder, {"--set run.steps=4", "--set run.checkpoint_steps=2"}).status, 0);
  damage(shard_path(checkpoint_path(folder, 4), 1, "data"));
  const Ended resumed = executed(folder, one_command);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_THAT(resumed.output, AllOf(HasSubstr("note: not resumed from: "), HasSubstr("shard-1.data is damaged"),
                                    HasSubstr("from step 2: ")));
  EXPECT_EQ(losses_of(folder), whole_losses());
}

TEST(ResumeIfAny, WhereNoCheckpointIsWholeItRefusesAndChangesNothing) {
  const std::string folder = fresh("if-any-none-whole");
  ASSERT_EQ(executed(folder, {"--set run.steps=4", "--set run.checkpoint_steps=2"}).status, 0);
  std::filesystem::remove(shard_path(checkpoint_path(folder, 2), 0, "data"));
  std::filesystem::resize_file(shard_path(checkpoint_path(folder, 4), 0, "index"), 10);
  const Ended refused = executed(folder, one_command);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors,
              AllOf(HasSubstr("no checkpoint in " + checkpoints_path(folder) + " is whole"),
                    HasSubstr("shard-0.index is damaged"), HasSubstr("shard-0.data cannot be read"),
                    HasSubstr("remove them, or give --out another folder, to start from the beginning")));
  EXPECT_EQ(complete_checkpoints(folder), (std::vector<std::int64_t>{2, 4}));
}

// `torchrun --max-restarts 2 slipway execute ...`, as its agent starts the ranks. Rank 1 is killed in every start but the
// last, at the given step.
std::vector<Ended> restarted(const std::string& folder, const std::string& every, const std::vector<int>& killed_at) {
  const std::vector<std::string> words{"execute",  SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml",
                                       "--set",    "run.steps=" + std::to_string(all_steps),
                                       "--set",    "run.checkpoint_steps=" + every,
                                       "--out",    folder,
                                       "--resume", "if-any"};
  const std::string logs = fresh("if-any-joined-logs");
  std::vector<Ended> ended;
  for (std::size_t restart = 0; restart <= killed_at.size(); ++restart) {
    RankProcesses ranks(SLIPWAY_PROGRAM, words, 2, logs,
                        {{"SLIPWAY_RANK", SLIPWAY_RANK_PROGRAM},
                         {"TORCHELASTIC_RUN_ID", "joined"},
                         {"TORCHELASTIC_RESTART_COUNT", std::to_string(restart)}});
    if (restart < killed_at.size()) {
      EXPECT_TRUE(ranks.printed(0, "step " + std::to_string(killed_at[restart]) + "/", starting_s));
      ranks.kill(1, SIGKILL);
    }
    ended = ranks.wait(starting_s);
    EXPECT_EQ(ended[0].status, restart < killed_at.size() ? 1 : 0) << restart << ended[0].errors;
  }
  return ended;
}

TEST(ResumeIfAny, OfJoinedRanksGoesOnUnderRestarts) {
  const std::string folder = fresh("if-any-joined");
  const std::vector<Ended> last = restarted(folder, "2", {1, 5});
  EXPECT_THAT(last[0].output, HasSubstr("from step "));
  EXPECT_EQ(last[1].status, 0) << last[1].errors;
  EXPECT_EQ(losses_of(folder), whole_losses());
}

// The losses of the start that failed are no finished run.
TEST(ResumeIfAny, ARunThatFailedBeforeItsFirstCheckpointStartsAgain) {
  const std::string folder = fresh("if-any-early");
  EXPECT_THAT(restarted(folder, "8", {3})[0].output, Not(HasSubstr("from step ")));
  EXPECT_EQ(losses_of(folder), whole_losses());
}

// Its ranks were started with a bundle that lies elsewhere.
TEST(Resume, ACompleteRunOfTheRankProgramAloneSaysWhichFileIsMissing) {
  const std::string folder = fresh("bare"), lowered = fresh("bare-bundle");
  ASSERT_EQ(executed(lowered, {"--set run.steps=2"}).status, 0);
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, {bundle_path(lowered), "--out", folder}, 2, fresh("bare-logs"));
  for (const Ended& rank : ranks.wait(starting_s)) ASSERT_EQ(rank.status, 0) << rank.errors;
  const std::vector<std::string> merging{"--set run.steps=2", "--resume latest"};
  const Ended refused = executed(folder, merging);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors, AllOf(HasSubstr("its bundle is not there"), HasSubstr("to " + bundle_path(folder)),
                                    Not(HasSubstr("of another scenario"))));
  std::filesystem::copy_file(bundle_path(lowered), bundle_path(folder));
  const Ended merged = executed(folder, merging);
  EXPECT_EQ(merged.status, 0) << merged.errors;
  EXPECT_TRUE(std::filesystem::exists(trace_path(folder)));
}

}  // namespace
}  // namespace slipway::test
