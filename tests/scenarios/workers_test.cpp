// Workers of a search: their results, and signals to their group.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "scenarios/memory/changes.h"
#include "scenarios/plan/ranking.h"

namespace slipway::test {

namespace {

TEST(Workers, AnswerEachJobOnceAndHandOnWhatIsThrown) {
  Workers workers(2, [](int job, std::byte* result) {
    if (job == 3) throw std::runtime_error("job three");
    const int square = job * job;
    std::memcpy(result, &square, sizeof square);
  });
  int sum = 0, failures = 0, next = 0, done = 0;
  while (done < 6) {
    while (next < 6 && workers.idle()) workers.give(next++);
    const auto outcome = workers.take(1000);
    ASSERT_TRUE(outcome.has_value());
    ++done;
    if (outcome->failed) {
      ++failures;
      EXPECT_STREQ(outcome->text, "job three");
      continue;
    }
    int square = 0;
    std::memcpy(&square, outcome->result, sizeof square);
    sum += square;
  }
  EXPECT_EQ(sum, 0 + 1 + 4 + 16 + 25);
  EXPECT_EQ(failures, 1);
}

// As `timeout` and job schedulers send it: to the whole group. The parent gives the answer.
TEST(Workers, LeaveATerminationOfTheirGroupToTheirParent) {
  Workers workers(1, [](int, std::byte* result) {
    std::raise(SIGTERM);
    std::raise(SIGINT);
    result[0] = std::byte{7};
  });
  workers.give(0);
  std::optional<Workers::Outcome> outcome;
  while (!outcome) outcome = workers.take(1000);
  EXPECT_FALSE(outcome->failed);
  EXPECT_EQ(outcome->result[0], std::byte{7});
}

TEST(Workers, ThatDieAreNoticed) {
  Workers workers(1, [](int, std::byte*) { ::_exit(9); });
  workers.give(0);
  EXPECT_THROW(while (true) workers.take(1000), std::runtime_error);
}

}  // namespace

}  // namespace slipway::test
