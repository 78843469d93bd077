// `slipway execute` with checkpoints, as a user runs it: killed and resumed, resumed in another layout, a damaged
// checkpoint, a full disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "exec/run/checkpoint_folder.h"
#include "exec/run/run_files.h"
#include "tests/support/resumed_runs.h"

namespace slipway::test {

namespace {

using testing::DoubleEq;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

class KilledAt : public testing::TestWithParam<int> {};

TEST_P(KilledAt, AnyMomentARunResumesWithTheLossesOfTheUninterruptedOneToTheLastBit) {
  const std::string folder = fresh("killed" + std::to_string(GetParam()));
  {
    RankProcesses run = started(folder, {"--set run.checkpoint_steps=2", "--set run.steps=1000000"});
    ASSERT_TRUE(run.printed(0, "step " + std::to_string(GetParam()) + "/", starting_s));
    run.kill(0, SIGKILL);  // its ranks die with it
    run.wait(promised_s);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until the ranks are gone
  std::vector<std::int64_t> steps = complete_checkpoints(folder);
  while (!steps.empty() && steps.back() >= all_steps) {  // the kill came late on a fast machine
    std::filesystem::remove_all(checkpoint_path(folder, steps.back()));
    steps.pop_back();
  }
  // If it was killed before a save, it begins again; a half-written checkpoint does not count.
  const Ended resumed = executed(folder, {"--set run.checkpoint_steps=2", steps.empty() ? "" : "--resume latest"});
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  if (!steps.empty()) {
    EXPECT_THAT(resumed.output, HasSubstr("from step " + std::to_string(steps.back())));
  }
  EXPECT_EQ(losses_of(folder), whole_losses());
  EXPECT_EQ(complete_checkpoints(folder).back(), all_steps);  // the end is saved too
  EXPECT_LE(complete_checkpoints(folder).size(), 2u);         // run.checkpoints_kept
}
INSTANTIATE_TEST_SUITE_P(Step, KilledAt, testing::Values(2, 3, 5));

// The last column of losses.csv.
std::vector<double> rates_of(const std::string& csv) {
  std::vector<double> rates;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) rates.push_back(std::stod(line.substr(line.rfind(',') + 1)));
  return rates;
}

struct Layouts {
  const char *name, *first, *second;
};
class OtherLayout : public testing::TestWithParam<Layouts> {};

TEST_P(OtherLayout, GoesOnFromACheckpointAsIfNothingHadHappened) {
  const Layouts layouts = GetParam();
  const std::string first = fresh(std::string("first") + layouts.name),
                    second = fresh(std::string("second") + layouts.name);
  const Ended one = executed(first, {layouts.first, "--set run.steps=4", "--set run.checkpoint_steps=4"});
  ASSERT_EQ(one.status, 0) << one.errors;
  const Ended other = executed(second, {layouts.second, "--resume " + first});
  ASSERT_EQ(other.status, 0) << other.errors;
  const std::vector<double> expected = numbers_of(whole_losses()), found = numbers_of(losses_of(second));
  ASSERT_EQ(found.size(), 4u);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[4 + i], 1e-9 * std::abs(expected[4 + i])) << "step " << 4 + i;
}
INSTANTIATE_TEST_SUITE_P(
    From, OtherLayout,
    testing::Values(
        Layouts{"PipelineToTensor", "", "--set layout.pipeline=1 --set layout.tensor=2"},
        Layouts{"TensorToSlices", "--set layout.pipeline=1 --set layout.tensor=2",
                "--set layout.pipeline=1 --set layout.data=2 --set layout.zero=1"},
        Layouts{"SlicesToPipeline", "--set layout.pipeline=1 --set layout.data=2 --set layout.zero=1", ""},
        Layouts{"ReplicasToOneRank", "--set layout.pipeline=1 --set layout.data=2",
                "--set layout.pipeline=1 --set cluster.gpus_per_node=1"},
        Layouts{"PipelineToGatheredWeights", "", "--set layout.pipeline=1 --set layout.data=2 --set layout.zero=3"},
        Layouts{"GatheredWeightsToContext", "--set layout.pipeline=1 --set layout.data=2 --set layout.zero=3",
                "--set layout.pipeline=1 --set layout.context=2 --set layout.zero=2"},
        Layouts{"CopiesOfHeadsToPipeline",
                "--set layout.pipeline=1 --set layout.tensor=4 --set cluster.gpus_per_node=4", ""},
        Layouts{"PipelineToCopiesOfHeads", "",
                "--set layout.pipeline=1 --set layout.tensor=4 --set cluster.gpus_per_node=4"},
        Layouts{"ChimeraToPipeline", "--set schedule.name=chimera", ""}),
    [](const auto& each) { return each.param.name; });

// A warm-up of three steps of 8 and a decay that ends after eight; lr 0.003.
const std::string scheduled =
    "--set run.optimizer.lr_warmup_samples=24 --set run.optimizer.lr_decay_style=cosine --set "
    "run.optimizer.min_lr=0.0003 "
    "--set run.optimizer.lr_decay_samples=64";

TEST(ScheduledRate, GoesOnWhereItWasToTheLastBit) {
  const std::string whole = fresh("rate-whole"), folder = fresh("rate-resumed");
  ASSERT_EQ(executed(whole, {scheduled}).status, 0);
  ASSERT_EQ(executed(folder, {scheduled, "--set run.steps=5", "--set run.checkpoint_steps=5"}).status, 0);
  const Ended resumed = executed(folder, {scheduled, "--resume latest"});
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_THAT(
      resumed.output,
      HasSubstr("learning rate: 0.003 after a warm-up of 24 sequences, cosine decay to 0.0003 after 64 sequences"));
  EXPECT_EQ(losses_of(folder), losses_of(whole));
  EXPECT_NE(numbers_of(losses_of(whole)), numbers_of(whole_losses()));
  EXPECT_DOUBLE_EQ(rates_of(losses_of(whole)).front(), 0.001);
}

// The checkpoint counts samples: half of the warm-up of 32 is done, whatever the batch is now. A decay to the end of
// the training ends with the samples of the new batch: 16 + 3 x 16 sequences.
TEST(ScheduledRate, GoesOnInAnotherLayoutAndBatchBySamples) {
  const std::string set = "--set run.optimizer.lr_warmup_samples=32 --set run.optimizer.lr_decay_style=linear";
  const std::string first = fresh("rate-first"), second = fresh("rate-second");
  const Ended one = executed(first, {set, "--set run.steps=4", "--set run.checkpoint_steps=2"});
  ASSERT_EQ(one.status, 0) << one.errors;
  EXPECT_THAT(rates_of(losses_of(first)), Pointwise(DoubleEq(), {0.00075, 0.0015, 0.00225, 0.003}));
  EXPECT_THAT(one.output, HasSubstr("  lr 7.50e-04  "));
  EXPECT_THAT(one.output, HasSubstr("  lr 3.00e-03  "));
  EXPECT_THAT(one.output, Not(HasSubstr("decays to the end of this start")));
  const Ended early = executed(second, {set, "--set run.steps=3", "--resume " + checkpoint_path(first, 2)});
  EXPECT_EQ(early.status, 2);
  EXPECT_THAT(early.errors,
              HasSubstr("with which the decay ends: 24 (16 of the checkpoint + 1 step x schedule.global_batch 8)"));
  const Ended other = executed(second, {set, "--set run.steps=5", "--set schedule.global_batch=16",
                                        "--set layout.pipeline=1 --set layout.data=2 --set layout.zero=2",
                                        "--resume " + checkpoint_path(first, 2)});
  ASSERT_EQ(other.status, 0) << other.errors;
  EXPECT_THAT(other.output, HasSubstr("note: the learning rate decays to the end of this start, step 5, "));
  EXPECT_THAT(rates_of(losses_of(second)), Pointwise(DoubleEq(), {0.003, 0.003, 0.0015}));
}

}  // namespace

// Folders of runs after an error, and which runs may continue from them: damaged checkpoints, full disks, replaced
// runs, missing traces.

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
  EXPECT_EQ(complete_checkpoints(folder), (std::vector<std::int64_t>{2, 4}))
      << "a start that failed has changed something";
  EXPECT_TRUE(std::filesystem::exists(trace_path(folder)));
  const Ended resumed = executed(folder, {"--resume " + checkpoint_path(folder, 2)});
  EXPECT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_THAT(resumed.errors, HasSubstr("a later checkpoint of another course is kept as " +
                                        checkpoint_path(folder, 4) + ".abandoned"));
  EXPECT_EQ(complete_checkpoints(folder), (std::vector<std::int64_t>{2}))
      << "--resume latest would take another course";
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

// A file system of its own, so that nothing else runs out of room. The ranks inherit the shell's mounts.
TEST_F(Resume, AFileSystemFullOfACheckpointEndsTheRunWithItsCauseAndLosesNothing) {
  const std::string disk = fresh("small-disk"), folder = disk + "/run";
  std::filesystem::create_directories(disk);
  if (::system(("unshare -m mount -t tmpfs -o size=64k tmpfs " + disk).c_str()) != 0)
    GTEST_SKIP() << "no file system can be mounted here (it takes root)";
  const std::string logs = fresh("small-disk-logs"), kept = fresh("small-disk-kept");
  // After step 4's checkpoint of some 5 MB another one, while the first is kept, has room in part.
  const std::string script = "mount -t tmpfs -o size=8m tmpfs " + disk + " && { sh " + logs +
                             "/run; status=$?; cp -r " + folder + " " + kept + "; exit $status; }";
  std::filesystem::create_directories(logs);
  std::ofstream(logs + "/run") << command_line(folder, {"--set run.checkpoint_steps=2", "--set run.steps=1000"});
  RankProcesses run("/bin/sh", {"-c", "exec unshare -m sh -c '" + script + "'"}, 1, logs,
                    {{"SLIPWAY_RANK", SLIPWAY_RANK_PROGRAM}});
  const Ended ended = run.wait(starting_s).front();
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors,
              testing::ContainsRegex(
                  "slipway execute: rank [01] failed: checkpoint of step [0-9]+: cannot write .*No space left"));
  EXPECT_THAT(ended.errors, HasSubstr("(losses.csv); records of rank 0, 1;"));
  EXPECT_THAT(ended.errors, Not(HasSubstr("is lost")));
  EXPECT_FALSE(complete_checkpoints(kept).empty());
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints_path(kept)))
    EXPECT_NE(entry.path().extension(), ".partial");
}

// It saves none itself: its --resume latest continued from the replaced run's.
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
  for (const std::string& path :
       {trace_path(folder), losses_csv_path(folder), losses_path(folder), checkpoints_path(folder)})
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
  // To continue from another run's checkpoint would replace a finished run's files in the folder.
  const Ended elsewhere = executed(ended_at_four("refused-elsewhere"), {"--resume " + folder});
  EXPECT_EQ(elsewhere.status, 2);
  EXPECT_THAT(elsewhere.errors, HasSubstr("checkpoints of an earlier run, which this one would replace"));
  for (const auto& [key, why] : std::vector<std::pair<std::string, std::string>>{
           {"model.layers=2", "layers: 4 there, 2 here"},
           {"model.norm_epsilon=0.001", "(norm_epsilon: 1e-05 there, 0.001 here)"},
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

// Reported by slipway before anything starts, and by ranks that another launcher starts.
TEST_F(Resume, OtherDataAreRefusedButNotTheSameAtAnotherPlace) {
  const std::string folder = ended_at_four("data"), elsewhere = fresh("data-refused");
  const std::string same = appended_copy("same.txt", ""), longer = appended_copy("longer.txt", "More.");
  const Ended other = executed(elsewhere, {"--resume " + folder, "--set run.data=" + longer});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.errors, AllOf(HasSubstr("us-founding-documents.txt ("), HasSubstr(longer + " ("),
                                  HasSubstr("holds something else"), HasSubstr("start a new run without --resume")));
  EXPECT_FALSE(std::filesystem::exists(bundle_path(elsewhere)));
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM,
                      {folder + "/run.slip", "--steps", "6", "--data", longer, "--resume", "latest", "--out", folder},
                      2, fresh("data-ranks"));
  for (const Ended& rank : ranks.wait(starting_s)) {
    EXPECT_EQ(rank.status, 1);
    EXPECT_THAT(rank.errors, HasSubstr("holds something else"));
  }
  const Ended moved = executed(folder, {"--resume latest", "--set run.steps=5", "--set run.data=" + same});
  EXPECT_EQ(moved.status, 0) << moved.errors;
}

}  // namespace

}  // namespace slipway::test
