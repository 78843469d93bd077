// Commands that really train: `slipway execute` finds the rank program of this build.
#pragma once

#include <cstdlib>

#include "tests/support/command_test.h"

namespace slipway::test {

class ExecutingTest : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    ::setenv("SLIPWAY_RANK", SLIPWAY_RANK_PROGRAM, 1);
  }
  void TearDown() override {
    ::unsetenv("SLIPWAY_RANK");
    CommandTest::TearDown();
  }
};

}  // namespace slipway::test
