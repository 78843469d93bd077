#include <pthread.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "exec/lanes/lanes.h"
#include "exec/lanes/overhead.h"
#include "schedules/graph/cut_window.h"
#include "tests/support/lane_graph.h"

namespace slipway::test {

namespace {

// Runs the graph with tasks that take a moment, and returns start and end of each (step, task).
std::map<std::pair<int, TaskId>, LaneStamp> run(const TaskGraph& graph, int steps) {
  LaneHooks hooks;
  hooks.perform = [](TaskId, int) { std::this_thread::sleep_for(std::chrono::microseconds(200)); };
  LaneRunner runner(graph, 0, steps, std::move(hooks));
  runner.run();
  std::map<std::pair<int, TaskId>, LaneStamp> stamps;
  for (const LaneStamp& stamp : runner.stamps()) stamps[{stamp.step, stamp.task}] = stamp;
  return stamps;
}

TEST(Lanes, ATaskStartsAfterItsPredecessorsOnOtherLanes) {
  const TaskGraph graph = graph_of({{}, {0, {0}, {}, {}}, {none, {1}, {}, {}}, {0, {2}, {}, {}}});
  const auto stamps = run(graph, 3);
  ASSERT_EQ(stamps.size(), 12u);
  for (int step = 0; step < 3; ++step) {
    for (TaskId task = 1; task < 4; ++task) {
      EXPECT_GE(stamps.at({step, task}).start_ns, stamps.at({step, task - 1}).end_ns);
    }
  }
}

TEST(Lanes, OneLaneRunsItsTasksOneAtATimeInGlobalOrder) {
  TaskGraph graph = graph_of({{}, {}, {}, {}});
  graph.order = {2, 0, 3, 1};
  const auto stamps = run(graph, 2);
  const LaneStamp* before = nullptr;
  for (int step = 0; step < 2; ++step) {
    for (const TaskId task : graph.order) {
      const LaneStamp& stamp = stamps.at({step, task});
      if (before) {
        EXPECT_GE(stamp.start_ns, before->end_ns);
      }
      before = &stamp;
    }
  }
}

TEST(Lanes, CarriedEdgesJoinOneStepToTheNext) {
  TaskGraph graph = graph_of({{0, {}, {}, {}}, {}});
  graph.carried = {{1, 0}};  // the collective of step k + 1 needs the compute of step k
  const auto stamps = run(graph, 3);
  for (int step = 0; step < 2; ++step) EXPECT_GE(stamps.at({step + 1, 0}).start_ns, stamps.at({step, 1}).end_ns);
}

TEST(Lanes, ABufferIsNotWrittenAgainBeforeTheLastStepsReadersAreDone) {
  // The collective writes buffer 0; the compute lane reads it late. Only the buffer joins step k's reader to step k +
  // 1's writer.
  const TaskGraph graph = graph_of({{0, {}, {}, {0}}, {}, {}, {none, {0}, {0}, {}}});
  const auto stamps = run(graph, 4);
  for (int step = 0; step < 3; ++step) EXPECT_GE(stamps.at({step + 1, 0}).start_ns, stamps.at({step, 3}).end_ns);
}

TEST(Lanes, StepsFollowEachOtherWithoutABarrierWhereNothingJoinsThem) {
  const TaskGraph graph = graph_of({{0, {}, {}, {}}, {}});  // two lanes with nothing in common
  std::atomic<int> collectives{0};
  std::atomic<bool> ahead{false};
  LaneHooks hooks;
  hooks.perform = [&](TaskId task, int step) {
    if (task == 0) {
      ++collectives;
      collectives.notify_all();
    } else if (step == 0) {  // holds the compute lane in step 0 until the other lane is through all steps
      for (int seen = collectives; seen < 3; seen = collectives) collectives.wait(seen);
      ahead = true;
    }
  };
  LaneRunner(graph, 0, 3, std::move(hooks)).run();
  EXPECT_TRUE(ahead);
}

TEST(Lanes, EveryLaneIsAThreadOfItsOwnAndToldWhenItBegins) {
  const TaskGraph graph = graph_of({{}, {0, {}, {}, {}}, {1, {}, {}, {}}, {}}, 2);
  std::mutex mutex;
  std::set<std::thread::id> begun;
  std::map<TaskId, std::thread::id> thread_of;
  LaneHooks hooks;
  hooks.thread_begins = [&](bool) {
    const std::lock_guard lock(mutex);
    begun.insert(std::this_thread::get_id());
  };
  hooks.perform = [&](TaskId task, int) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(begun.count(std::this_thread::get_id()));
    thread_of[task] = std::this_thread::get_id();
  };
  LaneRunner(graph, 0, 1, std::move(hooks)).run();
  EXPECT_EQ(begun.size(), 3u);
  EXPECT_EQ(thread_of.at(0), thread_of.at(3));
  EXPECT_NE(thread_of.at(0), thread_of.at(1));
  EXPECT_NE(thread_of.at(1), thread_of.at(2));
}

TEST(Lanes, TheComputeLaneTellsTheEndOfEachStep) {
  std::vector<int> steps;
  LaneHooks hooks;
  hooks.perform = [](TaskId, int) {};
  hooks.step_ends = [&](int step, const std::vector<std::int64_t>&) { steps.push_back(step); };
  const TaskGraph graph = graph_of({{}, {0, {0}, {}, {}}, {}});
  LaneRunner(graph, 0, 3, std::move(hooks)).run();
  EXPECT_EQ(steps, (std::vector<int>{0, 1, 2}));
}

TEST(Lanes, AnErrorStopsAllLanesAndComesOutOfRun) {
  const TaskGraph graph = chain_of_nothing(2, 10);
  LaneHooks hooks;
  hooks.perform = [](TaskId task, int step) {
    if (step == 1 && task == 5) throw std::runtime_error("task 5 broke");
  };
  LaneRunner runner(graph, 0, 100, std::move(hooks));
  EXPECT_THROW(
      {
        try {
          runner.run();
        } catch (const std::runtime_error& error) {
          EXPECT_STREQ(error.what(), "task 5 broke");
          throw;
        }
      },
      std::runtime_error);
  EXPECT_EQ(runner.stamps().size(), 15u) << "what ended before is kept";
}

// Gives new threads a stack that no machine has.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_getattr_default_np(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 46);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

TEST(Lanes, AThreadThatCannotBeMadeIsToldWithItsLane) {
  const TaskGraph graph = chain_of_nothing(2, 10);
  std::vector<std::string> places;
  LaneHooks hooks;
  hooks.perform = [](TaskId, int) {};
  hooks.lane_broke = [&](const std::string& where) { places.push_back(where); };
  hooks.steps_before = 7;  // of a training that was resumed
  LaneRunner runner(graph, 0, 1, std::move(hooks));
  {
    const NoMoreThreads none;
    EXPECT_THROW(runner.run(), std::system_error);
  }
  EXPECT_EQ(places, (std::vector<std::string>{"step 8, lane compute, before its first task",
                                              "step 8, lane tp, before its first task"}));
}

// A run whose batch grows: two programs of one compute lane and one communicator, with more tasks in the second.
const TaskGraph& small_program() {
  static const TaskGraph graph = graph_of({{}, {0, {0}, {}, {}}});
  return graph;
}
const TaskGraph& large_program() {
  static const TaskGraph graph = graph_of({{}, {0, {0}, {}, {}}, {none, {1}, {}, {}}, {0, {2}, {}, {}}});
  return graph;
}

TEST(Lanes, ProgramsFollowEachOtherAndNoLaneIsAheadWhileItIsAskedWhatComesNext) {
  std::atomic<int> under_way{0};
  std::vector<int> asked;
  std::set<std::thread::id> threads;
  std::mutex mutex;
  LaneHooks hooks;
  hooks.thread_begins = [&](bool) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  };
  hooks.perform = [&](TaskId, int) {
    ++under_way;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    --under_way;
  };
  const auto next = [&](int done) -> StepSpan {
    EXPECT_EQ(under_way, 0);
    asked.push_back(done);
    if (done < 2) return {0, 1};
    return {1, done < 7 ? 5 : 0};
  };
  LaneRunner runner({&small_program(), &large_program()}, 0, next, std::move(hooks));
  runner.run();
  EXPECT_EQ(asked, (std::vector<int>{0, 1, 2, 7}));
  EXPECT_EQ(threads.size(), 2u) << "a lane keeps its thread";
  std::map<int, std::set<const TaskGraph*>> graphs;  // by step
  std::map<int, int> tasks;
  for (const LaneStamp& stamp : runner.stamps()) {
    graphs[stamp.step].insert(stamp.graph);
    ++tasks[stamp.step];
  }
  ASSERT_EQ(graphs.size(), 7u);
  for (const auto& [step, of_step] : graphs) {
    EXPECT_EQ(of_step, (std::set<const TaskGraph*>{step < 2 ? &small_program() : &large_program()})) << step;
    EXPECT_EQ(tasks[step], step < 2 ? 2 : 4) << step;
  }
}

TEST(Lanes, WhatIsThrownWhileItIsAskedWhatComesNextEndsAllLanes) {
  LaneHooks hooks;
  hooks.perform = [](TaskId, int) {};
  std::string where;
  hooks.lane_broke = [&](const std::string& place) { where = place; };
  const auto next = [](int done) -> StepSpan {
    if (done == 3) throw std::runtime_error("nobody knows");
    return {0, 3};
  };
  LaneRunner runner({&small_program()}, 0, next, std::move(hooks));
  EXPECT_THROW(runner.run(), std::runtime_error);
  EXPECT_TRUE(where == "step 4, lane compute, before its next steps" ||
              where == "step 4, lane tp, before its next steps")
      << where;
  EXPECT_EQ(runner.stamps().size(), 6u);
}

TEST(Lanes, AnErrorInATaskReachesLanesThatWaitForTheNextProgram) {
  LaneHooks hooks;
  hooks.perform = [](TaskId task, int step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(task == 0 ? 0 : 5));
    if (task == 1 && step == 1) throw std::runtime_error("broke");
  };
  const auto next = [](int done) -> StepSpan { return {0, done < 4 ? 2 : 0}; };
  LaneRunner runner({&small_program()}, 0, next, std::move(hooks));
  EXPECT_THROW(runner.run(), std::runtime_error);
}

TEST(Lanes, ProgramsWithOtherLanesAreRefused) {
  const TaskGraph other = graph_of({{}}, 2);
  LaneHooks hooks;
  hooks.perform = [](TaskId, int) {};
  const auto next = [](int done) -> StepSpan { return {done, 1}; };
  LaneRunner runner({&small_program(), &other}, 0, next, std::move(hooks));
  EXPECT_THROW(runner.run(), std::invalid_argument);
}

TEST(Lanes, OverheadGraphsRunEachTaskOnce) {
  for (const int lanes : {1, 2}) {
    std::atomic<int> performed{0};
    LaneHooks hooks;
    hooks.perform = [&](TaskId, int) { ++performed; };
    const TaskGraph graph = chain_of_nothing(lanes, 50);
    LaneRunner(graph, 0, 2, std::move(hooks)).run();
    EXPECT_EQ(performed, 100);
  }
}

}  // namespace

// Lanes whose graph is a window of several steps: their report of each step, and a training that ends within one.

namespace {

// Two steps of two compute tasks and a message, and behind them bubble work.
TaskGraph window_of_two() {
  TaskGraph graph = graph_of(
      {{}, {0, {0}, {}, {}}, {none, {1}, {}, {}}, {none, {2}, {}, {}}, {0, {3}, {}, {}}, {}, {none, {4}, {}, {}}});
  graph.window = 2;
  for (const TaskId id : {3, 4, 5}) graph.tasks[id].step = 1;
  graph.works.push_back({});
  graph.works[1].kind = WorkKind::bubble_work;
  graph.tasks[6].kind = TaskKind::bubble_work;
  graph.tasks[6].work = 1;
  graph.compute_order.values = {0, 2, 3, 5, 6};
  graph.compute_order.begin = {0, 5};
  return graph;
}

TEST(LanesOfWindows, TellTheEndsOfBothStepsButNotOfWhatFillsBubbles) {
  const TaskGraph graph = window_of_two();
  std::vector<std::vector<std::int64_t>> reported;
  LaneHooks hooks;
  hooks.perform = [](TaskId, int) { std::this_thread::sleep_for(std::chrono::microseconds(200)); };
  hooks.step_ends = [&](int step, const std::vector<std::int64_t>& ends) {
    EXPECT_EQ(step, static_cast<int>(reported.size()));
    reported.push_back(ends);
  };
  LaneRunner runner(graph, 0, 3, std::move(hooks));
  runner.run();
  std::map<std::pair<int, TaskId>, LaneStamp> stamps;
  for (const LaneStamp& stamp : runner.stamps()) stamps[{stamp.step, stamp.task}] = stamp;
  ASSERT_EQ(reported.size(), 3U);
  for (int window = 0; window < 3; ++window) {
    ASSERT_EQ(reported[window].size(), 2U);
    EXPECT_EQ(reported[window][0], stamps.at({window, 2}).end_ns);
    EXPECT_EQ(reported[window][1], stamps.at({window, 5}).end_ns);
  }
}

TEST(LanesOfWindows, NameTheStepOfTheTrainingInWhichATaskBroke) {
  const TaskGraph graph = window_of_two();
  std::string where;
  LaneHooks hooks;
  hooks.steps_before = 10;
  hooks.perform = [](TaskId task, int window) {
    if (window == 1 && task == 5) throw std::runtime_error("broke");
  };
  hooks.lane_broke = [&](const std::string& place) { where = place; };
  LaneRunner runner(graph, 0, 3, std::move(hooks));
  EXPECT_THROW(runner.run(), std::runtime_error);
  EXPECT_EQ(where.substr(0, where.find(',')), "step 14");
}

TEST(LanesOfWindows, EndWithACutOne) {
  const TaskGraph graph = window_of_two(), cut = cut_after(graph, 1);
  std::mutex mutex;
  std::vector<std::set<TaskId>> ran(3);
  LaneHooks hooks;
  hooks.perform = [&](TaskId task, int window) {
    const std::lock_guard lock(mutex);
    ran.at(window).insert(task);
  };
  const auto next = [](int done) { return done == 0 ? StepSpan{0, 2} : StepSpan{1, done == 2 ? 1 : 0}; };
  LaneRunner({&graph, &cut}, 0, next, std::move(hooks)).run();
  EXPECT_EQ(ran[0].size(), 7U);
  EXPECT_EQ(ran[1].size(), 7U);
  EXPECT_EQ(ran[2], (std::set<TaskId>{0, 1, 2}));
}

}  // namespace

}  // namespace slipway::test
