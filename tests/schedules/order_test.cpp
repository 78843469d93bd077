#include "schedules/time/ready_queue.h"
#include "schedules/time/replay.h"

#include <gtest/gtest.h>

#include <queue>

#include <random>

namespace slipway::test {
namespace {

using Entry = std::pair<double, TaskId>;
using Heap = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

// Every task popped makes others ready after one of `delays`; 0: at once.
void compare_with_a_heap(const std::vector<double>& delays, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<TaskId> ids(4000);
  for (TaskId id = 0; id < ids.size(); ++id) ids[id] = id;
  std::shuffle(ids.begin(), ids.end(), random);
  ReadyQueue queue;
  Heap heap;
  const auto push = [&](double time) {
    queue.push(time, ids.back());
    heap.emplace(time, ids.back());
    ids.pop_back();
  };
  for (int i = 0; i < 100; ++i) push(0);
  while (!heap.empty()) {
    const auto [time, task] = heap.top();
    heap.pop();
    ASSERT_FALSE(queue.empty());
    const ReadyQueue::Ready ready = queue.pop();
    ASSERT_EQ(ready.time, time);
    ASSERT_EQ(ready.task, task);
    for (auto more = random() % 4; more > 0 && !ids.empty(); --more) push(time + delays[random() % delays.size()]);
  }
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(ids.empty());
}

TEST(ReadyQueue, PopsInTheOrderOfAHeapOfTasksWhereManyShareADate) {
  for (unsigned seed = 0; seed < 5; ++seed) compare_with_a_heap({1, 2, 2.5}, seed);
}

TEST(ReadyQueue, PopsWhatIsPushedAtTheDateAtHandInItsPlaceAmongTheRest) {
  for (unsigned seed = 0; seed < 5; ++seed) compare_with_a_heap({0, 0, 1}, seed);
}

TEST(ReadyQueue, PopsInTheOrderOfAHeapOfTasksWhereHardlyAnyShareADate) {
  std::mt19937 random(7);
  std::vector<double> delays(1000);
  for (double& delay : delays) delay = std::uniform_real_distribution<double>(0, 1)(random);
  for (unsigned seed = 0; seed < 5; ++seed) compare_with_a_heap(delays, seed);
}

}  // namespace
}  // namespace slipway::test
