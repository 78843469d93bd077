// Lanes on a device that works behind the host: order and times are the device's, and the host runs ahead, but not far.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "exec/lanes/lanes.h"
#include "tests/support/lane_graph.h"
#include "tests/support/thread_device.h"

namespace slipway::test {
namespace {

// Every task starts at once and takes a moment on the device.
LaneHooks hooks_on(ThreadDevice& device) {
  LaneHooks hooks;
  hooks.device = &device;
  hooks.perform = [&device](TaskId, int) {
    device.start([] { std::this_thread::sleep_for(std::chrono::microseconds(300)); });
  };
  return hooks;
}

using Stamps = std::map<std::pair<int, TaskId>, LaneStamp>;

Stamps run(const TaskGraph& graph, int steps) {
  ThreadDevice device;
  LaneRunner runner(graph, 0, steps, hooks_on(device));
  runner.run();
  Stamps stamps;
  for (const LaneStamp& stamp : runner.stamps()) stamps[{stamp.step, stamp.task}] = stamp;
  return stamps;
}

TEST(LanesOfADevice, ATaskBeginsThereAfterItsPredecessorsOnOtherLanesHaveEnded) {
  const TaskGraph graph = graph_of({{}, {0, {0}, {}, {}}, {none, {1}, {}, {}}, {0, {2}, {}, {}}});
  const Stamps stamps = run(graph, 5);
  ASSERT_EQ(stamps.size(), 20u);
  for (int step = 0; step < 5; ++step)
    for (TaskId task = 1; task < 4; ++task)
      EXPECT_GE(stamps.at({step, task}).start_ns, stamps.at({step, task - 1}).end_ns);
}

TEST(LanesOfADevice, TimesAreThoseOfTheDevice) {
  for (const auto& [key, stamp] : run(graph_of({{}, {}, {0, {}, {}, {}}}), 3))
    EXPECT_GE(stamp.end_ns - stamp.start_ns, 300'000) << "the host had started it in no time";
}

TEST(LanesOfADevice, CarriedEdgesAndBuffersJoinStepsThere) {
  TaskGraph carried = graph_of({{0, {}, {}, {}}, {}});
  carried.carried = {{1, 0}};
  const Stamps one = run(carried, 5);
  for (int step = 0; step < 4; ++step) EXPECT_GE(one.at({step + 1, 0}).start_ns, one.at({step, 1}).end_ns);
  const Stamps two = run(graph_of({{0, {}, {}, {0}}, {}, {}, {none, {0}, {0}, {}}}), 5);
  for (int step = 0; step < 4; ++step) EXPECT_GE(two.at({step + 1, 0}).start_ns, two.at({step, 3}).end_ns);
}

// The device stands still: both lanes start two whole steps, across their dependencies, and nothing of the third.
TEST(LanesOfADevice, TheHostRunsOneStepAheadAndNoFurther) {
  const TaskGraph graph = graph_of({{}, {0, {0}, {}, {}}, {none, {1}, {}, {}}});
  ThreadDevice device;
  std::atomic<int> started{0}, third{0};
  LaneHooks hooks = hooks_on(device);
  hooks.perform = [&](TaskId, int step) {
    device.start([] {});
    ++started;
    if (step >= 2) ++third;
  };
  device.hold();
  LaneRunner runner(graph, 0, 4, std::move(hooks));
  std::thread host([&] { runner.run(); });
  while (started < 6) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(started, 6);
  EXPECT_EQ(third, 0);
  EXPECT_TRUE(runner.stamps().empty()) << "nothing has happened yet";
  device.release();
  host.join();
  EXPECT_EQ(started, 12);
  EXPECT_EQ(runner.stamps().size(), 12u);
}

// The same with more tasks than the host may be ahead, within a step and across two.
TEST(LanesOfADevice, TheHostRunsSoManyTasksAheadAndNoFurther) {
  for (const std::size_t tasks : {3 * tasks_ahead, tasks_ahead - 2}) {
    const TaskGraph graph = graph_of(std::vector<HandTask>(tasks));
    ThreadDevice device;
    std::atomic<std::size_t> started{0};
    LaneHooks hooks = hooks_on(device);
    hooks.perform = [&](TaskId, int) {
      device.start([] {});
      ++started;
    };
    device.hold();
    LaneRunner runner(graph, 0, 4, std::move(hooks));
    std::thread host([&] { runner.run(); });
    while (started < tasks_ahead) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(started, tasks_ahead);
    device.release();
    host.join();
    EXPECT_EQ(started, 4 * tasks);
    EXPECT_EQ(runner.stamps().size(), 4 * tasks);
  }
}

TEST(LanesOfADevice, AStepEndsWhenTheDeviceHasDoneItAndEachIsToldOnceInOrder) {
  ThreadDevice device;
  std::atomic<int> done{0};
  std::vector<int> steps;
  LaneHooks hooks = hooks_on(device);
  hooks.perform = [&](TaskId, int) {
    device.start([&done] {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      ++done;
    });
  };
  hooks.step_ends = [&](int step, const std::vector<std::int64_t>& ends_ns) {
    const std::int64_t end_ns = ends_ns.back();
    EXPECT_GE(done, 2 * (step + 1));
    EXPECT_LE(end_ns, monotonic_ns());
    steps.push_back(step);
  };
  LaneRunner(graph_of({{}, {}}), 0, 5, std::move(hooks)).run();  // the communicator's lane has no task
  EXPECT_EQ(steps, (std::vector<int>{0, 1, 2, 3, 4}));
}

// As for a checkpoint, which must show one moment.
TEST(LanesOfADevice, TheComputeLanePausesAfterAStepThatIsToBeCompleteFirst) {
  ThreadDevice device;
  std::atomic<int> ended{-1};
  LaneHooks hooks = hooks_on(device);
  hooks.pauses_after = [](int step) { return step == 1; };
  hooks.step_ends = [&](int step, const std::vector<std::int64_t>&) { ended = step; };
  hooks.perform = [&](TaskId, int step) {
    if (step == 2) {
      EXPECT_EQ(ended, 1);
    }
    device.start([] { std::this_thread::sleep_for(std::chrono::microseconds(300)); });
  };
  LaneRunner(graph_of({{}, {}}), 0, 4, std::move(hooks)).run();
  EXPECT_EQ(ended, 3);
}

TEST(LanesOfADevice, AnErrorStopsAllLanesAndKeepsTheStepsThatWereDone) {
  ThreadDevice device;
  LaneHooks hooks = hooks_on(device);
  hooks.perform = [&](TaskId task, int step) {
    if (step == 3 && task == 1) throw std::runtime_error("task 1 broke");
    device.start([] {});
  };
  const TaskGraph graph = graph_of({{}, {0, {0}, {}, {}}, {none, {1}, {}, {}}});
  LaneRunner runner(graph, 0, 100, std::move(hooks));
  EXPECT_THROW(runner.run(), std::runtime_error);
  EXPECT_GE(runner.stamps().size(), 2 * 3u) << "steps 0 and 1 were over before step 3 began";
}

// A device on which an error of a task's work appears later, as on a GPU: when the host waits, marks or reads times.
class BreakingDevice : public ThreadDevice {
 public:
  enum class At { begin, mark, wait, finish, time };
  explicit BreakingDevice(At at) : at_(at), armed_(at == At::begin) {}
  // Makes the next call of that kind on this thread throw.
  void arm() {
    lane_ = std::this_thread::get_id();
    armed_ = true;
  }

  void begin_lane() override {
    ThreadDevice::begin_lane();
    broken_at(At::begin);
  }
  Mark mark() override {
    broken_at(At::mark);
    return ThreadDevice::mark();
  }
  void wait_for(const Mark& mark) override {
    broken_at(At::wait);
    ThreadDevice::wait_for(mark);
  }
  void finish(const Mark& mark) override {
    broken_at(At::finish);
    ThreadDevice::finish(mark);
  }
  std::vector<std::int64_t> times_ns(const std::vector<Mark>& marks) override {
    broken_at(At::time);
    return ThreadDevice::times_ns(marks);
  }

 private:
  void broken_at(At at) {
    if (at != at_ || !armed_ || (at != At::begin && lane_ != std::this_thread::get_id())) return;
    armed_ = false;
    throw std::runtime_error("the device broke");
  }
  At at_;
  std::atomic<std::thread::id> lane_;
  std::atomic<bool> armed_;
};

struct BreakingCase {
  BreakingDevice::At at;
  std::pair<TaskId, int> armed_in;  // task and step
  const char* where;
};

class AnErrorOfTheDevice : public testing::TestWithParam<BreakingCase> {};

// The other lane hangs, as it would for a peer that is never notified, until the hook runs.
TEST_P(AnErrorOfTheDevice, IsToldOnceWithItsPlaceWhileOtherLanesHang) {
  BreakingDevice device(GetParam().at);
  std::atomic<bool> notified{false};
  std::vector<std::string> places;
  LaneHooks hooks;
  hooks.device = &device;
  hooks.perform = [&](TaskId task, int step) {
    if (std::pair(task, step) == GetParam().armed_in) device.arm();
    for (int i = 0; task == 2 && !notified && i < 10'000; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(task != 2 || notified) << "the hook did not run for 10 s";
    device.start([] {});
  };
  hooks.lane_broke = [&](const std::string& where) {
    try {
      throw;
    } catch (const std::runtime_error& error) {
      places.push_back(where + ": " + error.what());
    }
    notified = true;
  };
  // Tasks 0 and 1 of the compute lane, the second after task 3 of another one; task 2 hangs on a third. Task 3 comes
  // after task 0. Otherwise its lane would be steps ahead, and a finished task needs no wait.
  TaskGraph graph = graph_of({{}, {none, {3}, {}, {}}, {1, {}, {}, {}}, {0, {0}, {}, {}}}, 2);
  graph.communicators[1].name = "pp";
  if (GetParam().at == BreakingDevice::At::begin) graph = graph_of({{}});
  graph.works.front().suffix = "T";
  for (TaskId task = 0; task < graph.tasks.size(); ++task) graph.tasks[task].micro_batch = static_cast<int>(task);
  LaneRunner runner(graph, 0, 4, std::move(hooks));
  EXPECT_THROW(runner.run(), std::runtime_error);
  EXPECT_EQ(places, (std::vector<std::string>{std::string(GetParam().where) + ": the device broke"}));
}

using At = BreakingDevice::At;
INSTANTIATE_TEST_SUITE_P(
    Anywhere, AnErrorOfTheDevice,
    testing::Values(BreakingCase{At::begin, {}, "step 1, lane compute, before its first task"},
                    BreakingCase{At::mark, {1, 1}, "step 2, T1"}, BreakingCase{At::wait, {0, 1}, "step 2, T1"},
                    BreakingCase{At::finish, {1, 1}, "step 1, lane compute, waiting for the device to end the step"},
                    BreakingCase{At::time, {1, 1}, "step 1, lane compute, reading the device's times of the step"}));

}  // namespace
}  // namespace slipway::test
