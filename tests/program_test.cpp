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

// An address space of 600 MB. A sanitizer reserves more than that before main.
TEST_F(Program, LackOfMemoryIsToldInWordsAndLeavesNoHalfBundle) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's address space has no limit";
#endif
  const std::string large = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml --set schedule.global_batch=262144 ";
  for (const std::string& command : {"lower " + large + "-o " + path("run.slip"), "simulate --exact " + large}) {
    const std::string line = "ulimit -v 600000; exec " SLIPWAY_PROGRAM " " + command + " > /dev/null 2> " + path("err");
    EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), status_failed);
    EXPECT_THAT(text_of(path("err")), testing::HasSubstr("out of memory: what this command holds (a task graph, a trace) is larger than"));
    EXPECT_THAT(text_of(path("err")), testing::HasSubstr("fewer micro-batches (schedule.global_batch)"));
  }
  EXPECT_EQ(files(), 1u);  // err
}

}  // namespace
}  // namespace slipway
