#include "schedules/lower/filled_window.h"

#include <algorithm>
#include <utility>

#include "schedules/lower/graph_builder.h"

namespace slipway::schedules {
namespace {

std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

void append_row(Rows& rows, const std::vector<std::uint32_t>& values) {
  rows.values.insert(rows.values.end(), values.begin(), values.end());
  rows.begin.push_back(static_cast<std::uint32_t>(rows.values.size()));
}

// What a window carries from step to step stands behind its other predecessors.
void sort_rows(Rows& rows) {
  for (std::size_t row = 0; row < rows.size(); ++row)
    std::sort(rows.values.begin() + rows.begin[row], rows.values.begin() + rows.begin[row + 1]);
}

template <typename List, typename More>
void append(List& list, const More& more) {
  list.insert(list.end(), more.begin(), more.end());
}

template <typename List>
auto behind(const List& all, const List& own) {
  return std::vector(all.begin() + std::ssize(own), all.end());
}

}  // namespace

void add_bubble_work(TaskGraph& window, const PlacedBubbleWork& placed) {
  for (std::size_t rank = 0; rank < placed.weights.size(); ++rank)
    window.static_bytes[rank].weights = placed.weights[rank];
  append(window.works, placed.works);
  append(window.communicators, placed.communicators);
  sort_rows(window.predecessors);
  for (const PlacedTask& each : placed.tasks) {
    window.tasks.push_back(each.task);
    append_row(window.inputs, sorted(each.reads));
    append_row(window.predecessors, sorted(each.after));
    append_row(window.outputs, {});
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> written;
  for (const Buffer& buffer : placed.buffers) {
    written.emplace_back(static_cast<TaskId>(buffer.writer), static_cast<BufferId>(window.buffers.size()));
    window.buffers.push_back(buffer);
  }
  window.outputs = with_added(window.outputs, written);
  window.successors = transposed(window.predecessors);
  window.order.clear();
}

PlacedBubbleWork bubble_work_in(const TaskGraph& filled, const TaskGraph& window) {
  PlacedBubbleWork placed{behind(filled.works, window.works),
                          behind(filled.communicators, window.communicators),
                          {},
                          behind(filled.buffers, window.buffers),
                          {}};
  for (std::size_t id = window.tasks.size(); id < filled.tasks.size(); ++id)
    placed.tasks.push_back({filled.tasks[id],
                            {filled.inputs[id].begin(), filled.inputs[id].end()},
                            {filled.predecessors[id].begin(), filled.predecessors[id].end()}});
  for (const StaticBytes& bytes : filled.static_bytes) placed.weights.push_back(bytes.weights);
  return placed;
}

}  // namespace slipway::schedules
