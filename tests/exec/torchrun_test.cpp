// The torchrun of other tests (SLIPWAY_TORCHRUN): it starts every rank with the variables that a rank program reads,
// and fails when one of them fails.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/printed.h"
#include "tests/support/torchrun.h"

namespace {

using slipway::test::Printed;

// With standard error.
Printed run(const std::string& command) { return slipway::test::printed_by(command + " 2>&1"); }

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
  const Printed outcome = run(two_ranks_ + "sh -c 'echo \"[$RANK/$WORLD_SIZE $TORCHELASTIC_USE_AGENT_STORE]\"'");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("[0/2 True]"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("[1/2 True]"), std::string::npos) << outcome.text;
}

TEST(NoTorchrun, IsSaidWithItsReason) {
  ::setenv("SLIPWAY_TORCHRUN_MISSING", "torch/distributed/run.py is not there", 1);
  EXPECT_EQ(slipway::test::why_no_torchrun(), "no torchrun: torch/distributed/run.py is not there");
  ::unsetenv("SLIPWAY_TORCHRUN_MISSING");
}

TEST_F(Torchrun, FailsWhenOneRankFails) {
  const Printed outcome = run(two_ranks_ + "sh -c 'exit $RANK'");
  EXPECT_NE(outcome.status, 0) << outcome.text;
}

}  // namespace
