#include "schedules/graph/window.h"

#include <stdexcept>

#include "schedules/graph/graph_builder.h"

namespace slipway {
namespace {

// `copies` of the rows one after another; values of copy i are moved by i·stride.
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

// What one step carries to the next is a plain edge inside the window.
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
        window.compute_order.values.push_back(task +
                                              static_cast<TaskId>(static_cast<std::size_t>(s) * tasks));
    window.compute_order.begin.push_back(static_cast<std::uint32_t>(window.compute_order.values.size()));
  }
  for (auto& [before, after] : window.carried)
    before += static_cast<TaskId>(static_cast<std::size_t>(steps - 1) * tasks);
  return window;
}

}  // namespace slipway
