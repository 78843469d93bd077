// Workers of a search: their results, and signals to their group.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "scenarios/search/workers.h"
#include "schedules/graph/parallel.h"
#include "tests/support/no_process_left.h"

namespace slipway::test {

namespace {

using namespace scenarios;

TEST(Workers, AnswerEachJobOnceAndHandOnWhatIsThrown) {
  Workers workers(2, [](int job, double) -> nlohmann::json {
    if (job == 3) throw std::runtime_error("job three");
    return job * job;
  });
  int sum = 0, failures = 0;
  deal(workers, {0, 1, 2, 3, 4, 5}, [&](const Workers::Outcome& outcome) {
    if (!outcome.failure) {
      sum += outcome.answer.get<int>();
      return;
    }
    ++failures;
    EXPECT_EQ(*outcome.failure, "job three");
  });
  EXPECT_EQ(sum, 0 + 1 + 4 + 16 + 25);
  EXPECT_EQ(failures, 1);
}

// More than a pipe holds, and numbers with all their digits.
TEST(Workers, AnswerAnyJsonExactly) {
  const std::vector<double> numbers(20000, 0.1 + 0.2);
  Workers workers(1, [&](int, double limit) { return nlohmann::json{{"numbers", numbers}, {"limit", limit}}; });
  workers.give(0, 1.0 / 3);
  std::optional<Workers::Outcome> outcome;
  while (!outcome) outcome = workers.take(1000);
  EXPECT_EQ(outcome->answer["numbers"].get<std::vector<double>>(), numbers);
  EXPECT_EQ(outcome->answer["limit"].get<double>(), 1.0 / 3);
}

// There is a worker for each core, and ThreadSanitizer ends a forked process that starts a thread.
TEST(Workers, HaveOneThreadHoweverMuchThereIsToDo) {
  Workers workers(2, [](int, double) -> nlohmann::json {
    std::set<std::thread::id> threads;
    std::mutex one_at_a_time;
    each_in_parallel(1000, 1000000000, [&](std::size_t) {
      const std::lock_guard lock(one_at_a_time);
      threads.insert(std::this_thread::get_id());
    });
    return threads.size();
  });
  std::vector<std::size_t> threads;
  deal(workers, {0, 1}, [&](const Workers::Outcome& outcome) { threads.push_back(outcome.answer.get<std::size_t>()); });
  EXPECT_THAT(threads, testing::ElementsAre(1, 1));
}

// One worker, so that jobs end in the order of the list.
TEST(Workers, AreGivenTheLimitAtThatTimeAndNoJobAfterOneThatIsNotWanted) {
  Workers workers(1, [](int job, double limit) { return 100 * job + static_cast<int>(limit); });
  std::vector<int> results;
  Dealing how;
  how.limit = [&] { return 10.0 - static_cast<double>(results.size()); };
  how.wanted = [](int job) { return job != 7; };
  deal(
      workers, {5, 2, 7, 1}, [&](const Workers::Outcome& outcome) { results.push_back(outcome.answer.get<int>()); },
      how);
  EXPECT_THAT(results, testing::ElementsAre(510, 209));
}

TEST(Workers, AreDealtNoMoreJobsOnceTheyAreToEnd) {
  Workers workers(1, [](int job, double) { return job; });
  std::vector<int> results;
  Dealing how;
  how.go_on = [](int done) { return done < 2; };
  deal(
      workers, {3, 4, 5, 6}, [&](const Workers::Outcome& outcome) { results.push_back(outcome.answer.get<int>()); },
      how);
  EXPECT_THAT(results, testing::ElementsAre(3, 4));
}

// As `timeout` and job schedulers send it: to the whole group. The parent gives the answer.
TEST(Workers, LeaveATerminationOfTheirGroupToTheirParent) {
  Workers workers(1, [](int, double) {
    std::raise(SIGTERM);
    std::raise(SIGINT);
    return 7;
  });
  workers.give(0);
  std::optional<Workers::Outcome> outcome;
  while (!outcome) outcome = workers.take(1000);
  EXPECT_EQ(outcome->answer, 7);
}

TEST(Workers, ThatCannotBeStartedLeaveNothingOpen) {
  EXPECT_EQ(files_left_by([] { const Workers workers(2, [](int job, double) { return nlohmann::json(job); }); }), 0);
}

TEST(Workers, ThatDieAreNoticed) {
  Workers workers(1, [](int, double) -> nlohmann::json { ::_exit(9); });
  workers.give(0);
  EXPECT_THROW(while (true) workers.take(1000), std::runtime_error);
}

}  // namespace

}  // namespace slipway::test
