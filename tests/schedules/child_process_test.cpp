#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "schedules/graph/child_process.h"

namespace slipway::test {
namespace {

TEST(ChildProcess, WritesToItsParentAndEndsWithStatusZero) {
  const Pipe pipe = open_pipe("cannot ask a child");
  const pid_t child = fork_child("cannot ask a child", [&] { write_all(pipe.write, "hello", 5); });
  close(pipe.write);
  char begin[2];
  ASSERT_TRUE(read_all(pipe.read, begin, sizeof begin));
  EXPECT_EQ(std::string(begin, sizeof begin), "he");
  std::string rest;
  while (read_some(pipe.read, rest)) {
  }
  EXPECT_EQ(rest, "llo");
  EXPECT_FALSE(read_all(pipe.read, begin, sizeof begin));
  close(pipe.read);
  EXPECT_EQ(reap(child), 0);
}

TEST(ChildProcess, ThatASignalEndsIsNamedBySignal) {
  const int status = reap(fork_child("", [] { std::raise(SIGKILL); }));
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(signal_text(WTERMSIG(status)), "signal 9 (Killed)");
}

TEST(ChildProcess, LeavesInterruptsToItsParentWhereItSaysSo) {
  const int status = reap(fork_child("", [] {
    leave_interrupts_to_parent();
    std::raise(SIGTERM);
    std::raise(SIGINT);
  }));
  EXPECT_TRUE(WIFEXITED(status));
}

// A process group that gets SIGKILL in its first process only: the grandchild ends with it.
TEST(ChildProcess, EndsWithItsParent) {
  const Pipe pipe = open_pipe("");
  const pid_t child = fork_child("", [&] {
    fork_child("", [&] {
      write_all(pipe.write, "x", 1);
      while (true) pause();
    });
    close(pipe.write);
    while (true) pause();
  });
  close(pipe.write);
  char started = 0;
  ASSERT_TRUE(read_all(pipe.read, &started, 1));
  kill(child, SIGKILL);
  reap(child);
  EXPECT_FALSE(read_all(pipe.read, &started, 1));  // its end of the pipe is closed
  close(pipe.read);
}

TEST(ChildProcess, ThatIsGoneCannotBeWrittenTo) {
  std::signal(SIGPIPE, SIG_IGN);
  const Pipe pipe = open_pipe("");
  close(pipe.read);
  EXPECT_FALSE(write_all(pipe.write, "x", 1));
  close(pipe.write);
}

}  // namespace
}  // namespace slipway::test
