// The forked child that every simulation runs in.
#include "sim/isolate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/simulate.h"
#include "tests/hand_graph.h"

namespace slipway {
namespace {

std::string error_of(const std::function<void()>& work, const std::function<void()>& tick = {}) {
  try {
    run_isolated(work, tick);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

bool has_children() { return waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

TEST(Isolated, LeavesNothingBehindButSharedMemory) {
  const SharedMemory memory(sizeof(int));
  auto* shared = reinterpret_cast<int*>(memory.data());
  int own = 1;
  run_isolated(
      [&] {
        *shared = own = 2;
        std::puts("a child may print what it wants");
      },
      {});
  EXPECT_EQ(*shared, 2);
  EXPECT_EQ(own, 1);
  EXPECT_FALSE(has_children());
}

TEST(Isolated, AnExceptionsWholeTextArrives) {
  const std::string text(100000, 'x');  // more than a pipe holds
  EXPECT_EQ(error_of([&] { throw std::runtime_error(text); }), text);
  EXPECT_FALSE(has_children());
}

TEST(Isolated, ADeathBySignalIsAnErrorThatNamesIt) {
  EXPECT_NE(error_of([] { std::raise(SIGKILL); }).find("signal 9"), std::string::npos);
}

TEST(Isolated, TicksWhileItWaitsAndAnExceptionOfTheTickEndsTheChild) {
  int ticks = 0;
  EXPECT_EQ(error_of([] { pause(); },
                     [&] {
                       if (++ticks == 2) throw std::runtime_error("stop");
                     }),
            "stop");
  EXPECT_EQ(ticks, 2);
  EXPECT_FALSE(has_children());
}

TEST(Isolated, SimulationsOfSeveralThreadsDoNotMeet) {
  HandGraph hand(2);
  for (int i = 0; i < 20; ++i) hand.transfer(i % 2, 1 - i % 2, 1e6 * (i + 1));
  hand.finish();
  const Cluster cluster = hand_cluster(2, 1, 1e9, 1e-6);
  SimulationOptions options;
  const Timeline expected = simulate(hand.graph, cluster, hand.durations, options).timeline;
  std::vector<Timeline> timelines(4);
  std::vector<std::thread> threads;
  for (Timeline& timeline : timelines)
    threads.emplace_back(
        [&] { timeline = simulate(hand.graph, cluster, hand.durations, options).timeline; });
  for (std::thread& thread : threads) thread.join();
  for (const Timeline& timeline : timelines) EXPECT_EQ(timeline.end, expected.end);
}

}  // namespace
}  // namespace slipway
