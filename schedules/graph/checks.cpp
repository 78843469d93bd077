#include "schedules/graph/checks.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "schedules/graph/findings.h"
#include "schedules/graph/grid.h"
#include "schedules/graph/parallel.h"

namespace slipway {
namespace {

std::string gibibytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", bytes / (1024.0 * 1024.0 * 1024.0));
  return text;
}

// Two tasks have the same label iff stage, pass, micro-batch, slice and suffix agree, in the same step. Interning the
// part that comes from the work leaves integers to compare, so that no label is spelled out.
struct WorkLabels {
  std::uint32_t in_micro_batch, once;  // once per step there is no pass
};

std::vector<WorkLabels> interned_labels(const TaskGraph& graph, std::size_t& count) {
  std::unordered_map<std::string, std::uint32_t> numbers;
  const auto number = [&numbers](const std::string& text) {
    return numbers.emplace(text, static_cast<std::uint32_t>(numbers.size())).first->second;
  };
  std::vector<WorkLabels> labels;
  for (const Work& work : graph.works) {
    const std::string stage = work.stage == none ? "" : std::to_string(work.stage);
    labels.push_back({number(stage + letter_of(work.pass) + work.suffix), number(stage + work.suffix)});
  }
  count = numbers.size();
  return labels;
}

auto label_fields(const Task& task) { return std::tuple(task.micro_batch, task.slice, task.step); }

// Tasks by what their label has from the work, then by the rest of it, then by id.
Rows tasks_by_label(const TaskGraph& graph) {
  std::size_t count = 0;
  const std::vector<WorkLabels> labels = interned_labels(graph, count);
  const auto row_of = [&](const Task& task) -> std::size_t {
    const WorkLabels& label = labels[static_cast<std::size_t>(task.work)];
    return task.micro_batch == none ? label.once : label.in_micro_batch;
  };
  Rows rows;
  rows.begin.assign(count + 1, 0);
  for (const Task& task : graph.tasks) ++rows.begin[row_of(task) + 1];
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  rows.values.resize(graph.tasks.size());
  std::vector<std::uint32_t> next = rows.begin;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) rows.values[next[row_of(graph.tasks[id])]++] = id;
  const auto earlier = [&](TaskId a, TaskId b) {
    return label_fields(graph.tasks[a]) < label_fields(graph.tasks[b]);
  };
  for (std::size_t row = 0; row < count; ++row) {  // lowered in the order of micro-batches: mostly sorted already
    const auto first = rows.values.begin() + rows.begin[row], last = rows.values.begin() + rows.begin[row + 1];
    if (!std::is_sorted(first, last, earlier)) std::stable_sort(first, last, earlier);
  }
  return rows;
}

}  // namespace

std::vector<std::uint32_t> positions_of(const TaskGraph& graph) {
  constexpr std::uint32_t unset = ~0U;
  if (graph.order.size() != graph.tasks.size()) return {};
  std::vector<std::uint32_t> position(graph.tasks.size(), unset);
  for (std::uint32_t at = 0; at < graph.order.size(); ++at) {
    const TaskId id = graph.order[at];
    if (id >= position.size() || position[id] != unset) return {};
    position[id] = at;
  }
  return position;
}

std::string spoken(const TaskGraph& graph, TaskId task) {
  const auto members = members_of(graph, task);
  std::string text = label_of(graph, task) + (members.size() == 1 ? " on rank " : " on ranks ");
  constexpr std::size_t most = 8;
  for (std::size_t i = 0; i < std::min(members.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(members[i]);
  }
  if (members.size() > most) text += " and " + std::to_string(members.size() - most) + " more";
  return text;
}

std::vector<Violation> check_memory(const std::vector<RankMemory>& memory,
                                    const std::vector<double>& capacity) {
  Findings findings(7);
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    if (fits(memory[rank], capacity[rank])) continue;
    findings.add({}, "rank " + std::to_string(rank) + " needs " + gibibytes(memory[rank].peak) + " of " +
                         gibibytes(capacity[rank]) + ", most of it during " + memory[rank].peak_task);
  }
  return findings.take();
}

std::vector<Violation> check_labels(const TaskGraph& graph) {
  Findings findings(9);
  const Rows rows = tasks_by_label(graph);
  std::int32_t ranks = rank_count(graph.layout);
  for (const Task& task : graph.tasks) ranks = std::max(ranks, task.rank + 1);
  for (const Communicator& group : graph.communicators) {
    for (const std::int32_t rank : group.ranks) ranks = std::max(ranks, rank + 1);
  }
  // owner[rank] is the place of the last task seen there; it shares the label iff it is in the same run of tasks.
  const std::size_t nowhere = rows.values.size();
  std::vector<std::size_t> owner(static_cast<std::size_t>(ranks), nowhere);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::size_t run = rows.begin[row];
    for (std::size_t i = run; i < rows.begin[row + 1] && !findings.full(); ++i) {
      const TaskId id = rows.values[i];
      if (label_fields(graph.tasks[id]) != label_fields(graph.tasks[rows.values[run]])) run = i;
      for (const std::int32_t rank : members_of(graph, id)) {
        std::size_t& seen = owner[static_cast<std::size_t>(rank)];
        if (seen >= run && seen < i) {
          findings.add({rows.values[seen], id},
                       "two tasks of rank " + std::to_string(rank) + " are called " + label_of(graph, id));
        }
        seen = i;
      }
    }
  }
  return findings.take();
}

std::vector<Violation> check_graph(const TaskGraph& graph) {
  std::vector<Violation> all;
  const auto collect_all = [&](const std::vector<std::function<std::vector<Violation>()>>& checks) {
    std::vector<std::vector<Violation>> found(checks.size());
    queued_in_parallel(checks.size(), graph.tasks.size(), [&](std::size_t i) { found[i] = checks[i](); });
    for (auto& more : found)
      all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  const std::vector<Lane> lanes =
      graph.order.size() == graph.tasks.size() ? lanes_of(graph) : std::vector<Lane>{};
  collect_all({[&] { return check_acyclic(graph); }, [&] { return check_lane_order(graph, lanes); }});
  if (!all.empty()) return all;  // the others take the order for granted
  const bool is_window = graph.window > 1;  // the step that it repeats was checked (fill.cpp)
  collect_all({[&] { return is_window ? std::vector<Violation>{} : check_passes(graph); },
               [&] { return check_labels(graph); }, [&] { return check_buffers(graph); },
               [&] { return check_rendezvous(graph, lanes); }, [&] { return check_collectives(graph, lanes); },
               [&] { return check_transfers(graph); }});
  return all;
}

std::string describe(const TaskGraph& graph, const Violation& violation) {
  constexpr int columns_around = 8;
  const std::string head = "I" + std::to_string(violation.invariant) + ": " + violation.message + "\n";
  if (violation.culprits.empty()) return head;
  return head + grid(graph, {.ranks = {}, .culprits = violation.culprits, .around = columns_around});
}

}  // namespace slipway
