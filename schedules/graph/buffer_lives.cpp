#include "schedules/graph/buffer_lives.h"

#include <algorithm>
#include <numeric>

namespace slipway {

BufferLives::BufferLives(const TaskGraph& graph, const Timeline& timeline, int step)
    : graph_(graph),
      timeline_(timeline),
      base_(static_cast<std::size_t>(step) * graph.tasks.size()),
      last_reader_(graph.buffers.size()),
      is_layer_input_(graph.buffers.size()) {
  for (std::size_t b = 0; b < graph.buffers.size(); ++b)
    last_reader_[b] = static_cast<TaskId>(std::max(graph.buffers[b].writer, 0));
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    const bool recomputes = pass_of(task) == Pass::recompute;
    for (const BufferId b : graph.inputs[task]) {
      if (end(task) > end(last_reader_[b])) last_reader_[b] = task;
      const std::int32_t writer = graph.buffers[b].writer;
      if (recomputes && writer != none && pass_of(static_cast<TaskId>(writer)) != Pass::recompute) is_layer_input_[b] = true;
    }
  }
}

bool BufferLives::is_handed_over(const Buffer& buffer, TaskId reader) const {
  if (buffer.kind != BufferKind::value || static_cast<std::int32_t>(reader) == buffer.writer) return false;
  const auto out = graph_.outputs[reader];
  return std::any_of(out.begin(), out.end(),
                     [&](BufferId b) { return graph_.buffers[b].kind == BufferKind::saved; });
}

double BufferLives::freed(BufferId b) const {
  const TaskId reader = last_reader_[b];
  return std::max(is_handed_over(graph_.buffers[b], reader) ? start(reader) : end(reader), taken(b));
}

Rows BufferLives::by_rank() const {
  const auto is_counted = [](const Buffer& buffer) { return buffer.bytes > 0 && buffer.writer != none; };
  Rows rows;
  rows.begin.assign(graph_.static_bytes.size() + 1, 0);
  for (const Buffer& buffer : graph_.buffers)
    if (is_counted(buffer)) ++rows.begin[static_cast<std::size_t>(buffer.rank) + 1];
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  rows.values.resize(rows.begin.back());
  std::vector<std::uint32_t> next(rows.begin.begin(), rows.begin.end() - 1);
  for (BufferId b = 0; b < graph_.buffers.size(); ++b)
    if (is_counted(graph_.buffers[b])) rows.values[next[static_cast<std::size_t>(graph_.buffers[b].rank)]++] = b;
  return rows;
}

}  // namespace slipway
