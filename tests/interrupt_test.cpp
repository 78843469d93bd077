// Ctrl-C on the real program: a partial answer and exit status 1.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "scenarios/commands/interrupts.h"
#include "tests/command_test.h"

namespace slipway {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::vector<std::string> minutes_of_simulation{
    "simulate", SLIPWAY_SOURCE_DIR "/scenarios/scale/llama-8b-64xh100.yaml", "--set", "schedule.global_batch=2000",
    "--exact", "--steps", "20"};

// Starts slipway with arguments that keep it busy for a minute and more, and interrupts it once
// `when(standard error)` holds.
class Interrupted : public CommandTest {
 protected:
  int run(bool (*when)(const std::string& err), std::vector<std::string> arguments = minutes_of_simulation) {
    const std::string out = path("out.txt"), err = path("err.txt");
    std::filesystem::remove(err);  // of an earlier run
    arguments.insert(arguments.begin(), "slipway");
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      std::freopen(out.c_str(), "w", stdout);
      std::freopen(err.c_str(), "w", stderr);
      execv(SLIPWAY_PROGRAM, words.data());
      _exit(99);
    }
    for (int i = 0; i < 1200 && !when(content_of(err)); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(child, SIGINT);
    int status = 0;
    waitpid(child, &status, 0);
    out_ = content_of(out), err_ = content_of(err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string out_, err_;
};

TEST_F(Interrupted, WhileItSimulatesTellsHowFarItCame) {
  EXPECT_EQ(run([](const std::string& err) { return err.find("simulating") != std::string::npos; }), 1) << err_;
  EXPECT_NE(out_.find("interrupted: "), std::string::npos) << out_ << err_;
  EXPECT_NE(out_.find("of simulated time"), std::string::npos) << out_;
  EXPECT_NE(out_.find("3 (rank 48)"), std::string::npos) << out_;
}

// The line that it waits for comes after two seconds of planning: three times the batch, so that as much is still to come.
TEST_F(Interrupted, WhileItPlansEndsWithStatusOne) {
  std::vector<std::string> larger = minutes_of_simulation;
  larger.insert(larger.end(), {"--set", "schedule.global_batch=6000"});
  EXPECT_EQ(run([](const std::string& err) { return err.find("planning") != std::string::npos; }, larger), 1) << err_;
  EXPECT_NE(err_.find("interrupted"), std::string::npos) << err_;
}

// Commands that have nothing to say before their end: they tell that, with the status that help promises.
TEST_F(Interrupted, EveryCommandEndsWithStatusOneAndALine) {
  const std::vector<std::string> goodput{"goodput", minutes_of_simulation[1], "--set", "cluster.mtbf_per_node=1 min",
                                         "--set", "run.checkpoint_cost=1 s", "--days", "17"};  // 980 M failures
  for (const auto& arguments : {goodput, {"validate", "--engine", "simulation"}}) {
    EXPECT_EQ(run([](const std::string& err) { return !err.empty(); }, arguments), 1) << arguments[0] << err_;
    EXPECT_NE(err_.find("slipway: interrupted before the answer was known"), std::string::npos) << arguments[0] << err_;
  }
}

TEST_F(Interrupted, WhileItStudiesKeepsThePointsThatAreDone) {
  std::string batches = "schedule.global_batch=32";
  for (int i = 2; i <= 1000; ++i) batches += "," + std::to_string(32 * i);
  const std::vector<std::string> study{"study", SLIPWAY_SOURCE_DIR "/scenarios/scale/llama-8b-64xh100.yaml",
                                       "--vary", batches, "--jobs", "1"};
  EXPECT_EQ(run([](const std::string& err) { return err.find("studying") != std::string::npos; }, study), 1) << err_;
  EXPECT_NE(err_.find("interrupted; the table has"), std::string::npos) << err_;
  EXPECT_NE(out_.find("yes"), std::string::npos) << "the first point fits\n" << out_;
  EXPECT_NE(out_.find("32000: interrupted before its end"), std::string::npos) << out_;
}

}  // namespace
}  // namespace slipway
