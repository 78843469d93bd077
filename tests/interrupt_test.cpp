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

// Starts `slipway simulate` of a step that takes minutes and interrupts it once `when(standard error)` holds.
class Interrupted : public CommandTest {
 protected:
  int run(bool (*when)(const std::string& err)) {
    const std::string out = path("out.txt"), err = path("err.txt");
    const pid_t child = fork();
    if (child == 0) {
      std::freopen(out.c_str(), "w", stdout);
      std::freopen(err.c_str(), "w", stderr);
      execl(SLIPWAY_PROGRAM, "slipway", "simulate", SLIPWAY_SOURCE_DIR "/scenarios/scale/llama-8b-64xh100.yaml", "--set",
            "schedule.global_batch=2000", "--exact", "--steps", "20", nullptr);
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

TEST_F(Interrupted, WhileItPlansEndsWithStatusOne) {
  EXPECT_EQ(run([](const std::string& err) { return err.find("planning") != std::string::npos; }), 1) << err_;
  EXPECT_NE(err_.find("interrupted"), std::string::npos) << err_;
}

}  // namespace
}  // namespace slipway
