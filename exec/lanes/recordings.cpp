#include "exec/lanes/recordings.h"

#include <algorithm>
#include <map>

namespace slipway::exec {
namespace {

// All segments of one micro-batch on one stage, in the order of the compute lane.
struct Unit {
  std::size_t first = 0, last = 0;  // places on the lane
  std::vector<TaskId> tasks;
  std::vector<std::int32_t> works;  // equal for micro-batches with the same work in the same order
};

bool may_be_recorded(const TaskGraph& graph, TaskId task) {
  const Work& work = graph.work(task);
  return work.kind == WorkKind::segment && graph.operators(work)[work.first_op].kind != OpKind::ring_attention;
}

std::vector<Unit> units_of(const TaskGraph& graph, const std::vector<TaskId>& lane) {
  std::map<std::pair<int, int>, Unit> units;  // by stage and micro-batch
  for (std::size_t place = 0; place < lane.size(); ++place) {
    const TaskId task = lane[place];
    if (!may_be_recorded(graph, task)) continue;
    Unit& unit = units[{graph.work(task).stage, graph.tasks[task].micro_batch}];
    if (unit.tasks.empty()) unit.first = place;
    unit.last = place;
    unit.tasks.push_back(task);
    unit.works.push_back(graph.tasks[task].work);
  }
  std::vector<Unit> result;
  for (auto& [key, unit] : units) result.push_back(std::move(unit));
  std::sort(result.begin(), result.end(), [](const Unit& a, const Unit& b) { return a.first < b.first; });
  return result;
}

// Slots of units with equal work: each unit gets the first slot that is free when it begins.
class Slots {
 public:
  struct Slot {
    std::size_t busy_until = 0;
    std::int32_t first_recording = 0;
  };
  Slot& free_for(const Unit& unit, Recordings& recordings, std::int32_t& pools) {
    for (Slot& slot : slots_)
      if (slot.busy_until < unit.first) return slot;
    slots_.push_back({0, static_cast<std::int32_t>(recordings.pool.size())});
    recordings.pool.insert(recordings.pool.end(), unit.tasks.size(), pools++);
    return slots_.back();
  }

 private:
  std::vector<Slot> slots_;
};

}  // namespace

Recordings recordings_of(const TaskGraph& graph, int rank) {
  Recordings recordings;
  recordings.recording.assign(graph.tasks.size(), none);
  if (graph.step.layout.zero >= 2) {
    recordings.why_none = "under layout.zero 2 and 3 gradients and weights lose their memory between uses";
    return recordings;
  }
  if (graph.step.slices > 1) {
    recordings.why_none = "slices of a sequence differ in shape";
    return recordings;
  }
  std::map<std::vector<std::int32_t>, Slots> slots;
  std::int32_t pools = 0;
  for (const Lane& lane : lanes_of(graph)) {
    if (lane.rank != rank || lane.communicator != none) continue;
    for (const Unit& unit : units_of(graph, lane.tasks)) {
      Slots::Slot& slot = slots[unit.works].free_for(unit, recordings, pools);
      slot.busy_until = unit.last;
      for (std::size_t i = 0; i < unit.tasks.size(); ++i)
        recordings.recording[unit.tasks[i]] = slot.first_recording + static_cast<std::int32_t>(i);
    }
  }
  return recordings;
}

}  // namespace slipway::exec
