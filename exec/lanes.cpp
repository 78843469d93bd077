#include "exec/lanes.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "exec/clock.h"

namespace slipway {
namespace {

// A task of this rank: what must be done before it may start.
struct LocalTask {
  TaskId task = 0;
  std::vector<std::uint32_t> same_step;  // local indices, other lanes only
  std::vector<std::uint32_t> step_before;
};

struct Stamp {
  std::int64_t start_ns = 0, end_ns = 0;
};

struct LocalLane {
  std::string name;
  bool compute = false;
  std::vector<std::uint32_t> tasks;  // local indices, in global order
  // In order of time; a chunk is made when it is needed, so that a run of many steps takes the memory it
  // uses.
  std::vector<std::unique_ptr<Stamp[]>> chunks;
  std::atomic<std::size_t> ended{0};  // readers look at no later stamp

  Stamp& stamp(std::size_t i) {
    std::unique_ptr<Stamp[]>& chunk = chunks[i / chunk_size];
    if (!chunk) chunk = std::make_unique<Stamp[]>(chunk_size);
    return chunk[i % chunk_size];
  }
  static constexpr std::size_t chunk_size = 4096;
};

constexpr int stopped = std::numeric_limits<int>::max();

void sort_unique(std::vector<std::uint32_t>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

struct LaneRunner::State {
  const TaskGraph& graph;
  int rank, steps;
  LaneHooks hooks;
  std::vector<LocalTask> tasks;
  std::vector<int> lane_of;  // per local task
  std::unordered_map<TaskId, std::uint32_t> local;
  std::vector<std::unique_ptr<LocalLane>> lanes;
  std::vector<std::atomic<int>> done;  // per local task: steps completed; `stopped` after an error
  std::mutex error_mutex;
  std::exception_ptr error;

  State(const TaskGraph& the_graph, int the_rank, int the_steps, LaneHooks the_hooks)
      : graph(the_graph), rank(the_rank), steps(the_steps), hooks(std::move(the_hooks)) {}

  void take_lanes();
  void take_dependencies();
  void take_buffer_reuse();
  void run_lane(LocalLane& lane);
  bool wait_for(std::uint32_t task, int steps_done);
  bool ready(const LocalTask& task, int step);
  void perform_all(LocalLane& lane);
  void stop_all(std::exception_ptr cause);
};

void LaneRunner::State::take_lanes() {
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
    }
    const std::size_t all = mine->tasks.size() * static_cast<std::size_t>(steps);
    mine->chunks.resize(all / LocalLane::chunk_size + 1);
    lanes.push_back(std::move(mine));
  }
  done = std::vector<std::atomic<int>>(tasks.size());
}

void LaneRunner::State::take_dependencies() {
  for (std::uint32_t index = 0; index < tasks.size(); ++index) {
    for (const TaskId before : graph.predecessors[tasks[index].task]) {
      const auto found = local.find(before);
      // Tasks of one lane follow each other anyway.
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

void LaneRunner::State::take_buffer_reuse() {
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

// False when the run has been stopped.
bool LaneRunner::State::wait_for(std::uint32_t task, int steps_done) {
  int now = done[task].load(std::memory_order_acquire);
  while (now < steps_done) {
    done[task].wait(now, std::memory_order_acquire);
    now = done[task].load(std::memory_order_acquire);
  }
  return now != stopped;
}

bool LaneRunner::State::ready(const LocalTask& task, int step) {
  for (const std::uint32_t before : task.same_step) {
    if (!wait_for(before, step + 1)) return false;
  }
  for (const std::uint32_t before : task.step_before) {
    if (!wait_for(before, step)) return false;
  }
  return true;
}

void LaneRunner::State::perform_all(LocalLane& lane) {
  if (hooks.thread_begins) hooks.thread_begins();
  std::size_t at = 0;
  for (int step = 0; step < steps; ++step) {
    for (const std::uint32_t index : lane.tasks) {
      if (done[index].load(std::memory_order_relaxed) == stopped || !ready(tasks[index], step)) return;
      Stamp& stamp = lane.stamp(at++);
      stamp.start_ns = monotonic_ns();
      hooks.perform(tasks[index].task, step);
      stamp.end_ns = monotonic_ns();
      int before = step;
      if (!done[index].compare_exchange_strong(before, step + 1, std::memory_order_acq_rel))
        return;  // stopped
      done[index].notify_all();
      lane.ended.store(at, std::memory_order_release);
    }
    if (lane.compute && hooks.step_ends && at > 0) hooks.step_ends(step, lane.stamp(at - 1).end_ns);
  }
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

void LaneRunner::State::run_lane(LocalLane& lane) {
  try {
    perform_all(lane);
  } catch (...) {
    stop_all(std::current_exception());
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
  for (auto& lane : state_->lanes) threads.emplace_back([this, &lane] { state_->run_lane(*lane); });
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
