#include "schedules/time/beside.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace slipway::schedules {
namespace {

bool is_of_data_axis(const TaskGraph& graph, TaskId task) {
  const WorkKind kind = graph.work(task).kind;
  return kind == WorkKind::grad_reduce || kind == WorkKind::parameter_gather;
}

// Tokens on their way to experts and back.
bool moves_tokens(const TaskGraph& graph, TaskId task) {
  const Work& work = graph.work(task);
  return work.kind == WorkKind::wire_collective && work.collective == Collective::all_to_all;
}

constexpr auto nowhere = std::numeric_limits<std::uint32_t>::max();

// The place of each compute task in its rank's order.
std::vector<std::uint32_t> places_of(const TaskGraph& graph) {
  std::vector<std::uint32_t> place(graph.tasks.size(), nowhere);
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank) {
    const auto list = graph.compute_order[rank];
    for (std::uint32_t i = 0; i < list.size(); ++i) place[list[i]] = i;
  }
  return place;
}

bool runs_passes(const TaskGraph& graph, TaskId task) { return graph.work(task).kind == WorkKind::segment; }

// Writes the last task of each member that makes what a message carries. Sums over the tensor group, which some gradients
// pass first, are none, and are of other ranks too.
void find_makers(const TaskGraph& graph, TaskId message, const std::vector<std::uint32_t>& place,
                 std::vector<TaskId>& makers) {
  const auto& members = graph.communicator(message).ranks;
  const auto is_member = [&](TaskId task) {
    return std::find(members.begin(), members.end(), graph.tasks[task].rank) != members.end();
  };
  const auto is_sum = [&](TaskId task) {
    const WorkKind kind = graph.work(task).kind;
    return kind == WorkKind::norm_grad_reduce || kind == WorkKind::kv_grad_reduce;
  };
  makers.clear();
  const auto add = [&](const auto& self, TaskId task) -> void {
    for (const TaskId before : graph.predecessors[task])
      if (place[before] != nowhere && (task == message || is_member(before)))
        makers.push_back(before);
      else if (place[before] == nowhere && is_sum(before))
        self(self, before);
  };
  add(add, message);
  const auto key = [&](TaskId task) { return std::pair(graph.tasks[task].rank, place[task]); };
  std::sort(makers.begin(), makers.end(), [&](TaskId a, TaskId b) { return key(a) > key(b); });
  const auto of_one_rank = [&](TaskId a, TaskId b) { return graph.tasks[a].rank == graph.tasks[b].rank; };
  makers.erase(std::unique(makers.begin(), makers.end(), of_one_rank), makers.end());
}

// The messages that run beside a rank's list, one after the other, and what its products lose meanwhile.
class BesideQueue {
 public:
  explicit BesideQueue(std::size_t tasks) : place_(tasks) {}

  bool empty() const { return first_ == begun_.size(); }
  void clear() { begin_anew(begun_.size()); }

  void begin(TaskId message, double seconds) {
    place_[message] = static_cast<std::uint32_t>(begun_.size());
    begun_.push_back(message), seconds_.push_back(seconds);
  }

  // A task waits for a message: it is over, and so are those before it.
  void end_with(TaskId message) {
    const std::size_t at = place_[message];
    if (at >= first_ && at < begun_.size() && begun_[at] == message) begin_anew(at + 1);
  }

  // A product runs for `limit` if messages run beside it all the time; of that, it loses `share`.
  void run(TaskId task, double share, double limit, const std::function<void(const LossBeside&)>& visit) {
    double sum = seconds_[first_] - used_;
    for (std::size_t at = first_ + 1; sum <= limit && at < begun_.size(); ++at) sum += seconds_[at];
    if (sum <= limit) {
      visit({task, share * sum, std::span(begun_).subspan(origin_), products_});
      return clear();
    }
    visit({task, share * limit, {}, {}});
    products_.push_back(task);
    used_ += limit;
    for (; first_ + 1 < begun_.size() && used_ >= seconds_[first_]; ++first_) used_ -= seconds_[first_];
  }

 private:
  // At message `at` of those begun, of which nothing is over.
  void begin_anew(std::size_t at) {
    first_ = origin_ = at;
    used_ = 0;
    products_.clear();
    if (at < begun_.size()) return;
    begun_.clear(), seconds_.clear();
    first_ = origin_ = 0;
  }

  std::vector<TaskId> begun_;
  std::vector<double> seconds_;       // of each
  std::vector<std::uint32_t> place_;  // by task: in begun_, if it is there
  std::size_t first_ = 0;             // that is not over
  double used_ = 0;                   // s of it that are
  std::size_t origin_ = 0;            // the first one since nothing ran; since then:
  std::vector<TaskId> products_;      // that the messages outlasted
};

}  // namespace

// A reduction runs behind the task after the one that made its gradient; a gather behind the task before the one that
// needs its weights. Where that task itself waits for the message, nothing runs. An all-to-all of experts runs behind the
// task after the one that made its tokens, if that is of another micro-batch, as in a pair, or a weight gradient.
std::vector<Beside> messages_beside(const TaskGraph& graph) {
  std::vector<Beside> pairs;
  const std::vector<std::uint32_t> place = places_of(graph);
  std::vector<TaskId> makers;
  for (TaskId message = 0; message < graph.tasks.size(); ++message) {
    if (graph.tasks[message].communicator == none) continue;
    const bool tokens = moves_tokens(graph, message);
    if (!tokens && !is_of_data_axis(graph, message)) continue;
    const auto after = graph.successors[message];
    const auto waits = [&](TaskId task) { return std::find(after.begin(), after.end(), task) != after.end(); };
    bool found = false;
    find_makers(graph, message, place, makers);
    for (const TaskId maker : makers) {
      const auto list = graph.compute_order[graph.tasks[maker].rank];
      if (place[maker] + 1 >= list.size()) continue;
      const TaskId next = list[place[maker] + 1];
      const bool makes = runs_passes(graph, maker) || graph.work(maker).kind == WorkKind::worker_norm;
      const bool counts = !tokens || graph.tasks[next].micro_batch != graph.tasks[maker].micro_batch ||
                          graph.work(next).pass == Pass::weight_grad;
      if (makes && runs_passes(graph, next) && !waits(next) && counts) pairs.push_back({next, message});
      found = found || makes;
    }
    if (tokens) continue;
    for (const TaskId user : after) {
      if (found || place[user] == nowhere || place[user] == 0) continue;
      const TaskId previous = graph.compute_order[graph.tasks[user].rank][place[user] - 1];
      if (runs_passes(graph, previous) && !waits(previous)) pairs.push_back({previous, message});
    }
  }
  return pairs;
}

void each_loss_beside(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations, bool included,
                      const std::function<void(const LossBeside&)>& visit) {
  std::vector<Beside> pairs = messages_beside(graph);
  if (pairs.empty()) return;
  const auto by_task = [](const Beside& a, const Beside& b) { return a.task < b.task; };
  std::stable_sort(pairs.begin(), pairs.end(), by_task);
  BesideQueue queue(graph.tasks.size());
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank, queue.clear()) {
    if (graph.compute_order[rank].empty()) continue;
    const Machine& machine = cluster.groups[place_of(cluster, static_cast<int>(rank)).group].machine;
    const double longer = machine.constants.beside, share = longer / (1 + longer);
    if (!machine.trained || !(longer > 0)) continue;
    for (const TaskId task : graph.compute_order[rank]) {
      if (graph.tasks[task].kind == TaskKind::optimizer) queue.clear();
      if (!runs_passes(graph, task)) continue;
      if (!queue.empty())
        for (const TaskId before : graph.predecessors[task])
          if (graph.tasks[before].communicator != none) queue.end_with(before);
      for (auto at = std::lower_bound(pairs.begin(), pairs.end(), Beside{task, 0}, by_task);
           at != pairs.end() && at->task == task; ++at)
        queue.begin(at->message, durations[at->message]);
      if (queue.empty()) continue;
      const double limit = durations[task] * (included ? 1 : 1 + longer);
      queue.run(task, share, limit, visit);
    }
  }
}

void add_losses_beside(const TaskGraph& graph, const PricedCluster& cluster, Durations& durations) {
  const auto add = [&](const LossBeside& loss) { durations[loss.task] += loss.seconds; };
  each_loss_beside(graph, cluster, durations, false, add);
}

}  // namespace slipway::schedules
