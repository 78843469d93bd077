// Several ranks in one process of the rank program: they write the files of separate processes, train like one process,
// and when one of them fails all end with its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/trace/trace.h"
#include "schedules/lower/lowering.h"
#include "tests/support/rank_processes.h"
#include "tests/support/same_training.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

constexpr int training_steps = 20;

Bundle bundle_of(const Degrees& degrees, int steps = training_steps) {
  Step input = with_layout(tiny_llama(4, true), degrees);
  input.layout.sequence_parallel = degrees.tensor > 1;
  input.clip_norm = 0.5;
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = steps;
  return bundle;
}

std::string new_folder() {
  static int count = 0;
  return temporary_folder().path("shared" + std::to_string(count++));
}

struct Finished {
  std::string folder;
  std::vector<Ended> processes;
};

Finished run(const Bundle& bundle, int processes, std::vector<std::string> more = {}) {
  const std::string folder = new_folder();
  std::filesystem::create_directories(folder);
  write_bundle_file(folder + "/run.slip", bundle);
  std::vector<std::string> words{folder + "/run.slip", "--out", folder, "--ranks-per-process",
                                 std::to_string(rank_count(bundle.graph.step.layout) / processes)};
  words.insert(words.end(), more.begin(), more.end());
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words, processes, folder);
  return {folder, ranks.wait(120)};
}

void expect_success(const Finished& run) {
  for (const Ended& process : run.processes) {
    EXPECT_EQ(process.status, 0) << process.errors;
    EXPECT_EQ(process.errors, "");
  }
}

Trained train(const Degrees& degrees, int processes) {
  const Bundle bundle = bundle_of(degrees);
  const Finished done = run(bundle, processes, {"--dump-gradients", "1"});
  expect_success(done);
  std::ifstream file(done.folder + "/rank-0.losses");
  std::vector<double> losses;
  long long step = 0, samples = 0;
  for (double loss = 0, rate = 0; file >> step >> samples >> loss >> rate;) losses.push_back(loss);
  return trained(std::move(losses), done.folder, rank_count(bundle.graph.step.layout));
}

const Trained& one_process() {
  static const Trained one = train({}, 1);
  return one;
}

TEST(RanksOfOneProcess, GiveTheLossesAndGradientsOfOneRankInAnyLayout) {
  ASSERT_EQ(one_process().losses.size(), std::size_t{training_steps});
  EXPECT_LT(one_process().losses.back(), 0.9 * one_process().losses.front()) << "the run must learn something";
  for (const Degrees& degrees :
       {Degrees{.tensor = 2, .pipeline = 2, .data = 2, .zero = 1}, Degrees{.pipeline = 2, .chunks = 2},
        Degrees{.tensor = 2, .data = 2, .context = 2, .zero = 3}, Degrees{.pipeline = 4, .data = 2, .zero = 2}}) {
    SCOPED_TRACE(testing::Message() << "tensor " << degrees.tensor << ", pipeline " << degrees.pipeline << ", data "
                                    << degrees.data << ", context " << degrees.context << ", ZeRO " << degrees.zero);
    expect_same_training(one_process(), train(degrees, 1));
  }
}

// Some communicators are inside one process, some between two, some both.
TEST(RanksOfTwoProcesses, GiveTheLossesAndGradientsOfOneRank) {
  expect_same_training(one_process(), train({.tensor = 2, .pipeline = 2, .data = 2, .zero = 1}, 2));
}

TEST(RanksOfOneProcess, GiveTheSameLossesBitForBitAgain) {
  const Bundle bundle = bundle_of({.tensor = 2, .pipeline = 2, .data = 2, .zero = 1}, 5);
  std::string texts[2];
  for (std::string& text : texts) {
    const Finished done = run(bundle, 1);
    expect_success(done);
    text = text_of_file(done.folder + "/rank-0.losses");
  }
  EXPECT_NE(texts[0], "");
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(RanksOfOneProcess, RecordEveryTaskOfEveryStepOnce) {
  const Bundle bundle = bundle_of({.tensor = 2, .pipeline = 2}, 2);
  const Finished done = run(bundle, 1);
  expect_success(done);
  for (int rank = 0; rank < 4; ++rank) {
    std::multiset<std::string> expected, recorded;
    for (TaskId task = 0; task < bundle.graph.tasks.size(); ++task) {
      const auto members = members_of(bundle.graph, task);
      if (std::find(members.begin(), members.end(), rank) == members.end()) continue;
      for (int step = 0; step < 2; ++step) expected.insert(std::to_string(step) + label_of(bundle.graph, task));
    }
    std::ifstream file(done.folder + "/rank-" + std::to_string(rank) + ".records");
    for (std::string line; std::getline(file, line);) {
      const TraceRecord record = record_from_text(line);
      EXPECT_EQ(record.rank, rank);
      recorded.insert(std::to_string(record.step) + record.label);
    }
    EXPECT_EQ(recorded, expected);
  }
  EXPECT_THAT(done.processes[0].output, HasSubstr("step 2/2  loss "));
}

// Its gradients cannot be written: a failure of rank 2 alone, in the middle of the run.
TEST(AFailingRankOfASharedProcess, EndsAllProcessesWithItsNameAndItsCause) {
  const std::string folder = new_folder();
  std::filesystem::create_directories(folder + "/gradients.6/in-the-way");
  Bundle bundle = bundle_of({.tensor = 2, .pipeline = 2, .data = 2}, 1000000);
  write_bundle_file(folder + "/run.slip", bundle);
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM,
                      {folder + "/run.slip", "--out", folder, "--ranks-per-process", "4", "--dump-gradients", "2"}, 2,
                      folder);
  const std::vector<Ended> ended = ranks.wait(60);
  for (const Ended& process : ended) EXPECT_EQ(process.status, 1);
  EXPECT_THAT(ended[0].errors, HasSubstr("rank 0 stops: rank 6 failed: "));
  EXPECT_THAT(ended[1].errors, HasSubstr("rank 6 failed: "));
  for (const Ended& process : ended) EXPECT_THAT(process.errors, HasSubstr("gradients.6"));
  EXPECT_THAT(text_of_file(folder + "/failure"), testing::StartsWith("6 "));
}

TEST(AKilledProcess, IsNamedByItsFirstRank) {
  const std::string folder = new_folder();
  std::filesystem::create_directories(folder);
  write_bundle_file(folder + "/run.slip", bundle_of({.pipeline = 2, .data = 2}, 1000000));
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, {folder + "/run.slip", "--out", folder, "--ranks-per-process", "2"}, 2,
                      folder);
  ASSERT_TRUE(ranks.printed(0, "step 3/", 60));
  ranks.mark();
  ranks.kill(1, SIGKILL);
  const std::vector<Ended> ended = ranks.wait(20);
  EXPECT_EQ(ended[0].status, 1);
  EXPECT_LT(ended[0].seconds, 10);
  EXPECT_THAT(ended[0].errors, HasSubstr("rank 0 stops: rank 2 failed: killed by signal 9"));
  for (const int rank : {0, 1})
    EXPECT_THAT(text_of_file(folder + "/rank-" + std::to_string(rank) + ".records"), HasSubstr("\n"))
        << "what had happened is written";
}

// The first rank of a process works on its main thread. Its error before training must not end the others unreported.
TEST(RanksOfOneProcess, EndWithTheCauseOfTheFirstOneBeforeTrainingBegins) {
  const Finished done = run(bundle_of({.pipeline = 2}, 2), 1, {"--data", "/no/such/text"});
  EXPECT_EQ(done.processes[0].status, 1) << done.processes[0].errors;
  EXPECT_THAT(done.processes[0].errors, HasSubstr("/no/such/text"));
}

TEST(AWrongNumberOfProcesses, IsRefusedWithTheNumberOfRanksThatWouldFit) {
  const Finished half = run(bundle_of({.pipeline = 4}, 1), 4, {"--ranks-per-process", "2"});
  for (const Ended& process : half.processes) {
    EXPECT_EQ(process.status, 2);
    EXPECT_THAT(process.errors, HasSubstr("is made for 4 ranks, but 4 of --ranks-per-process 2 were started"));
    EXPECT_THAT(process.errors, HasSubstr("start 2, give --ranks-per-process 1 or lower the scenario again"));
  }
  const Finished odd = run(bundle_of({.pipeline = 4}, 1), 3, {"--ranks-per-process", "3"});
  EXPECT_THAT(odd.processes[0].errors, HasSubstr("start 4 and give --ranks-per-process 1 or lower"));
  const Finished alone = run(bundle_of({.pipeline = 4}, 1), 1, {"--ranks-per-process", "1"});
  EXPECT_THAT(alone.processes[0].errors, HasSubstr("start 4, give --ranks-per-process 4 or lower the scenario again"));
}

}  // namespace
}  // namespace slipway::test
