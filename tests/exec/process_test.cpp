#include "exec/process/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/process/failure.h"

namespace slipway::test {
namespace {

// A child that does `end` on a signal from the test. It reads its own identity, like a rank.
class Child {
 public:
  template <class End>
  explicit Child(End end) {
    int go[2], identity[2];
    if (pipe(go) != 0 || pipe(identity) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      const std::string text = to_text(this_process());
      char byte = 0;
      if (write(identity[1], text.data(), text.size()) < 0 || read(go[0], &byte, 1) < 0) _exit(99);
      end();
      _exit(0);
    }
    char text[512];
    const ssize_t length = read(identity[0], text, sizeof text);
    process_ = process_from_text({text, static_cast<std::size_t>(length)});
    go_ = go[1];
  }
  const ProcessIdentity& process() const { return process_; }
  void end() {
    if (write(go_, "", 1) != 1) std::abort();
  }
  void collect() { waitpid(pid_, nullptr, 0); }

 private:
  pid_t pid_ = 0;
  int go_ = -1;
  ProcessIdentity process_;
};

void wait_until_ended(const ProcessIdentity& process) {
  const int descriptor = descriptor_of(process);
  ASSERT_GE(descriptor, 0);
  pollfd event{descriptor, POLLIN, 0};
  EXPECT_EQ(poll(&event, 1, 10000), 1) << "the descriptor must report the end";
  close(descriptor);
}

TEST(Process, AKilledOneTellsItsSignalUntilItIsCollected) {
  Child child([] { raise(SIGKILL); });
  EXPECT_TRUE(visible(this_process(), child.process()));
  EXPECT_FALSE(cause_of_end(child.process()).has_value());
  child.end();
  wait_until_ended(child.process());
  EXPECT_EQ(cause_of_end(child.process()), "killed by signal 9");
  child.collect();
  EXPECT_EQ(cause_of_end(child.process()), "killed or ended without a report");
}

TEST(Process, OneThatExitsTellsItsStatus) {
  Child child([] { _exit(3); });
  child.end();
  wait_until_ended(child.process());
  EXPECT_EQ(cause_of_end(child.process()), "ended with exit status 3");
  child.collect();
}

TEST(Process, ALaterProcessWithTheSameIdIsNotMistakenForIt) {
  ProcessIdentity earlier = this_process();
  EXPECT_FALSE(cause_of_end(earlier).has_value());
  earlier.start_ticks -= 1;
  EXPECT_TRUE(cause_of_end(earlier).has_value());
}

TEST(Process, IdentitiesSurviveText) {
  const ProcessIdentity self = this_process(), read = process_from_text(to_text(self));
  EXPECT_EQ(read.pid, getpid());
  EXPECT_EQ(to_text(read), to_text(self));
  EXPECT_TRUE(same_clock(self, read));
  EXPECT_THROW(process_from_text("host only"), std::runtime_error);
}

TEST(Process, AnotherBootHasAnotherClockAndAnotherNamespaceHidesItsProcesses) {
  const ProcessIdentity self = this_process();
  ProcessIdentity other = self;
  other.pid_namespace = "pid:[1]";
  EXPECT_TRUE(same_clock(self, other));
  EXPECT_FALSE(visible(self, other));
  other.boot_id = "another";
  EXPECT_FALSE(same_clock(self, other));
}

TEST(Failure, TheLineOfASurvivorNamesTheRankThatFailedFirst) {
  const Failure failure{1, "killed by signal 9 (process 4711 on host x)"};
  EXPECT_EQ(line_of(2, failure), "rank 2 stops: rank 1 failed: killed by signal 9 (process 4711 on host x)");
  EXPECT_EQ(line_of(1, failure), "rank 1 failed: killed by signal 9 (process 4711 on host x)");
  EXPECT_EQ(line_of(0, {-1, "gone"}), "rank 0 stops: the launcher's agent failed: gone");
}

TEST(Failure, CausesOfSeveralLinesBecomeOneAndSurviveText) {
  const Failure read = failure_from_text(to_text({3, "first\nsecond"}));
  EXPECT_EQ(read.rank, 3);
  EXPECT_EQ(read.cause, "first second");
}

TEST(Failure, ACauseFromLibTorchIsToldWithoutItsStackAndItsAdvice) {
  EXPECT_EQ(without_stack(
                "out of memory: 2 GiB\nException raised from malloc at a.cpp:1 (most recent call first):\nframe #0: f"),
            "out of memory: 2 GiB");
  EXPECT_EQ(
      line_of(0, {0,
                  "CUDA error: an illegal memory access\nCUDA kernel errors might be asynchronously reported at some "
                  "other API call.\nCompile with it.\nException raised from f at b.cpp:2 (most recent call first):"}),
      "rank 0 failed: CUDA error: an illegal memory access");
  EXPECT_EQ(without_stack("two\nlines"), "two\nlines");
}

TEST(Process, AgeIsTheTimeSinceItsStart) {
  Child child([] {});
  const double young = age_of(child.process());
  EXPECT_GE(young, -0.02);  // starts are known to a hundredth of a second
  usleep(300'000);
  EXPECT_NEAR(age_of(child.process()) - young, 0.3, 0.25);
  EXPECT_GT(age_of(this_process()), young);
  child.end();
  child.collect();
}

}  // namespace
}  // namespace slipway::test
