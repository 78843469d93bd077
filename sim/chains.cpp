#include "sim/chains.h"

#include <algorithm>
#include <limits>

#include "schedules/check/findings.h"
#include "schedules/time/host_issue.h"

namespace slipway::sim {
namespace {

constexpr auto nobody = std::numeric_limits<std::uint32_t>::max();

class Finder {
 public:
  Finder(const TaskGraph& graph, const TaskForms& forms)
      : graph_(graph), forms_(forms), position_(graph.tasks.size(), nobody), carries_(graph.tasks.size()) {
    const auto& order = graph.compute_order.values;
    for (std::uint32_t at = 0; at < order.size(); ++at) position_[order[at]] = at;
    for (const auto& [before, after] : graph.carried) carries_[before] = carries_[after] = true;
  }

  // Every chain's tasks, in the order in which they run.
  Rows run() {
    Rows chains;
    std::vector<TaskId> links(graph_.communicators.size(), nobody);  // the last link on each communicator
    std::vector<std::vector<TaskId>> open(graph_.communicators.size()),
        beside(graph_.communicators.size());  // since that link
    const auto close = [&](std::size_t c) {
      if (!open[c].empty()) {
        chains.values.insert(chains.values.end(), open[c].begin(), open[c].end());
        chains.begin.push_back(static_cast<std::uint32_t>(chains.values.size()));
      }
      open[c].clear();
      beside[c].clear();
      links[c] = nobody;
    };
    for (const TaskId id : graph_.order) {
      if (graph_.tasks[id].communicator == none) continue;
      const auto c = static_cast<std::size_t>(graph_.tasks[id].communicator);
      if (!is_link(id)) {
        if (links[c] != nobody && may_be_beside(id, links[c]))
          beside[c].push_back(id);
        else
          close(c);
        continue;
      }
      if (links[c] == nobody || !append_between(links[c], beside[c], id, open[c])) close(c);
      beside[c].clear();
      links[c] = id;
    }
    for (std::size_t c = 0; c < open.size(); ++c) close(c);
    return chains;
  }

 private:
  bool is_compute(TaskId id) const { return position_[id] != nobody; }
  // The next task on the same compute lane; none at its end.
  TaskId next_on_lane(TaskId id) const {
    const std::size_t at = position_[id] + std::size_t{1};
    if (at == graph_.compute_order.values.size()) return nobody;
    const TaskId next = graph_.compute_order.values[at];
    return graph_.tasks[next].rank == graph_.tasks[id].rank ? next : nobody;
  }
  bool waits_for(TaskId id, TaskId before) const {
    const auto list = graph_.predecessors[id];
    return std::find(list.begin(), list.end(), before) != list.end();
  }

  bool has_known_duration(TaskId id) const {
    return graph_.tasks[id].kind == TaskKind::collective && forms_.tasks[id].bytes == 0 && !carries_[id];
  }

  // True if the hosts' issue of both counts from the same synchronisation, so that all dates are known with the first.
  bool count_alike(TaskId link, TaskId id) const {
    if (forms_.host->empty()) return true;
    const auto of_link = forms_.host->of(link), of_id = forms_.host->of(id);
    const auto is_alike = [&](const HostIssue::Share& share) {
      return !share.waits && share.since == of_link.front().since;
    };
    return std::all_of(of_link.begin(), of_link.end(), is_alike) && std::all_of(of_id.begin(), of_id.end(), is_alike);
  }

  // True for a collective of known duration behind `link` that waits for tasks of the link's ranks, and for which their
  // later tasks wait.
  bool may_be_beside(TaskId id, TaskId link) const {
    const auto of_ranks = graph_.predecessors[link];
    const auto is_of_them = [&](TaskId other) {
      return is_compute(other) && std::any_of(of_ranks.begin(), of_ranks.end(), [&](TaskId task) {
               return graph_.tasks[task].rank == graph_.tasks[other].rank;
             });
    };
    const auto before = graph_.predecessors[id], after = graph_.successors[id];
    return has_known_duration(id) && count_alike(link, id) && std::all_of(before.begin(), before.end(), is_of_them) &&
           std::all_of(after.begin(), after.end(), is_of_them);
  }

  // True for a collective of known duration that waits for one task of each member, whose next task waits for it.
  bool is_link(TaskId id) const {
    if (!has_known_duration(id)) return false;
    const auto before = graph_.predecessors[id];
    return !before.empty() && std::all_of(before.begin(), before.end(), [&](TaskId task) {
      if (!is_compute(task)) return false;
      const TaskId next = next_on_lane(task);
      return next != nobody && waits_for(next, id);
    });
  }

  // True if the lane of the same rank delays `after` too, which waits for `task` or follows it.
  bool is_later_on_lane(TaskId task, TaskId after) const {
    return is_compute(after) && graph_.tasks[after].rank == graph_.tasks[task].rank;
  }

  // The same, or it waits for a later task of that lane too: a gather of what `task` made long before.
  bool is_kept_waiting(TaskId task, TaskId after) const {
    const auto before = graph_.predecessors[after];
    return is_later_on_lane(task, after) || std::any_of(before.begin(), before.end(), [&](TaskId other) {
             return is_later_on_lane(task, other) && position_[other] > position_[task];
           });
  }

  // True if no task outside sees the end of `first`, a link whose chain goes on.
  bool is_hidden(TaskId first) const {
    const auto before = graph_.predecessors[first], after = graph_.successors[first];
    return std::all_of(after.begin(), after.end(), [&](TaskId next) {
      return std::any_of(before.begin(), before.end(), [&](TaskId task) { return is_later_on_lane(task, next); });
    });
  }

  // True if a task on the chain's communicator is in the chain, or the order there puts it before the chain or delays
  // it.
  bool may_be_inside(TaskId id, std::int32_t communicator) const {
    const auto before = graph_.predecessors[id], after = graph_.successors[id];
    const auto is_beside = [&](TaskId task) { return graph_.tasks[task].communicator == communicator; };
    return !carries_[id] && std::all_of(before.begin(), before.end(), [&](TaskId task) {
      return is_beside(task) || is_later_on_lane(task, id);
    }) && std::all_of(after.begin(), after.end(), [&](TaskId task) {
      return is_beside(task) || is_kept_waiting(id, task);
    });
  }

  // Appends what runs from the end of link `first` to that of link `second`, also collectives `beside` tasks. An empty
  // chain begins with `first`. Returns false, and appends nothing, if another task could see what is between them.
  bool append_between(TaskId first, const std::vector<TaskId>& beside, TaskId second, std::vector<TaskId>& chain) {
    const auto from = graph_.predecessors[first], to = graph_.predecessors[second];
    if (from.size() != to.size() || !is_hidden(first) || !count_alike(first, second)) return false;
    const std::size_t size = chain.size();
    if (chain.empty()) chain.push_back(first);
    const auto begin = static_cast<std::ptrdiff_t>(chain.size());
    for (const TaskId last : to) {
      const auto same_rank = std::find_if(from.begin(), from.end(), [&](TaskId task) {
        return graph_.tasks[task].rank == graph_.tasks[last].rank && position_[task] < position_[last];
      });
      bool inside = same_rank != from.end();
      for (TaskId id = inside ? next_on_lane(*same_rank) : nobody; inside; id = next_on_lane(id)) {
        inside = may_be_inside(id, graph_.tasks[second].communicator) && count_alike(first, id);
        chain.push_back(id);
        if (id == last) break;
      }
      if (inside) continue;
      chain.resize(size);
      return false;
    }
    if (!beside.empty()) {
      if (when_.empty()) when_ = positions_of(graph_);
      chain.insert(chain.end(), beside.begin(), beside.end());
      std::sort(chain.begin() + begin, chain.end(), [&](TaskId a, TaskId b) { return when_[a] < when_[b]; });
    }
    chain.push_back(second);
    return true;
  }

  const TaskGraph& graph_;
  const TaskForms& forms_;
  std::vector<std::uint32_t> position_;  // of compute tasks, in compute_order
  std::vector<std::uint32_t> when_;      // place in the global order; made on first use
  std::vector<bool> carries_;            // to or from another step
};

}  // namespace

Chains find_chains(const TaskGraph& graph, const TaskForms& forms, bool speeds_vary) {
  const auto count = static_cast<std::uint32_t>(graph.tasks.size());
  const Rows chains = speeds_vary ? Rows{} : Finder(graph, forms).run();
  Chains result;
  result.unit_of.assign(count, nobody);
  for (std::uint32_t chain = 0; chain < chains.size(); ++chain)
    for (const TaskId task : chains[chain]) result.unit_of[task] = chain;
  // Units in the order of their first tasks' ids, so that equal dates have the order that they have without chains.
  std::vector<std::uint32_t> number(chains.size(), nobody);
  result.tasks.values.reserve(count);
  for (TaskId id = 0; id < count; ++id) {
    const std::uint32_t chain = result.unit_of[id];
    if (chain != nobody && chains[chain].front() != id) continue;
    const auto unit = static_cast<std::uint32_t>(result.tasks.size());
    if (chain == nobody) {
      result.unit_of[id] = unit;
      result.tasks.values.push_back(id);
    } else {
      number[chain] = unit;
      result.tasks.values.insert(result.tasks.values.end(), chains[chain].begin(), chains[chain].end());
    }
    result.tasks.begin.push_back(static_cast<std::uint32_t>(result.tasks.values.size()));
  }
  for (std::uint32_t chain = 0; chain < chains.size(); ++chain)
    for (const TaskId task : chains[chain]) result.unit_of[task] = number[chain];
  return result;
}

}  // namespace slipway::sim
