// Host work of two kinds that exclude each other.
#include "exec/lanes/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace slipway::test {
namespace {

using namespace slipway::exec;

constexpr auto a_while = std::chrono::milliseconds(50);

bool is_ready(const std::future<void>& future, std::chrono::milliseconds within) {
  return future.wait_for(within) == std::future_status::ready;
}

TEST(Turns, OfOneKindAreHeldTogether) {
  Turns turns;
  std::optional<Turns::Turn> first(turns.take(TurnOf::messages));
  const auto other = std::async(std::launch::async, [&] { const Turns::Turn second = turns.take(TurnOf::messages); });
  EXPECT_TRUE(is_ready(other, std::chrono::seconds(10)));
  first.reset();  // before `other`, whose end waits for its thread
}

TEST(Turns, OfTheOtherKindWaitForTheLastOfThem) {
  Turns turns;
  std::optional<Turns::Turn> first(turns.take(TurnOf::starts)), second(turns.take(TurnOf::starts));
  const auto other = std::async(std::launch::async, [&] { const Turns::Turn turn = turns.take(TurnOf::messages); });
  EXPECT_FALSE(is_ready(other, a_while));
  first.reset();
  EXPECT_FALSE(is_ready(other, a_while));
  second.reset();
  EXPECT_TRUE(is_ready(other, std::chrono::seconds(10)));
}

// Whoever waits keeps nobody of the other kind out: two processes, whose messages need each other's, would stand still.
TEST(Turns, AWaitingOneKeepsNoneOfTheHeldKindOut) {
  Turns turns;
  std::optional<Turns::Turn> held(turns.take(TurnOf::messages));
  const auto waiting = std::async(std::launch::async, [&] { const Turns::Turn turn = turns.take(TurnOf::starts); });
  EXPECT_FALSE(is_ready(waiting, a_while));
  const auto more = std::async(std::launch::async, [&] { const Turns::Turn turn = turns.take(TurnOf::messages); });
  EXPECT_TRUE(is_ready(more, std::chrono::seconds(10)));
  held.reset();  // before the others, whose ends wait for their threads
  EXPECT_TRUE(is_ready(waiting, std::chrono::seconds(10)));
}

TEST(Turns, NeverOverlapWithTheOtherKindAndAllAreTaken) {
  Turns turns;
  std::atomic<int> starts{0}, messages{0}, overlaps{0}, taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, kind = i % 2 ? TurnOf::starts : TurnOf::messages] {
      for (int k = 0; k < 2000; ++k) {
        const Turns::Turn turn = turns.take(kind);
        (kind == TurnOf::starts ? starts : messages)++;
        if (starts > 0 && messages > 0) ++overlaps;
        (kind == TurnOf::starts ? starts : messages)--;
        ++taken;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(taken, 4 * 2000);
}

}  // namespace
}  // namespace slipway::test
