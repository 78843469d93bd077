// The inside of LaneRunner: what every task waits for, the lanes, and the gate where they agree on what comes next.
// Guarded by tests/exec/lanes_test.cpp.
#include "exec/lanes/lanes.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "exec/process/clock.h"

namespace slipway::exec {

namespace laning {

// A task of this rank, and what must be done before it may start.
struct LocalTask {
  TaskId task = 0;
  std::vector<std::uint32_t> same_step;  // local indices, other lanes only
  std::vector<std::uint32_t> step_before;
};

struct Stamp {
  std::int64_t start_ns = 0, end_ns = 0;
};

// Marks of a task's start and end on the device, in one step.
struct TaskMarks {
  int step = none;
  DeviceQueue::Mark start, end;
};

// A lane of one step program. Steps are counted from the program's first.
struct LocalLane {
  std::string name;
  bool compute = false;
  std::vector<std::uint32_t> tasks;  // local indices, in global order
  std::mutex marks_mutex;
  std::vector<TaskMarks> marks;  // of the tasks of even steps, then of odd ones; empty without a device
  int settled = 0;               // steps, on a device
  // In order of time. A chunk is made when it is needed, so memory grows with the steps.
  std::vector<std::unique_ptr<Stamp[]>> chunks;
  std::atomic<std::size_t> ended{0};  // readers read no later stamp

  TaskMarks& marks_of(int step, std::size_t place) {
    return marks[static_cast<std::size_t>(step & 1) * tasks.size() + place];
  }
  Stamp& stamp(std::size_t i) {
    std::unique_ptr<Stamp[]>& chunk = chunks[i / chunk_size];
    if (!chunk) chunk = std::make_unique<Stamp[]>(chunk_size);
    return chunk[i % chunk_size];
  }
  void make_room(int steps) { chunks.resize(tasks.size() * static_cast<std::size_t>(steps) / chunk_size + 1); }
  static constexpr std::size_t chunk_size = 4096;
};

// A step program on this rank.
struct LocalProgram {
  LocalProgram(const TaskGraph& graph, int rank, bool on_device);

  const TaskGraph& graph;
  int first_step = 0;  // of the run
  int until = 0;       // number of its own steps that may run before the lanes meet again
  std::vector<LocalTask> tasks;
  std::vector<int> lane_of;  // per local task
  std::vector<std::size_t> place_in_lane;
  std::unordered_map<TaskId, std::uint32_t> local;
  std::vector<std::unique_ptr<LocalLane>> lanes;
  std::vector<std::atomic<int>> done;  // per local task: steps completed; `stopped` after an error

 private:
  void take_lanes(int rank, bool on_device);
  void take_dependencies();
  void take_buffer_reuse(int rank);
};

// A thread and its present action, for an error message; now_step is of the run.
struct LaneThread {
  std::size_t lane = 0;  // of every program
  bool begun = false;    // has had a task
  const LocalProgram* program = nullptr;
  int let_through = 0;  // number of steps of `program` that it may run
  int now_step = 0;
  TaskId now_task = 0;
  const char* doing = "before its first task";  // instead of a task
};

constexpr int stopped = std::numeric_limits<int>::max();

}  // namespace laning

struct LaneRunner::State {
  std::vector<const TaskGraph*> graphs;
  int rank;
  std::function<StepSpan(int)> next;
  LaneHooks hooks;
  std::vector<std::string> names;  // of the lanes
  // Ascending in first_step. Appended to, and their room for stamps changed, only while all lanes have met.
  std::vector<std::unique_ptr<laning::LocalProgram>> entered;
  mutable std::mutex entered_mutex;
  std::mutex gate;
  std::condition_variable gate_opens;
  std::size_t arrived = 0;
  int rounds = 0;        // number of times it has opened
  int steps_agreed = 0;  // of the run
  bool over = false, broken = false;
  std::mutex error_mutex;
  std::exception_ptr error;

  State(std::vector<const TaskGraph*> graphs, int rank, std::function<StepSpan(int)> next, LaneHooks hooks);

  laning::LocalProgram* pass_gate(laning::LaneThread& thread);
  void open_gate();
  void enter(const TaskGraph& graph);
  void run_thread(laning::LaneThread& thread);
  void perform_all(laning::LaneThread& thread);
  void perform_span(laning::LaneThread& thread, laning::LocalProgram& program, int from);
  bool wait_for(laning::LocalProgram& program, std::uint32_t task, int steps_done);
  bool ready(laning::LocalProgram& program, const laning::LocalTask& task, int step);
  void wait_on_device(laning::LocalProgram& program, std::uint32_t task, int step);
  void perform(laning::LocalProgram& program, laning::LocalLane& lane, std::size_t place, int step);
  void stay_near(laning::LaneThread& thread, laning::LocalLane& lane, std::size_t place, int step);
  void settle(laning::LaneThread& thread, laning::LocalLane& lane);
  void end_step(laning::LaneThread& thread, laning::LocalLane& lane, int step);
  std::string text_of(const laning::LaneThread& thread) const;
  void broke(const laning::LaneThread& thread);
  void stop_all(std::exception_ptr cause);
};

using namespace laning;

// False when the run has been stopped.
bool LaneRunner::State::wait_for(LocalProgram& program, std::uint32_t task, int steps_done) {
  std::atomic<int>& done = program.done[task];
  int now = done.load(std::memory_order_acquire);
  while (now < steps_done) {
    done.wait(now, std::memory_order_acquire);
    now = done.load(std::memory_order_acquire);
  }
  return now != stopped;
}

// Marks that are gone belong to a step that the device has finished: settle() comes before they are overwritten.
void LaneRunner::State::wait_on_device(LocalProgram& program, std::uint32_t task, int step) {
  if (!hooks.device || step < 0) return;
  LocalLane& lane = *program.lanes[program.lane_of[task]];
  DeviceQueue::Mark end;
  {
    const std::lock_guard lock(lane.marks_mutex);
    const TaskMarks& marks = lane.marks_of(step, program.place_in_lane[task]);
    if (marks.step == step) end = marks.end;
  }
  if (end) hooks.device->wait_for(end);
}

bool LaneRunner::State::ready(LocalProgram& program, const LocalTask& task, int step) {
  for (const std::uint32_t before : task.same_step) {
    if (!wait_for(program, before, step + 1)) return false;
    wait_on_device(program, before, step);
  }
  for (const std::uint32_t before : task.step_before) {
    if (!wait_for(program, before, step)) return false;
    wait_on_device(program, before, step - 1);
  }
  return true;
}

// Without a device the stamps are complete now; else when the step is settled.
void LaneRunner::State::perform(LocalProgram& program, LocalLane& lane, std::size_t place, int step) {
  const TaskId task = program.tasks[lane.tasks[place]].task;
  if (!hooks.device) {
    Stamp& stamp = lane.stamp(static_cast<std::size_t>(step) * lane.tasks.size() + place);
    stamp.start_ns = monotonic_ns();
    hooks.perform(task, program.first_step + step);
    stamp.end_ns = monotonic_ns();
    return;
  }
  TaskMarks marks{step, hooks.device->mark(), nullptr};
  hooks.perform(task, program.first_step + step);
  marks.end = hooks.device->mark();
  const std::lock_guard lock(lane.marks_mutex);
  lane.marks_of(step, place) = std::move(marks);
}

// Called before a task is started: waits until the device has done the task that is tasks_ahead before it. Settled
// steps are done.
void LaneRunner::State::stay_near(LaneThread& thread, LocalLane& lane, std::size_t place, int step) {
  const std::size_t count = lane.tasks.size(), now = static_cast<std::size_t>(step) * count + place;
  if (now < static_cast<std::size_t>(lane.settled) * count + tasks_ahead) return;
  const std::size_t before = now - tasks_ahead;
  thread.doing = "waiting for the device, which is far behind";
  hooks.device->finish(lane.marks_of(static_cast<int>(before / count), before % count).end);
  thread.doing = nullptr;
}

// Waits until the device has done the first step of the lane that is not settled, and reads its times.
void LaneRunner::State::settle(LaneThread& thread, LocalLane& lane) {
  const int step = lane.settled;
  const std::size_t count = lane.tasks.size(), first = static_cast<std::size_t>(step) * count;
  TaskMarks* const marks = &lane.marks_of(step, 0);
  thread.now_step = thread.program->first_step + step;
  thread.doing = "waiting for the device to end the step";
  hooks.device->finish(marks[count - 1].end);
  thread.doing = "reading the device's times of the step";
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
  ++lane.settled;
  end_step(thread, lane, step);
}

namespace {

std::vector<std::int64_t> ends_of(const LocalProgram& program, LocalLane& lane, int step) {
  std::vector<std::int64_t> ends(program.graph.window);
  const std::size_t count = lane.tasks.size(), first = static_cast<std::size_t>(step) * count;
  for (std::size_t i = 0; i < count; ++i) {
    const Task& task = program.graph.tasks[program.tasks[lane.tasks[i]].task];
    if (task.kind != TaskKind::bubble_work) ends[task.step] = lane.stamp(first + i).end_ns;
  }
  return ends;
}

}  // namespace

void LaneRunner::State::end_step(LaneThread& thread, LocalLane& lane, int step) {
  if (!lane.compute || !hooks.step_ends) return;
  thread.now_step = thread.program->first_step + step;
  thread.doing = "end of the step";
  hooks.step_ends(thread.now_step, ends_of(*thread.program, lane, step));
}

// Runs the steps of `program` from `from` to where the lanes meet again.
void LaneRunner::State::perform_span(LaneThread& thread, LocalProgram& program, int from) {
  LocalLane& lane = *program.lanes[thread.lane];
  for (int step = from; step < program.until; ++step) {
    if (hooks.device && lane.settled + 2 == step) settle(thread, lane);
    for (std::size_t place = 0; place < lane.tasks.size(); ++place) {
      const std::uint32_t index = lane.tasks[place];
      thread.now_step = program.first_step + step;
      thread.now_task = program.tasks[index].task;
      thread.doing = nullptr;
      if (hooks.device) stay_near(thread, lane, place, step);
      std::atomic<int>& done = program.done[index];
      if (done.load(std::memory_order_relaxed) == stopped || !ready(program, program.tasks[index], step)) return;
      perform(program, lane, place, step);
      int before = step;
      if (!done.compare_exchange_strong(before, step + 1, std::memory_order_acq_rel)) return;  // stopped
      done.notify_all();
      if (!hooks.device)
        lane.ended.store(static_cast<std::size_t>(step) * lane.tasks.size() + place + 1, std::memory_order_release);
    }
    if (!hooks.device) {
      end_step(thread, lane, step);
    } else if (lane.compute && hooks.pauses_after && hooks.pauses_after(program.first_step + step)) {
      while (lane.settled <= step) settle(thread, lane);
    }
  }
  while (hooks.device && lane.settled < program.until) settle(thread, lane);
}

void LaneRunner::State::perform_all(LaneThread& thread) {
  while (LocalProgram* const program = pass_gate(thread)) {
    const int from = thread.program == program ? thread.let_through : 0;
    thread.program = program;
    thread.let_through = program->until;
    const LocalLane& lane = *program->lanes[thread.lane];
    if (lane.tasks.empty()) continue;  // this rank has no task on that communicator
    if (!thread.begun) {
      thread.begun = true;
      thread.doing = "before its first task";
      if (hooks.device) hooks.device->begin_lane();
      if (hooks.thread_begins) hooks.thread_begins(lane.compute);
    }
    perform_span(thread, *program, from);
  }
}

void LaneRunner::State::stop_all(std::exception_ptr cause) {
  {
    const std::lock_guard lock(error_mutex);
    if (!error) error = std::move(cause);
  }
  {
    const std::lock_guard lock(gate);
    broken = true;
  }
  gate_opens.notify_all();
  const std::lock_guard lock(entered_mutex);
  if (entered.empty()) return;
  for (auto& count : entered.back()->done) {
    count.store(stopped, std::memory_order_release);
    count.notify_all();
  }
}

std::string LaneRunner::State::text_of(const LaneThread& thread) const {
  const auto step = [&](int in_window) {
    const int window = thread.program ? thread.program->graph.window : 1;
    return "step " + std::to_string(hooks.steps_before + thread.now_step * window + in_window + 1) + ", ";
  };
  if (thread.doing) return step(0) + "lane " + names[thread.lane] + ", " + thread.doing;
  const TaskGraph& graph = thread.program->graph;
  return step(graph.tasks[thread.now_task].step) + label_of(graph, thread.now_task);
}

// Called in a handler.
void LaneRunner::State::broke(const LaneThread& thread) {
  stop_all(std::current_exception());
  if (hooks.lane_broke) hooks.lane_broke(text_of(thread));
}

void LaneRunner::State::run_thread(LaneThread& thread) {
  try {
    perform_all(thread);
  } catch (...) {
    broke(thread);
  }
}

LaneRunner::State::State(std::vector<const TaskGraph*> the_graphs, int the_rank, std::function<StepSpan(int)> the_next,
                         LaneHooks the_hooks)
    : graphs(std::move(the_graphs)), rank(the_rank), next(std::move(the_next)), hooks(std::move(the_hooks)) {
  for (const Lane& lane : lanes_of(*graphs.at(0)))
    if (lane.rank == rank) names.push_back(lane_name(*graphs[0], lane));
}

LaneRunner::LaneRunner(std::vector<const TaskGraph*> programs, int rank, std::function<StepSpan(int)> next,
                       LaneHooks hooks)
    : state_(std::make_unique<State>(std::move(programs), rank, std::move(next), std::move(hooks))) {}

LaneRunner::LaneRunner(const TaskGraph& graph, int rank, int steps, LaneHooks hooks)
    : LaneRunner(
          {&graph}, rank,
          [steps](int done) {
            return StepSpan{0, steps - done};
          },
          std::move(hooks)) {}

LaneRunner::~LaneRunner() = default;

void LaneRunner::run() {
  std::vector<LaneThread> each(state_->names.size());
  std::vector<std::thread> threads;
  threads.reserve(each.size());
  for (std::size_t lane = 0; lane < each.size(); ++lane) {
    each[lane].lane = lane;
    try {
      threads.emplace_back([this, &thread = each[lane]] { state_->run_thread(thread); });
    } catch (const std::system_error&) {  // no more threads: those that run must not be left
      state_->broke(each[lane]);
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (state_->error) std::rethrow_exception(state_->error);
}

std::vector<LaneStamp> LaneRunner::stamps() const {
  const std::lock_guard lock(state_->entered_mutex);
  std::vector<LaneStamp> result;
  for (const auto& program : state_->entered) {
    for (const auto& lane : program->lanes) {
      const std::size_t ended = lane->ended.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < ended; ++i) {
        const std::size_t step = i / lane->tasks.size(), at = i % lane->tasks.size();
        const Stamp& stamp = lane->stamp(i);
        result.push_back({program->first_step + static_cast<int>(step), program->tasks[lane->tasks[at]].task,
                          lane->name, stamp.start_ns, stamp.end_ns, &program->graph});
      }
    }
  }
  return result;
}

namespace laning {

namespace {

void sort_unique(std::vector<std::uint32_t>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

LocalProgram::LocalProgram(const TaskGraph& the_graph, int rank, bool on_device) : graph(the_graph) {
  take_lanes(rank, on_device);
  take_dependencies();
  take_buffer_reuse(rank);
}

void LocalProgram::take_lanes(int rank, bool on_device) {
  for (const Lane& lane : lanes_of(graph)) {
    if (lane.rank != rank) continue;
    auto mine = std::make_unique<LocalLane>();
    mine->name = lane_name(graph, lane);
    mine->compute = lane.communicator == none;
    for (const TaskId task : lane.tasks) {
      const auto index = static_cast<std::uint32_t>(tasks.size());
      local[task] = index;
      mine->tasks.push_back(index);
      tasks.push_back({task, {}, {}});
      lane_of.push_back(static_cast<int>(lanes.size()));
      place_in_lane.push_back(mine->tasks.size() - 1);
    }
    if (on_device) mine->marks.resize(2 * mine->tasks.size());
    lanes.push_back(std::move(mine));
  }
  done = std::vector<std::atomic<int>>(tasks.size());
}

void LocalProgram::take_dependencies() {
  for (std::uint32_t index = 0; index < tasks.size(); ++index) {
    for (const TaskId before : graph.predecessors[tasks[index].task]) {
      const auto found = local.find(before);
      // Tasks of one lane are in order anyway.
      if (found == local.end() || lane_of[found->second] == lane_of[index]) continue;
      tasks[index].same_step.push_back(found->second);
    }
  }
  for (const auto& [before, task] : graph.carried) {
    const auto first = local.find(before), then = local.find(task);
    if (first == local.end() || then == local.end()) continue;
    tasks[then->second].step_before.push_back(first->second);
  }
}

void LocalProgram::take_buffer_reuse(int rank) {
  std::unordered_map<BufferId, std::vector<std::uint32_t>> readers;
  for (std::uint32_t index = 0; index < tasks.size(); ++index) {
    for (const BufferId buffer : graph.inputs[tasks[index].task]) {
      if (graph.buffers[buffer].rank == rank) readers[buffer].push_back(index);
    }
  }
  for (std::uint32_t index = 0; index < tasks.size(); ++index) {
    std::vector<std::uint32_t>& before = tasks[index].step_before;
    for (const BufferId buffer : graph.outputs[tasks[index].task]) {
      if (graph.buffers[buffer].rank != rank) continue;
      const auto& list = readers[buffer];
      before.insert(before.end(), list.begin(), list.end());
    }
    std::erase_if(before, [&](std::uint32_t other) { return lane_of[other] == lane_of[index]; });
    sort_unique(before);
    sort_unique(tasks[index].same_step);
  }
}

}  // namespace laning

// The gate where all lanes of a rank meet: at the beginning, at the end, and whenever the next steps are not known yet.

using namespace laning;

// Null when the run is over, or broken. The last lane to arrive calls `next`; what that throws is its lane's error.
LocalProgram* LaneRunner::State::pass_gate(LaneThread& thread) {
  thread.doing = "before its next steps";
  std::unique_lock lock(gate);
  if (++arrived < names.size()) {
    gate_opens.wait(lock, [this, round = rounds] { return rounds != round || broken; });
  } else {
    thread.now_step = steps_agreed;
    open_gate();
    arrived = 0;
    ++rounds;
    gate_opens.notify_all();
  }
  return over || broken ? nullptr : entered.back().get();
}

// No lane is at work.
void LaneRunner::State::open_gate() {
  const StepSpan span = next(steps_agreed);
  over = span.steps == 0;
  if (over) return;
  const TaskGraph& graph = *graphs.at(span.program);
  const std::lock_guard lock(entered_mutex);
  if (entered.empty() || &entered.back()->graph != &graph) enter(graph);
  LocalProgram& program = *entered.back();
  program.until += span.steps;
  for (const auto& lane : program.lanes) lane->make_room(program.until);
  steps_agreed += span.steps;
}

void LaneRunner::State::enter(const TaskGraph& graph) {
  auto program = std::make_unique<LocalProgram>(graph, rank, hooks.device != nullptr);
  bool same = program->lanes.size() == names.size();
  for (std::size_t i = 0; same && i < names.size(); ++i) same = program->lanes[i]->name == names[i];
  if (!same) throw std::invalid_argument("the step programs of a run have different lanes");
  program->first_step = steps_agreed;
  entered.push_back(std::move(program));
}

}  // namespace slipway::exec
