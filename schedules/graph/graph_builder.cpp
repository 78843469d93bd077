#include "schedules/graph/graph_builder.h"

#include <algorithm>

namespace slipway {

int GraphBuilder::work(const Work& work) {
  const WorkKey key{static_cast<int>(work.kind),
                    static_cast<int>(work.pass),
                    work.stage,
                    work.slice,
                    work.block,
                    work.first_op,
                    work.last_op,
                    static_cast<int>(work.collective),
                    work.wire,
                    static_cast<int>(work.dtype),
                    work.bytes,
                    work.elements,
                    work.suffix};
  const auto [at, is_new] = known_works_.try_emplace(key, static_cast<int>(graph_.works.size()));
  if (is_new) graph_.works.push_back(work);
  return at->second;
}

BufferId GraphBuilder::buffer(BufferKind kind, Wires wire, int rank, double bytes) {
  graph_.buffers.push_back({kind, wire, rank, bytes, none});
  return static_cast<BufferId>(graph_.buffers.size() - 1);
}

TaskId GraphBuilder::task(const Task& task, std::span<const BufferId> inputs,
                          std::span<const BufferId> outputs) {
  const auto id = static_cast<TaskId>(graph_.tasks.size());
  graph_.tasks.push_back(task);
  for (const auto& [rows, ids] : {std::pair{&graph_.inputs, inputs}, std::pair{&graph_.outputs, outputs}}) {
    rows->values.insert(rows->values.end(), ids.begin(), ids.end());
    rows->begin.push_back(static_cast<std::uint32_t>(rows->values.size()));
  }
  for (const BufferId out : outputs) graph_.buffers[out].writer = static_cast<std::int32_t>(id);
  return id;
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
  Rows& before = graph_.predecessors;
  before.begin.assign(1, 0);
  before.begin.reserve(graph_.tasks.size() + 1);
  before.values.clear();
  auto control = control_.cbegin();
  std::vector<TaskId> found;
  for (TaskId id = 0; id < graph_.tasks.size(); ++id) {
    found.clear();
    for (const BufferId in : graph_.inputs[id]) {
      if (graph_.buffers[in].writer != none)
        found.push_back(static_cast<TaskId>(graph_.buffers[in].writer));
    }
    for (; control != control_.cend() && control->second == id; ++control) found.push_back(control->first);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    before.values.insert(before.values.end(), found.begin(), found.end());
    before.begin.push_back(static_cast<std::uint32_t>(before.values.size()));
  }
  graph_.successors = transposed(before);
}

}  // namespace slipway
