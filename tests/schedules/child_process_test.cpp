#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "schedules/graph/child_process.h"
#include "tests/support/no_process_left.h"

namespace slipway::test {
namespace {

TEST(ChildProcess, WritesToItsParentAndEndsWithStatusZero) {
  Pipe pipe = open_pipe("cannot ask a child");
  const pid_t child = fork_child("cannot ask a child", [&] { write_all(pipe.write, "hello", 5); });
  pipe.write.close();
  char begin[2];
  ASSERT_TRUE(read_all(pipe.read, begin, sizeof begin));
  EXPECT_EQ(std::string(begin, sizeof begin), "he");
  std::string rest;
  while (read_some(pipe.read, rest)) {
  }
  EXPECT_EQ(rest, "llo");
  EXPECT_FALSE(read_all(pipe.read, begin, sizeof begin));
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
  Pipe pipe = open_pipe("");
  const pid_t child = fork_child("", [&] {
    fork_child("", [&] {
      write_all(pipe.write, "x", 1);
      while (true) pause();
    });
    pipe.write.close();
    while (true) pause();
  });
  pipe.write.close();
  char started = 0;
  ASSERT_TRUE(read_all(pipe.read, &started, 1));
  kill(child, SIGKILL);
  reap(child);
  EXPECT_FALSE(read_all(pipe.read, &started, 1));  // its end of the pipe is closed
}

// And no SIGPIPE ends the program: its standard action is in force.
TEST(ChildProcess, ThatIsGoneCannotBeWrittenTo) {
  std::signal(SIGPIPE, SIG_DFL);
  Pipe pipe = open_pipe("");
  pipe.read.close();
  EXPECT_FALSE(write_all(pipe.write, "x", 1));
}

TEST(ChildProcess, ThatCannotBeStartedLeavesNothingOpen) {
  EXPECT_EQ(files_left_by([] {
              const Pipe pipe = open_pipe("cannot start a child");
              fork_child("cannot start a child", [] {});
            }),
            0);
}

TEST(OwnedChild, IsKilledWithItsOwnerAndStatesItsEndToWhoeverWaits) {
  pid_t gone = -1;
  {
    const OwnedChild child(fork_child("", [] {
      while (true) pause();
    }));
    gone = child.id();
  }
  EXPECT_EQ(kill(gone, 0), -1);
  OwnedChild ended(fork_child("", [] { _exit(3); }));
  EXPECT_EQ(WEXITSTATUS(ended.wait()), 3);
}

}  // namespace
}  // namespace slipway::test
