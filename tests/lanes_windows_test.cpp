// Lanes whose graph is a window of several steps: what they tell of each step, and a training that ends
// within one.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "exec/lanes.h"
#include "schedules/cut_window.h"
#include "tests/lane_graph.h"

namespace slipway {
namespace {

// Two steps of two compute tasks and a message, and behind them what fills bubbles.
TaskGraph window_of_two() {
  TaskGraph graph = graph_of({{},
                              {0, {0}, {}, {}},
                              {none, {1}, {}, {}},
                              {none, {2}, {}, {}},
                              {0, {3}, {}, {}},
                              {},
                              {none, {4}, {}, {}}});
  graph.window = 2;
  for (const TaskId id : {3, 4, 5}) graph.tasks[id].step = 1;
  graph.works.push_back({});
  graph.works[1].kind = WorkKind::filler;
  graph.tasks[6].kind = TaskKind::filler;
  graph.tasks[6].work = 1;
  graph.compute_order.values = {0, 2, 3, 5, 6};
  graph.compute_order.begin = {0, 5};
  return graph;
}

TEST(LanesOfWindows, TellTheEndsOfBothStepsButNotOfWhatFillsBubbles) {
  const TaskGraph graph = window_of_two();
  std::vector<std::vector<std::int64_t>> told;
  LaneHooks hooks;
  hooks.perform = [](TaskId, int) { std::this_thread::sleep_for(std::chrono::microseconds(200)); };
  hooks.step_ends = [&](int step, const std::vector<std::int64_t>& ends) {
    EXPECT_EQ(step, static_cast<int>(told.size()));
    told.push_back(ends);
  };
  LaneRunner runner(graph, 0, 3, std::move(hooks));
  runner.run();
  std::map<std::pair<int, TaskId>, LaneStamp> stamps;
  for (const LaneStamp& stamp : runner.stamps()) stamps[{stamp.step, stamp.task}] = stamp;
  ASSERT_EQ(told.size(), 3U);
  for (int window = 0; window < 3; ++window) {
    ASSERT_EQ(told[static_cast<std::size_t>(window)].size(), 2U);
    EXPECT_EQ(told[static_cast<std::size_t>(window)][0], stamps.at({window, 2}).end_ns);
    EXPECT_EQ(told[static_cast<std::size_t>(window)][1], stamps.at({window, 5}).end_ns);
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
    ran.at(static_cast<std::size_t>(window)).insert(task);
  };
  const auto next = [](int done) { return done == 0 ? StepSpan{0, 2} : StepSpan{1, done == 2 ? 1 : 0}; };
  LaneRunner({&graph, &cut}, 0, next, std::move(hooks)).run();
  EXPECT_EQ(ran[0].size(), 7U);
  EXPECT_EQ(ran[1].size(), 7U);
  EXPECT_EQ(ran[2], (std::set<TaskId>{0, 1, 2}));
}

}  // namespace
}  // namespace slipway
