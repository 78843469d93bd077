// What folders of runs hold when something went wrong, and who may go on from it: damaged checkpoints, full disks, replaced
// runs, traces that are missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "exec/checkpoint_folder.h"
#include "exec/run_files.h"
#include "tests/resumed_runs.h"

namespace slipway {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Resume : public testing::Test {
 protected:
  // A run that ended at step 4 with checkpoints of steps 2 and 4.
  std::string ended_at_four(const std::string& name) {
    std::string folder = fresh(name);
    const Ended run = executed(folder, {"--set run.steps=4", "--set run.checkpoint_steps=2"});
    EXPECT_EQ(run.status, 0) << run.errors;
    return folder;
  }
};

TEST_F(Resume, ADamagedCheckpointIsAnErrorAndTheOneBeforeItGoesOn) {
  const std::string folder = ended_at_four("damaged");
  const std::string data = shard_path(checkpoint_path(folder, 4), 1, "data");
  std::fstream(data, std::ios::in | std::ios::out | std::ios::binary).seekp(1000).put('?');
  const Ended refused = executed(folder, {"--resume latest"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_LT(refused.seconds, 3 * promised_s);
  EXPECT_THAT(refused.errors, HasSubstr("shard-1.data is damaged"));
  EXPECT_THAT(refused.errors, HasSubstr("resume from another checkpoint"));
  EXPECT_EQ(complete_checkpoints(folder), (std::vector<std::int64_t>{2, 4})) << "a start that failed has changed something";
  EXPECT_TRUE(std::filesystem::exists(trace_path(folder)));
  const Ended resumed = executed(folder, {"--resume " + checkpoint_path(folder, 2)});
  EXPECT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_THAT(resumed.errors, HasSubstr("a later checkpoint, which this run does not come from, is kept as " +
                                        checkpoint_path(folder, 4) + ".abandoned"));
  EXPECT_EQ(complete_checkpoints(folder), (std::vector<std::int64_t>{2})) << "--resume latest would take another course";
  EXPECT_EQ(losses_of(folder), whole_losses());
}

TEST_F(Resume, AFullDiskDuringACheckpointEndsTheRunAndLosesNothing) {
  const std::string folder = ended_at_four("full");
  // 1 MB a file; a shard has 2.5.
  const Ended ended = executed(folder, {"--set run.checkpoint_steps=2", "--resume latest"}, "ulimit -f 2000; ");
  EXPECT_EQ(ended.status, 1);
  EXPECT_LT(ended.seconds, 3 * promised_s);
  EXPECT_THAT(ended.errors, HasSubstr("checkpoint of step 6: cannot write"));
  EXPECT_THAT(ended.errors, HasSubstr("File too large"));
  EXPECT_EQ(complete_checkpoints(folder), (std::vector<std::int64_t>{2, 4}));
  const Ended resumed = executed(folder, {"--set run.checkpoint_steps=2", "--resume latest"});
  EXPECT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_EQ(losses_of(folder), whole_losses());
  EXPECT_FALSE(std::filesystem::exists(partial_path(checkpoint_path(folder, 6))));
}

// A file system of its own, so that nothing else has room either. The ranks inherit the shell's mounts.
TEST_F(Resume, AFileSystemFullOfACheckpointEndsTheRunWithItsCauseAndLosesNothing) {
  const std::string disk = fresh("small-disk"), folder = disk + "/run";
  std::filesystem::create_directories(disk);
  if (::system(("unshare -m mount -t tmpfs -o size=64k tmpfs " + disk).c_str()) != 0)
    GTEST_SKIP() << "no file system can be mounted here (it takes root)";
  const std::string logs = fresh("small-disk-logs"), kept = fresh("small-disk-kept");
  // After step 4's checkpoint of some 5 MB another one, while the first is kept, has room in part.
  const std::string script = "mount -t tmpfs -o size=8m tmpfs " + disk + " && { sh " + logs + "/run; status=$?; cp -r " +
                             folder + " " + kept + "; exit $status; }";
  std::filesystem::create_directories(logs);
  std::ofstream(logs + "/run") << command_line(folder, {"--set run.checkpoint_steps=2", "--set run.steps=1000"});
  RankProcesses run("/bin/sh", {"-c", "exec unshare -m sh -c '" + script + "'"}, 1, logs, {{"SLIPWAY_RANK", SLIPWAY_RANK_PROGRAM}});
  const Ended ended = run.wait(starting_s).front();
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors, testing::ContainsRegex("slipway execute: rank [01] failed: checkpoint of step [0-9]+: cannot write .*No space left"));
  EXPECT_THAT(ended.errors, HasSubstr("(losses.csv); records of rank 0, 1;"));
  EXPECT_THAT(ended.errors, Not(HasSubstr("is lost")));
  EXPECT_FALSE(complete_checkpoints(kept).empty());
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints_path(kept)))
    EXPECT_NE(entry.path().extension(), ".partial");
}

// It saves none itself: its --resume latest had gone on from the replaced run's.
TEST_F(Resume, CheckpointsOfAReplacedRunAreTakenByNobody) {
  const std::string folder = ended_at_four("replaced");
  const Ended without = executed(folder, {});
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.errors, HasSubstr("or --overwrite to replace them"));
  EXPECT_EQ(complete_checkpoints(folder), (std::vector<std::int64_t>{2, 4}));
  const Ended replaced = executed(folder, {"--overwrite", "--set run.steps=3"});
  ASSERT_EQ(replaced.status, 0) << replaced.errors;
  const Ended resumed = executed(folder, {"--resume latest"});
  EXPECT_EQ(resumed.status, 2);
  EXPECT_THAT(resumed.errors, HasSubstr("no complete checkpoint"));
}

// A start with --overwrite that is killed before its first step leaves the earlier run in replaced-0.
TEST_F(Resume, ARunThatAKilledStartHadSetAsideIsSeenByTheNextStart) {
  namespace fs = std::filesystem;
  const std::string folder = ended_at_four("killed-start"), aside = folder + "/replaced-0";
  fs::create_directories(aside);
  for (const std::string& path : {trace_path(folder), losses_csv_path(folder), losses_path(folder), checkpoints_path(folder)})
    fs::rename(path, aside / fs::path(path).filename());
  const Ended without = executed(folder, {});
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.errors, HasSubstr("or --overwrite to replace"));
  EXPECT_TRUE(fs::exists(trace_path(folder)));
  EXPECT_EQ(complete_checkpoints(folder), (std::vector<std::int64_t>{2, 4}));
  fs::create_directories(aside);
  fs::rename(checkpoints_path(folder), aside + "/checkpoints");
  const Ended resumed = executed(folder, {"--resume latest"});
  EXPECT_EQ(resumed.status, 0) << resumed.errors;
}

TEST_F(Resume, ACourseThatWasLeftGoesOnInAnotherFolderOnly) {
  const std::string folder = ended_at_four("left"), left = checkpoint_path(folder, 4) + ".abandoned";
  std::filesystem::rename(checkpoint_path(folder, 4), left);
  const Ended here = executed(folder, {"--resume " + left});
  EXPECT_EQ(here.status, 2);
  EXPECT_THAT(here.errors, HasSubstr("is not of the course that this folder holds"));
  const Ended elsewhere = executed(fresh("left-elsewhere"), {"--resume " + left});
  EXPECT_EQ(elsewhere.status, 0) << elsewhere.errors;
}

TEST_F(Resume, ATrainingThatIsCompleteButForItsTraceIsMergedAndNotRunAgain) {
  const std::string folder = ended_at_four("unmerged"), trace = text_of_file(trace_path(folder));
  const auto interrupted = [&] {
    std::filesystem::remove(trace_path(folder));
    std::filesystem::remove(losses_csv_path(folder));
  };
  interrupted();
  const Ended other = executed(folder, {"--set run.steps=4", "--set run.lr=0.5", "--resume latest"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.errors, HasSubstr("run.slip is of another scenario"));
  const Ended merged = executed(folder, {"--set run.steps=4", "--set run.checkpoint_steps=2", "--resume latest"});
  ASSERT_EQ(merged.status, 0) << merged.errors;
  EXPECT_THAT(merged.output, Not(HasSubstr("step 4/4")));
  EXPECT_EQ(text_of_file(trace_path(folder)), trace);
  EXPECT_TRUE(std::filesystem::exists(losses_csv_path(folder)));
  interrupted();  // after it was resumed: the records are those of steps 5 to 8
  const std::string eight = "--set run.checkpoint_steps=2";
  ASSERT_EQ(executed(folder, {eight, "--resume latest"}).status, 0);
  const std::string resumed_trace = text_of_file(trace_path(folder));
  interrupted();
  ASSERT_EQ(executed(folder, {eight, "--resume latest"}).status, 0);
  EXPECT_EQ(text_of_file(trace_path(folder)), resumed_trace);
  EXPECT_EQ(losses_of(folder), whole_losses());
}

TEST_F(Resume, ARunInsideTheFolderIsAnotherRun) {
  const std::string folder = ended_at_four("outer"), inner = folder + "/inner";
  const Ended other = executed(inner, {"--set run.steps=2", "--set run.checkpoint_steps=2"});
  ASSERT_EQ(other.status, 0) << other.errors;
  const Ended refused = executed(folder, {"--resume " + inner});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors, HasSubstr("checkpoints of an earlier run, which this one would replace"));
  const Ended own = executed(folder, {"--resume " + inner + "/../checkpoints/step-00000004/"});
  EXPECT_EQ(own.status, 0) << own.errors;
  EXPECT_EQ(losses_of(folder), whole_losses());
}

TEST_F(Resume, WhatCannotBeResumedIsRefusedBeforeAnythingStarts) {
  const std::string folder = ended_at_four("refused");
  const auto refusal = [&](const std::vector<std::string>& more) {
    const Ended ended = executed(folder, more);
    EXPECT_EQ(ended.status, 2) << ended.errors;
    return ended.errors;
  };
  EXPECT_THAT(refusal({"--resume /no/such/run"}), HasSubstr("no complete checkpoint"));
  EXPECT_THAT(refusal({"--resume latest", "--set run.seed=9"}), HasSubstr("was made with run.seed 1"));
  EXPECT_THAT(refusal({"--resume latest", "--set model.sequence=32"}), HasSubstr("was made with model.sequence 64"));
  EXPECT_THAT(refusal({"--resume latest", "--set run.steps=4"}), HasSubstr("nothing is left to do"));
  EXPECT_THAT(refusal({"--set run.checkpoint_steps=2"}), HasSubstr("--resume latest, give --out another"));
  EXPECT_EQ(complete_checkpoints(folder), (std::vector<std::int64_t>{2, 4}));
  // Going on from another run's checkpoint would replace what a finished run left in the folder.
  const Ended elsewhere = executed(ended_at_four("refused-elsewhere"), {"--resume " + folder});
  EXPECT_EQ(elsewhere.status, 2);
  EXPECT_THAT(elsewhere.errors, HasSubstr("checkpoints of an earlier run, which this one would replace"));
  for (const auto& [key, why] : std::vector<std::pair<std::string, std::string>>{
           {"model.layers=2", "layers: 4 there, 2 here"}, {"model.norm_epsilon=0.001", "(norm_epsilon: 1e-05 there, 0.001 here)"},
           {"model.rope_theta=500", "rope_theta: 10000 there, 500 here"}}) {
    const std::string elsewhere = fresh("refused-setting");
    const Ended changed = executed(elsewhere, {"--resume " + folder, "--set " + key});
    EXPECT_EQ(changed.status, 2) << key;
    EXPECT_THAT(changed.errors, HasSubstr(why));
    EXPECT_FALSE(std::filesystem::exists(bundle_path(elsewhere))) << key;
  }
}

std::string appended_copy(const std::string& name, const std::string& more) {
  const std::string path = temporary_folder().path(name);
  std::filesystem::copy_file(SLIPWAY_SOURCE_DIR "/scenarios/data/us-founding-documents.txt", path,
                             std::filesystem::copy_options::overwrite_existing);
  std::ofstream(path, std::ios::app) << more;
  return path;
}

// By slipway before anything starts, and by ranks that somebody else starts.
TEST_F(Resume, OtherDataAreRefusedButNotTheSameAtAnotherPlace) {
  const std::string folder = ended_at_four("data"), elsewhere = fresh("data-refused");
  const std::string same = appended_copy("same.txt", ""), longer = appended_copy("longer.txt", "More.");
  const Ended other = executed(elsewhere, {"--resume " + folder, "--set run.data=" + longer});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.errors, AllOf(HasSubstr("us-founding-documents.txt ("), HasSubstr(longer + " ("), HasSubstr("holds something else"),
                                  HasSubstr("start a new run without --resume")));
  EXPECT_FALSE(std::filesystem::exists(bundle_path(elsewhere)));
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, {folder + "/run.slip", "--steps", "6", "--data", longer, "--resume", "latest", "--out", folder},
                      2, fresh("data-ranks"));
  for (const Ended& rank : ranks.wait(starting_s)) {
    EXPECT_EQ(rank.status, 1);
    EXPECT_THAT(rank.errors, HasSubstr("holds something else"));
  }
  const Ended moved = executed(folder, {"--resume latest", "--set run.steps=5", "--set run.data=" + same});
  EXPECT_EQ(moved.status, 0) << moved.errors;
}

}  // namespace
}  // namespace slipway
