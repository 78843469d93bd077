// Several numbers of steps simulated at the same time, each in a process of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "sim/isolate.h"
#include "sim/simulate.h"
#include "tests/support/hand_graph.h"
#include "tests/support/no_process_left.h"

namespace slipway::test {

namespace {

struct OrderedStep {
  TaskGraph graph;
  PricedCluster cluster;
  Durations durations;
};

// More tasks than are worth a thread (schedules/graph/parallel.h).
OrderedStep large_step() {
  Step in;
  in.model =
      llama("llama", {.layers = 16, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  in.layout.tensor = 2, in.layout.pipeline = 2, in.layout.data = 2;
  in.global_batch = 600;
  OrderedStep step{lower(in), hand_cluster(2, 4, 1e9, 1e-6), {}};
  for (TaskId id = 0; id < step.graph.tasks.size(); ++id)
    step.durations.push_back(1e-4 * static_cast<double>(1 + id % 7));
  set_global_order(step.graph, step.durations);
  EXPECT_GT(step.graph.tasks.size(), 50000u);
  return step;
}

TEST(StepsAtOnce, AreEachWhatTheyAreByThemselves) {
  const OrderedStep step = large_step();
  const std::vector<int> steps{3, 1, 2};
  SimulationOptions options;
  const auto together = simulate_each(step.graph, step.cluster, step.durations, options, steps);
  ASSERT_EQ(together.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    options.steps = steps[i];
    const Simulation alone = simulate(step.graph, step.cluster, step.durations, options);
    EXPECT_EQ(together[i].timeline.steps, steps[i]);
    EXPECT_EQ(together[i].timeline.start, alone.timeline.start);
    EXPECT_EQ(together[i].timeline.end, alone.timeline.end);
    EXPECT_EQ(together[i].timeline.makespan_s, alone.timeline.makespan_s);
    EXPECT_EQ(together[i].tasks, alone.tasks);
    EXPECT_EQ(together[i].flows, alone.flows);
  }
}

TEST(StepsAtOnce, InterruptedTellHowFarTheFirstCame) {
  const OrderedStep step = large_step();
  SimulationOptions options;
  options.interrupted = [] { return true; };
  try {
    simulate_each(step.graph, step.cluster, step.durations, options, {100, 90});
    FAIL() << "was not interrupted";
  } catch (const SimulationInterrupted& stop) {
    EXPECT_EQ(stop.partial.steps, 100);
  }
}

TEST(StepsAtOnce, TellTheProgressOfTheFirstOnly) {
  const OrderedStep step = large_step();
  SimulationOptions options;
  double last = 0;
  options.progress = [&](double share) {
    EXPECT_GE(share, last);
    last = share;
  };
  simulate_each(step.graph, step.cluster, step.durations, options, {30, 2});
  EXPECT_LE(last, 1);
}

}  // namespace

// The forked child that every simulation runs in.

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

TEST(Isolated, WhatCannotBeStartedLeavesNothingOpen) {
  EXPECT_EQ(files_left_by([] { run_isolated([] {}, nullptr); }), 0);
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
  const PricedCluster cluster = hand_cluster(2, 1, 1e9, 1e-6);
  SimulationOptions options;
  const Timeline expected = simulate(hand.graph, cluster, hand.durations, options).timeline;
  std::vector<Timeline> timelines(4);
  std::vector<std::thread> threads;
  for (Timeline& timeline : timelines)
    threads.emplace_back([&] { timeline = simulate(hand.graph, cluster, hand.durations, options).timeline; });
  for (std::thread& thread : threads) thread.join();
  for (const Timeline& timeline : timelines) EXPECT_EQ(timeline.end, expected.end);
}

}  // namespace

}  // namespace slipway::test
