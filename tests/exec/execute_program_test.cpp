// `slipway execute` with real ranks, as a user starts it: its files, that it is repeatable, and its end when a rank is
// killed. tests/scenarios/execute_command_test.cpp tests what it does around its ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include "models/trace/trace.h"
#include "scenarios/predict/chrome_trace.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

constexpr double starting_s = 60;  // on a busy machine
constexpr double promised_s = 10;  // from a rank's end to the end of all

std::vector<std::string> execute_words(const std::string& folder, int steps) {
  return {"execute", SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml",  // two stages
          "--set",   "run.steps=" + std::to_string(steps),
          "--out",   folder};
}

// A single `slipway execute` without the variables of a launcher. `env` execs slipway, so its process is slipway's.
RankProcesses started_alone(const std::string& folder, int steps, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words;
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"})
    words.insert(words.end(), {"-u", name});
  words.push_back(SLIPWAY_PROGRAM);
  for (const std::string& word : execute_words(folder, steps)) words.push_back(word);
  words.insert(words.end(), more.begin(), more.end());
  return RankProcesses("/usr/bin/env", words, 1, folder, {{"SLIPWAY_RANK", SLIPWAY_RANK_PROGRAM}});
}

void expect_complete_run(const std::string& folder, int steps) {
  std::ifstream in(folder + "/trace.json");
  const Trace trace = read_chrome_trace(in, "trace.json");
  EXPECT_EQ(trace.engine, "libtorch");
  EXPECT_EQ(trace.ranks, 2);
  EXPECT_EQ(trace.losses.size(), static_cast<std::size_t>(steps));
  for (int rank = 0; rank < 2; ++rank) {
    for (int step = 0; step < steps; ++step) {
      EXPECT_TRUE(std::any_of(trace.records.begin(), trace.records.end(),
                              [&](const TraceRecord& record) {
                                return record.rank == rank && record.step == step && record.kind == "backward";
                              }))
          << "rank " << rank << ", step " << step;
    }
  }
  std::istringstream losses(text_of_file(folder + "/losses.csv"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(losses, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), static_cast<std::size_t>(steps) + 1);
  EXPECT_EQ(lines[0], "step,samples,loss,learning_rate");
  for (int step = 0; step < steps; ++step) {
    const std::string begin = std::to_string(step + 1) + "," + std::to_string(8 * (step + 1)) + ",";
    EXPECT_EQ(lines[static_cast<std::size_t>(step) + 1].rfind(begin, 0), 0u);
  }
}

TEST(ExecuteProgram, LeavesATraceAndTheSameLossesEveryTime) {
  std::string losses[2];
  for (int i = 0; i < 2; ++i) {
    const std::string folder = temporary_folder().path("again" + std::to_string(i));
    RankProcesses slipway = started_alone(folder, 5);
    const Ended ended = slipway.wait(starting_s).front();
    ASSERT_EQ(ended.status, 0) << ended.errors;
    EXPECT_THAT(ended.output, HasSubstr("step 5/5  loss "));
    EXPECT_THAT(ended.output, HasSubstr("losses: " + folder + "/losses.csv"));
    expect_complete_run(folder, 5);
    losses[i] = text_of_file(folder + "/losses.csv");
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(ExecuteProgram, JoinsTheRanksThatALauncherStarts) {
  const std::string alone = temporary_folder().path("alone"), joined = temporary_folder().path("joined");
  ASSERT_EQ(started_alone(alone, 5).wait(starting_s).front().status, 0);
  RankProcesses slipways(SLIPWAY_PROGRAM, execute_words(joined, 5), 2, joined,
                         {{"SLIPWAY_RANK", SLIPWAY_RANK_PROGRAM}});
  for (const Ended& ended : slipways.wait(starting_s)) EXPECT_EQ(ended.status, 0) << ended.errors;
  expect_complete_run(joined, 5);
  EXPECT_EQ(text_of_file(joined + "/losses.csv"), text_of_file(alone + "/losses.csv"));
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::istringstream in(text_of_file(task.path().string() + "/children"));
    for (pid_t child = 0; in >> child;) children.push_back(child);
  }
  return children;
}

bool is_rank(pid_t process, int rank) {
  const std::string nul(1, '\0');
  const std::string variables = nul + text_of_file("/proc/" + std::to_string(process) + "/environ");
  return variables.find(nul + "RANK=" + std::to_string(rank) + nul) != std::string::npos;
}

// SIGHUP: a lost terminal.
class InterruptedExecute : public testing::TestWithParam<int> {};

TEST_P(InterruptedExecute, SaysSoAndWhatItKept) {
  const std::string folder = temporary_folder().path("interrupted" + std::to_string(GetParam()));
  std::signal(SIGHUP, SIG_DFL);  // where the tests run under nohup
  RankProcesses slipway = started_alone(folder, 1000000);
  ASSERT_TRUE(slipway.printed(0, "step 3/", starting_s));
  const std::vector<pid_t> ranks = children_of(slipway.pid(0));
  ASSERT_EQ(ranks.size(), 2u);
  const std::string half_written = folder + "/checkpoints/step-00000003.partial";  // as if it fell into a checkpoint
  std::filesystem::create_directories(half_written);
  slipway.mark();
  slipway.kill(0, GetParam());
  const Ended ended = slipway.wait(2 * promised_s).front();
  EXPECT_EQ(ended.status, 1);
  EXPECT_LT(ended.seconds, promised_s);
  EXPECT_THAT(ended.errors, HasSubstr("slipway execute: interrupted (Ctrl-C, SIGINT, SIGTERM or SIGHUP); all ranks"));
  EXPECT_THAT(ended.errors,
              testing::ContainsRegex("kept: losses of [0-9]+ steps \\(losses.csv\\); records of rank 0, 1"));
  EXPECT_THAT(text_of_file(folder + "/losses.csv"), HasSubstr("\n3,24,"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/trace.json"));
  EXPECT_FALSE(std::filesystem::exists(half_written));
  for (const pid_t process : ranks) EXPECT_EQ(::kill(process, 0), -1) << process << " still runs";
}

INSTANTIATE_TEST_SUITE_P(By, InterruptedExecute, testing::Values(SIGINT, SIGHUP));

class KilledUnderExecute : public testing::TestWithParam<int> {};

TEST_P(KilledUnderExecute, RankEndsTheWholeRunWhichNamesItAndItsSignal) {
  const int rank = GetParam();
  const std::string name = "rank " + std::to_string(rank);
  const std::string folder = temporary_folder().path("killed" + std::to_string(rank));
  RankProcesses slipway = started_alone(folder, 1000000);
  ASSERT_TRUE(slipway.printed(0, "step 3/", starting_s));
  const std::vector<pid_t> ranks = children_of(slipway.pid(0));
  ASSERT_EQ(ranks.size(), 2u);
  const auto victim = std::find_if(ranks.begin(), ranks.end(), [&](pid_t process) { return is_rank(process, rank); });
  ASSERT_NE(victim, ranks.end());
  slipway.mark();
  ASSERT_EQ(::kill(*victim, SIGKILL), 0);
  const Ended ended = slipway.wait(2 * promised_s).front();
  EXPECT_EQ(ended.status, 1);
  EXPECT_LT(ended.seconds, promised_s);
  EXPECT_THAT(ended.errors, HasSubstr("slipway execute: " + name + " "));
  EXPECT_THAT(ended.errors, HasSubstr("killed by signal 9"));
  for (const pid_t process : ranks) EXPECT_EQ(::kill(process, 0), -1) << process << " still runs";
  EXPECT_FALSE(std::filesystem::exists(folder + "/trace.json"));
  EXPECT_THAT(ended.errors, testing::ContainsRegex("kept: losses of [0-9]+ steps"));
  EXPECT_THAT(text_of_file(folder + "/losses.csv"), HasSubstr("\n3,24,"));
}
INSTANTIATE_TEST_SUITE_P(Any, KilledUnderExecute, testing::Values(0, 1));

TEST(ExecuteProgram, CudaGraphsOfRanksOnAProcessorAreRefused) {
  const std::string folder = temporary_folder().path("graphs");
  const Ended ended = started_alone(folder, 2, {"--cuda-graphs"}).wait(starting_s).front();
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors, HasSubstr("--cuda-graphs: ranks on a processor have none"));
}

}  // namespace
}  // namespace slipway::test
