// scenarios/demo/run.sh with a slipway that only writes down its arguments: it uses the given build folder for the
// program, for the machine profiles and for every output.
#include <gmock/gmock.h>

#include <cstdlib>
#include <sstream>

#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using Demo = CommandTest;

TEST_F(Demo, UsesAndWritesNothingButTheBuildFolderThatItIsTold) {
  std::ofstream(path("slipway")) << "#!/bin/sh\necho \"$@\" >>" << path("calls") << '\n';
  std::filesystem::permissions(path("slipway"), std::filesystem::perms::owner_all);
  const std::string run = "BUILD=" + path("") + " " SLIPWAY_SOURCE_DIR "/scenarios/demo/run.sh >/dev/null";
  ASSERT_EQ(std::system(run.c_str()), 0);
  EXPECT_TRUE(std::filesystem::exists(path("demo/start.yaml")));
  std::istringstream calls(text_of(path("calls")));
  int count = 0;
  for (std::string call; std::getline(calls, call); ++count) {
    EXPECT_THAT(call, testing::HasSubstr(path("/demo/")));
    EXPECT_THAT(call, testing::Not(testing::ContainsRegex("[ =]build/"))) << "the default folder";
  }
  EXPECT_GE(count, 6) << "measure, execute, fit, simulate, compare, confirm";
}

}  // namespace
}  // namespace slipway::test
