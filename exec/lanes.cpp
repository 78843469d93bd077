#include "exec/lanes.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include "exec/clock.h"
#include "exec/lanes_state.h"

namespace slipway {

using namespace laning;

// False when the run has been stopped.
bool LaneRunner::State::wait_for(std::uint32_t task, int steps_done) {
  int now = done[task].load(std::memory_order_acquire);
  while (now < steps_done) {
    done[task].wait(now, std::memory_order_acquire);
    now = done[task].load(std::memory_order_acquire);
  }
  return now != stopped;
}

// Marks that are gone are those of a step that the device has left behind: settle() comes before they are overwritten.
void LaneRunner::State::wait_on_device(std::uint32_t task, int step) {
  if (!hooks.device || step < 0) return;
  LocalLane& lane = *lanes[static_cast<std::size_t>(lane_of[task])];
  DeviceQueue::Mark end;
  {
    const std::lock_guard lock(lane.marks_mutex);
    const TaskMarks& marks = lane.marks_of(step, place_in_lane[task]);
    if (marks.step == step) end = marks.end;
  }
  if (end) hooks.device->wait_for(end);
}

bool LaneRunner::State::ready(const LocalTask& task, int step) {
  for (const std::uint32_t before : task.same_step) {
    if (!wait_for(before, step + 1)) return false;
    wait_on_device(before, step);
  }
  for (const std::uint32_t before : task.step_before) {
    if (!wait_for(before, step)) return false;
    wait_on_device(before, step - 1);
  }
  return true;
}

// Without a device the stamps are complete now; else when the step is settled.
void LaneRunner::State::perform(LocalLane& lane, std::size_t place, int step) {
  const TaskId task = tasks[lane.tasks[place]].task;
  if (!hooks.device) {
    Stamp& stamp = lane.stamp(static_cast<std::size_t>(step) * lane.tasks.size() + place);
    stamp.start_ns = monotonic_ns();
    hooks.perform(task, step);
    stamp.end_ns = monotonic_ns();
    return;
  }
  TaskMarks marks{step, hooks.device->mark(), nullptr};
  hooks.perform(task, step);
  marks.end = hooks.device->mark();
  const std::lock_guard lock(lane.marks_mutex);
  lane.marks_of(step, place) = std::move(marks);
}

// Before a task is started: waits until the device has done the one that lies tasks_ahead before it. Of settled steps
// all are done.
void LaneRunner::State::stay_near(LocalLane& lane, std::size_t place, int step, int settled) {
  const std::size_t count = lane.tasks.size(), now = static_cast<std::size_t>(step) * count + place;
  if (now < static_cast<std::size_t>(settled) * count + tasks_ahead) return;
  const std::size_t before = now - tasks_ahead;
  lane.now.doing = "waiting for the device, which is far behind";
  hooks.device->finish(lane.marks_of(static_cast<int>(before / count), before % count).end);
  lane.now.doing = nullptr;
}

// Waits until the device has done this step of the lane, and takes its times.
void LaneRunner::State::settle(LocalLane& lane, int step) {
  const std::size_t count = lane.tasks.size(), first = static_cast<std::size_t>(step) * count;
  TaskMarks* const marks = &lane.marks_of(step, 0);
  lane.now = {step, 0, "waiting for the device to end the step"};
  hooks.device->finish(marks[count - 1].end);
  lane.now.doing = "reading the device's times of the step";
  std::vector<DeviceQueue::Mark> asked;
  asked.reserve(2 * count);
  for (std::size_t i = 0; i < count; ++i) asked.insert(asked.end(), {marks[i].start, marks[i].end});
  const std::vector<std::int64_t> times = hooks.device->times_ns(asked);
  for (std::size_t i = 0; i < count; ++i) lane.stamp(first + i) = {times[2 * i], times[2 * i + 1]};
  {
    const std::lock_guard lock(lane.marks_mutex);
    std::fill(marks, marks + count, TaskMarks{});
  }
  lane.ended.store(first + count, std::memory_order_release);
  end_step(lane, step, lane.stamp(first + count - 1).end_ns);
}

void LaneRunner::State::end_step(LocalLane& lane, int step, std::int64_t end_ns) {
  if (!lane.compute || !hooks.step_ends) return;
  lane.now = {step, 0, "end of the step"};
  hooks.step_ends(step, end_ns);
}

void LaneRunner::State::perform_all(LocalLane& lane) {
  if (lane.tasks.empty()) return;  // of a communicator in which this rank has nothing to do
  if (hooks.device) hooks.device->begin_lane();
  if (hooks.thread_begins) hooks.thread_begins(lane.compute);
  int settled = 0;  // steps, on a device
  for (int step = 0; step < steps; ++step) {
    if (hooks.device && settled + 2 == step) settle(lane, settled++);
    for (std::size_t place = 0; place < lane.tasks.size(); ++place) {
      const std::uint32_t index = lane.tasks[place];
      lane.now = {step, tasks[index].task, nullptr};
      if (hooks.device) stay_near(lane, place, step, settled);
      if (done[index].load(std::memory_order_relaxed) == stopped || !ready(tasks[index], step)) return;
      perform(lane, place, step);
      int before = step;
      if (!done[index].compare_exchange_strong(before, step + 1, std::memory_order_acq_rel))
        return;  // stopped
      done[index].notify_all();
      if (!hooks.device)
        lane.ended.store(static_cast<std::size_t>(step) * lane.tasks.size() + place + 1, std::memory_order_release);
    }
    if (!hooks.device) {
      end_step(lane, step, lane.stamp(lane.ended - 1).end_ns);
    } else if (lane.compute && hooks.pauses_after && hooks.pauses_after(step)) {
      while (settled <= step) settle(lane, settled++);
    }
  }
  while (hooks.device && settled < steps) settle(lane, settled++);
}

void LaneRunner::State::stop_all(std::exception_ptr cause) {
  {
    const std::lock_guard lock(error_mutex);
    if (!error) error = std::move(cause);
  }
  for (auto& count : done) {
    count.store(stopped, std::memory_order_release);
    count.notify_all();
  }
}

std::string LaneRunner::State::text_of(const LocalLane& lane) const {
  const std::string step = "step " + std::to_string(hooks.steps_before + lane.now.step + 1) + ", ";
  if (lane.now.doing) return step + "lane " + lane.name + ", " + lane.now.doing;
  return step + label_of(graph, lane.now.task);
}

// In a handler.
void LaneRunner::State::broke(const LocalLane& lane) {
  stop_all(std::current_exception());
  if (hooks.lane_broke) hooks.lane_broke(text_of(lane));
}

void LaneRunner::State::run_lane(LocalLane& lane) {
  try {
    perform_all(lane);
  } catch (...) {
    broke(lane);
  }
}

LaneRunner::LaneRunner(const TaskGraph& graph, int rank, int steps, LaneHooks hooks)
    : state_(std::make_unique<State>(graph, rank, steps, std::move(hooks))) {
  state_->take_lanes();
  state_->take_dependencies();
  state_->take_buffer_reuse();
}

LaneRunner::~LaneRunner() = default;

void LaneRunner::run() {
  std::vector<std::thread> threads;
  threads.reserve(state_->lanes.size());
  for (auto& lane : state_->lanes) {
    try {
      threads.emplace_back([this, &lane] { state_->run_lane(*lane); });
    } catch (const std::system_error&) {  // no more threads: those that run must not be left
      state_->broke(*lane);
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (state_->error) std::rethrow_exception(state_->error);
}

std::vector<LaneStamp> LaneRunner::stamps() const {
  std::vector<LaneStamp> result;
  for (const auto& lane : state_->lanes) {
    const std::size_t ended = lane->ended.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < ended; ++i) {
      const std::size_t step = i / lane->tasks.size(), at = i % lane->tasks.size();
      const Stamp& stamp = lane->stamp(i);
      result.push_back({static_cast<int>(step), state_->tasks[lane->tasks[at]].task, lane->name,
                        stamp.start_ns, stamp.end_ns});
    }
  }
  return result;
}

}  // namespace slipway
