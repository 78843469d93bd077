// The program itself, as a shell starts it: what a test inside the process cannot see.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/command_test.h"

namespace slipway {
namespace {

using Program = CommandTest;

int status_of(const std::string& arguments) {
  return WEXITSTATUS(std::system((SLIPWAY_PROGRAM " " + arguments).c_str()));
}

TEST_F(Program, AnAnswerThatCannotBeWrittenIsAFailureWithAMessage) {
  EXPECT_EQ(status_of("list models > /dev/full 2> " + path("err")), status_failed);
  EXPECT_THAT(text_of(path("err")), testing::HasSubstr("cannot write to standard output"));
  EXPECT_EQ(status_of("list models > " + path("out")), status_done);
  EXPECT_EQ(status_of("list nothing > /dev/full 2> " + path("err")), status_usage);
}

}  // namespace
}  // namespace slipway
