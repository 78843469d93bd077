#include "schedules/lower/graph_builder.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "schedules/graph/parallel.h"

namespace slipway::schedules {

namespace {

bool is_same(const Work& a, const Work& b) {
  return a.kind == b.kind && a.pass == b.pass && a.stage == b.stage && a.slice == b.slice && a.block == b.block &&
         a.first_op == b.first_op && a.last_op == b.last_op && a.collective == b.collective && a.wire == b.wire &&
         a.dtype == b.dtype && a.bytes == b.bytes && a.elements == b.elements && a.suffix == b.suffix;
}

std::size_t hash_of(const Work& work) {
  std::size_t hash = 0;
  for (const int each : {static_cast<int>(work.kind), static_cast<int>(work.pass), work.stage, work.slice, work.block,
                         work.first_op, work.last_op, static_cast<int>(work.collective), static_cast<int>(work.wire)})
    hash = (hash ^ static_cast<unsigned>(each)) * 0x9E3779B97F4A7C15U;
  return hash;
}

// Writes the writers of a task's inputs and its control predecessors into `found`, ascending; returns their number.
using Control = std::span<const std::pair<TaskId, TaskId>>;
std::size_t predecessors_of(const TaskGraph& graph, TaskId id, Control control, TaskId* found) {
  TaskId* end = found;
  for (const BufferId in : graph.inputs[id])
    if (const auto writer = graph.writer(in)) *end++ = *writer;
  for (const auto& [before, after] : control) *end++ = before;
  std::sort(found, end);
  return static_cast<std::size_t>(std::unique(found, end) - found);
}

// `copies` of the rows one after another; values of copy i are shifted by i·stride.
Rows repeated(const Rows& rows, int copies, std::size_t stride) {
  Rows result;
  result.values.reserve(rows.values.size() * static_cast<std::size_t>(copies));
  for (int copy = 0; copy < copies; ++copy) {
    const auto offset = static_cast<std::uint32_t>(static_cast<std::size_t>(copy) * stride);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (const std::uint32_t value : rows[row]) result.values.push_back(value + offset);
      result.begin.push_back(static_cast<std::uint32_t>(result.values.size()));
    }
  }
  return result;
}

// An edge to the next step is a plain edge inside the window.
Rows with_carried(const TaskGraph& step, Rows predecessors, int steps) {
  const std::size_t count = step.tasks.size();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> added;
  for (int s = 1; s < steps; ++s) {
    const auto base = static_cast<std::uint32_t>(static_cast<std::size_t>(s) * count);
    for (const auto& [before, after] : step.carried)
      added.emplace_back(base + after, base - static_cast<std::uint32_t>(count) + before);
  }
  return with_added(predecessors, added);
}

}  // namespace

int GraphBuilder::work(const Work& work) {
  const std::size_t hash = hash_of(work);
  const auto [first, last] = known_works_.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (is_same(graph_.works[static_cast<std::size_t>(at->second)], work)) return at->second;
  const auto number = static_cast<int>(graph_.works.size());
  known_works_.emplace(hash, number);
  graph_.works.push_back(work);
  return number;
}

BufferId GraphBuilder::buffer(BufferKind kind, Wires wire, int rank, double bytes) {
  graph_.buffers.push_back({kind, wire, rank, bytes, none});
  return static_cast<BufferId>(graph_.buffers.size() - 1);
}

TaskId GraphBuilder::task(const Task& task, std::span<const BufferId> inputs, std::span<const BufferId> outputs) {
  const auto id = static_cast<TaskId>(graph_.tasks.size());
  if (id >= most_tasks_) throw std::length_error("more than " + std::to_string(most_tasks_) + " tasks");
  graph_.tasks.push_back(task);
  for (const auto& [rows, ids] : {std::pair{&graph_.inputs, inputs}, std::pair{&graph_.outputs, outputs}}) {
    rows->values.insert(rows->values.end(), ids.begin(), ids.end());
    rows->begin.push_back(static_cast<std::uint32_t>(rows->values.size()));
  }
  for (const BufferId out : outputs) graph_.buffers[out].writer = static_cast<std::int32_t>(id);
  return id;
}

void GraphBuilder::make_room(double times) {
  const auto reserve = [&](auto& list) {
    list.reserve(static_cast<std::size_t>(static_cast<double>(list.size()) * times));
  };
  reserve(graph_.tasks);
  reserve(graph_.buffers);
  for (Rows* rows : {&graph_.inputs, &graph_.outputs}) {
    reserve(rows->begin);
    reserve(rows->values);
  }
}

void GraphBuilder::late_output(TaskId task, BufferId buffer) {
  late_outputs_.emplace_back(task, buffer);
  graph_.buffers[buffer].writer = static_cast<std::int32_t>(task);
}

Rows with_added(const Rows& rows, std::vector<std::pair<std::uint32_t, std::uint32_t>>& added) {
  std::sort(added.begin(), added.end());
  Rows result;
  result.values.reserve(rows.values.size() + added.size());
  auto next = added.cbegin();
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    result.values.insert(result.values.end(), rows[row].begin(), rows[row].end());
    for (; next != added.cend() && next->first == row; ++next) result.values.push_back(next->second);
    result.begin.push_back(static_cast<std::uint32_t>(result.values.size()));
  }
  return result;
}

void GraphBuilder::close() {
  if (!late_outputs_.empty()) graph_.outputs = with_added(graph_.outputs, late_outputs_);
  std::sort(control_.begin(), control_.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : a.first < b.first;
  });
  const std::size_t count = graph_.tasks.size();
  // Controls of tasks before `id`. With the inputs of these tasks they bound the entries before those of `id`.
  const auto controls_before = [&](std::size_t id) {
    return std::lower_bound(control_.begin(), control_.end(), id,
                            [](const auto& pair, std::size_t task) { return pair.second < task; });
  };
  Rows& before = graph_.predecessors;
  before.begin.assign(count + 1, 0);
  before.values.resize(graph_.inputs.values.size() + control_.size());
  std::vector<std::uint32_t> found(count);
  parts_in_parallel(count, count, [&](std::size_t first, std::size_t last) {
    auto control = controls_before(first);
    for (std::size_t id = first; id < last; ++id) {
      const auto begin = control;
      while (control != control_.end() && control->second == id) ++control;
      const std::size_t place = graph_.inputs.begin[id] + static_cast<std::size_t>(begin - control_.begin());
      before.begin[id] = static_cast<std::uint32_t>(place);
      found[id] = static_cast<std::uint32_t>(
          predecessors_of(graph_, static_cast<TaskId>(id), {begin, control}, &before.values[place]));
    }
  });
  std::uint32_t end = 0;
  for (std::size_t id = 0; id < count; ++id) {  // close up
    const auto from = before.values.begin() + before.begin[id];
    std::copy(from, from + found[id], before.values.begin() + end);
    before.begin[id] = end;
    end += found[id];
  }
  before.begin[count] = end;
  before.values.resize(end);
  graph_.successors = transposed(before);
}

TaskGraph window_of(const TaskGraph& step, int steps) {
  if (steps < 1) throw std::invalid_argument("a window has at least one step");
  if (step.window != 1) throw std::invalid_argument("a window of windows");
  const std::size_t tasks = step.tasks.size(), buffers = step.buffers.size();
  TaskGraph window = step;
  window.window = steps;
  window.order.clear();
  for (int s = 1; s < steps; ++s) {
    const auto offset = static_cast<std::int32_t>(static_cast<std::size_t>(s) * tasks);
    window.tasks.insert(window.tasks.end(), step.tasks.begin(), step.tasks.end());
    for (std::size_t t = 0; t < tasks; ++t) window.tasks[static_cast<std::size_t>(offset) + t].step = s;
    window.buffers.insert(window.buffers.end(), step.buffers.begin(), step.buffers.end());
    for (std::size_t b = window.buffers.size() - buffers; b < window.buffers.size(); ++b)
      if (window.buffers[b].writer != none) window.buffers[b].writer += offset;
  }
  window.inputs = repeated(step.inputs, steps, buffers);
  window.outputs = repeated(step.outputs, steps, buffers);
  window.predecessors = with_carried(step, repeated(step.predecessors, steps, tasks), steps);
  window.successors = transposed(window.predecessors);
  window.compute_order = {};
  for (std::size_t rank = 0; rank < step.compute_order.size(); ++rank) {
    for (int s = 0; s < steps; ++s)
      for (const TaskId task : step.compute_order[rank])
        window.compute_order.values.push_back(task + static_cast<TaskId>(static_cast<std::size_t>(s) * tasks));
    window.compute_order.begin.push_back(static_cast<std::uint32_t>(window.compute_order.values.size()));
  }
  for (auto& [before, after] : window.carried)
    before += static_cast<TaskId>(static_cast<std::size_t>(steps - 1) * tasks);
  return window;
}

}  // namespace slipway::schedules
