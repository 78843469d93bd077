// The torchrun of other tests (SLIPWAY_TORCHRUN): it starts every rank with the variables that a rank program reads,
// and fails when one of them fails.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/support/torchrun.h"

namespace {

struct Outcome {
  int status = 0;
  std::string output;
};

Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::array<char, 4096> part;
  while (fgets(part.data(), static_cast<int>(part.size()), pipe) != nullptr) outcome.output += part.data();
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

class Torchrun : public testing::Test {
 protected:
  void SetUp() override {
    const std::string command = slipway::test::torchrun_command();
    if (command.empty()) GTEST_SKIP() << slipway::test::why_no_torchrun();
    two_ranks_ = command + " --standalone --nproc-per-node 2 --no-python ";
  }
  std::string two_ranks_;
};

TEST_F(Torchrun, GivesEachRankItsNumberAndTheStoreOfTheAgent) {
  const Outcome outcome = run(two_ranks_ + "sh -c 'echo \"[$RANK/$WORLD_SIZE $TORCHELASTIC_USE_AGENT_STORE]\"'");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("[0/2 True]"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("[1/2 True]"), std::string::npos) << outcome.output;
}

TEST(NoTorchrun, IsSaidWithItsReason) {
  ::setenv("SLIPWAY_TORCHRUN_MISSING", "torch/distributed/run.py is not there", 1);
  EXPECT_EQ(slipway::test::why_no_torchrun(), "no torchrun: torch/distributed/run.py is not there");
  ::unsetenv("SLIPWAY_TORCHRUN_MISSING");
}

TEST_F(Torchrun, FailsWhenOneRankFails) {
  const Outcome outcome = run(two_ranks_ + "sh -c 'exit $RANK'");
  EXPECT_NE(outcome.status, 0) << outcome.output;
}

}  // namespace
