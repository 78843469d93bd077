// What execute finds in its folder and leaves there: an earlier run, and steps counted from 1.
#include <gmock/gmock.h>

#include <map>

#include "exec/run/checkpoint_folder.h"
#include "exec/run/run_files.h"
#include "scenarios/commands/execute/run_folder.h"
#include "scenarios/commands/execute/set_aside.h"
#include "tests/support/command_test.h"
#include "tests/support/rank_script.h"

namespace slipway::test {

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

// Every step is counted from 1: in the output of the ranks ("step 1/3"), in tables, texts and losses.csv.
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
  // Three more after six steps, whose kept losses have no rates (earlier versions): the run's step 2 is step 8.
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

// The earlier run's files are in place again, and the message reports it.
TEST_F(RunFolder, AStartThatFailsLeavesTheEarlierRunWhole) {
  prepare_records(3);
  rank_script(copying_script());
  ASSERT_EQ(execute().status, status_done);
  const std::string trace = text_of(path("run/trace.json")), losses = text_of(path("run/losses.csv"));
  rank_script("echo no such device >&2; exit 3");
  const Answer failed = execute();
  EXPECT_EQ(failed.status, status_failed);
  EXPECT_THAT(failed.err,
              HasSubstr("no step was completed; the files of the earlier run in " + path("run") + " are there again"));
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

// A run that starts in the folder of an earlier one: the fate of the earlier files, whatever happens when.

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class AnEarlierRun : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    folder_ = path("run");
    for (const int step : {2, 4, 8}) write(manifest_path(checkpoint_path(folder_, step)), "manifest");
    for (const auto& file : {bundle_path(folder_), records_path(folder_, 0), records_path(folder_, 1),
                             trace_path(folder_), losses_csv_path(folder_)})
      write(file, "earlier");
    write(losses_path(folder_), "0 8 5.5\n3 32 5.25\n4 40 5.125\n");
    before_ = contents();
  }
  static void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text;
  }
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      if (entry.is_regular_file()) files[entry.path().string()] = text_of(entry.path().string());
    return files;
  }
  std::string folder_;
  std::map<std::string, std::string> before_;
};

TEST_F(AnEarlierRun, IsWholeAgainWhereTheStartOfTheNextOneFails) {
  for (const std::optional<int> from : {std::optional<int>(), std::optional(4)}) {
    {
      const SetAside aside(folder_, 0, 1, from);
      EXPECT_FALSE(std::filesystem::exists(trace_path(folder_)));
      write(records_path(folder_, 0), "a task of the first step");
    }
    EXPECT_EQ(contents(), before_);
  }
}

// The next run would write through it.
TEST_F(AnEarlierRun, IsSetAsideWithALinkThatLeadsNowhere) {
  std::filesystem::remove(records_path(folder_, 1));
  std::filesystem::create_symlink(path("nowhere"), records_path(folder_, 1));
  const SetAside aside(folder_, 0, 1, std::nullopt);
  EXPECT_FALSE(std::filesystem::is_symlink(records_path(folder_, 1)));
  EXPECT_FALSE(std::filesystem::exists(path("nowhere")));
}

TEST_F(AnEarlierRun, IsWholeAgainAfterAStartThatWasKilled) {
  const std::string copy = path("copy");
  {
    const SetAside killed(folder_, 0, 1, std::nullopt);
    std::filesystem::copy(folder_, copy, std::filesystem::copy_options::recursive);  // as a kill leaves it
  }
  std::filesystem::remove_all(folder_);
  std::filesystem::rename(copy, folder_);
  EXPECT_FALSE(std::filesystem::exists(trace_path(folder_)));
  { const SetAside next(folder_, 0, 1, std::nullopt); }
  EXPECT_EQ(contents(), before_);
}

TEST_F(AnEarlierRun, IsSafeFromASecondStartWhileTheFirstIsAtWork) {
  const SetAside first(folder_, 0, 1, std::nullopt);
  EXPECT_THROW(restore_killed_start(folder_), std::runtime_error);
  EXPECT_THROW(SetAside(folder_, 0, 1, std::nullopt), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(trace_path(folder_)));
}

// A folder stands in place of its trace: each time that is the error, and no lock is left behind.
TEST_F(AnEarlierRun, ThatCannotBePutBackKeepsNobodyOut) {
  using Blocked = std::filesystem::filesystem_error;
  std::filesystem::remove(trace_path(folder_));
  write(trace_path(folder_) + "/in-the-way", "");
  write(trace_path(folder_ + "/replaced-0"), "earlier");
  for (int time = 0; time < 2; ++time) {
    EXPECT_THROW(restore_killed_start(folder_), Blocked);
    EXPECT_THROW(SetAside(folder_, 0, 1, std::nullopt), Blocked);
  }
  EXPECT_EQ(text_of(trace_path(folder_ + "/replaced-0")), "earlier");
}

TEST_F(AnEarlierRun, KeepsEachCourseThatIsLeft) {
  for (int time = 0; time < 2; ++time) {
    write(manifest_path(checkpoint_path(folder_, 8)), "course " + std::to_string(time));
    SetAside aside(folder_, 0, 1, 4);
    aside.drop();
  }
  EXPECT_EQ(text_of(manifest_path(checkpoint_path(folder_, 8) + ".abandoned")), "course 0");
  EXPECT_EQ(text_of(manifest_path(checkpoint_path(folder_, 8) + ".abandoned-2")), "course 1");
}

// Its checkpoints among them, which --resume latest would take for the new run's.
TEST_F(AnEarlierRun, IsGoneOnceTheNextOneHasDoneAStep) {
  {
    SetAside aside(folder_, 0, 1, std::nullopt);
    write(losses_path(folder_), "0 8 9.5\n");
    aside.drop();
  }
  EXPECT_THAT(complete_checkpoints(folder_), IsEmpty());
  EXPECT_THAT(contents(), ElementsAre(std::pair(losses_path(folder_), "0 8 9.5\n")));
}

TEST_F(AnEarlierRun, ThatIsGoneOnWithKeepsWhatIsBeforeTheCheckpointAndNoLatestIsOfAnotherCourse) {
  {
    SetAside aside(folder_, 0, 1, 4);
    EXPECT_THAT(aside.abandoned(), ElementsAre(checkpoint_path(folder_, 8) + ".abandoned"));
    EXPECT_EQ(text_of(losses_path(folder_)), "0 8 5.5\n3 32 5.25\n");
    aside.drop();
  }
  EXPECT_THAT(complete_checkpoints(folder_), ElementsAre(2, 4));
  EXPECT_EQ(resolve_checkpoint(checkpoint_path(folder_, 8) + ".abandoned", folder_),
            checkpoint_path(folder_, 8) + ".abandoned");
  EXPECT_FALSE(std::filesystem::exists(trace_path(folder_)));
}

// Ranks that joined: each alone, in any order.
TEST_F(AnEarlierRun, IsSetAsideByEachRankForItself) {
  {
    const SetAside second(folder_, 1, 1, std::nullopt);
    EXPECT_TRUE(std::filesystem::exists(trace_path(folder_)));
    const SetAside first(folder_, 0, 0, std::nullopt);
    EXPECT_FALSE(std::filesystem::exists(trace_path(folder_)));
  }
  EXPECT_EQ(contents(), before_);
}

}  // namespace

}  // namespace slipway::test
