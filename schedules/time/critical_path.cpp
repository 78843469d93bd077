#include "schedules/time/critical_path.h"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>

#include "schedules/time/beside.h"
#include "schedules/time/host_issue.h"
#include "schedules/time/link_path.h"
#include "schedules/time/message_price.h"
#include "schedules/time/metrics.h"
#include "schedules/time/overlap.h"
#include "schedules/time/replay.h"
#include "schedules/time/waits.h"
#include "schedules/time/work_price.h"

namespace slipway::schedules {
namespace {

constexpr auto nothing = std::numeric_limits<std::uint32_t>::max();

// The time that a task loses beside messages (LossBeside), as tasks with the number of times that each counts.
struct LostPart {
  PathTerm::Kind kind;
  TaskId task;
  int count;
};
std::vector<std::vector<LostPart>> lost_by_task(const TaskGraph& graph, const PricedCluster& cluster,
                                                const Durations& durations) {
  std::vector<std::vector<LostPart>> lost(graph.tasks.size());
  each_loss_beside(graph, cluster, durations, true, [&](const LossBeside& loss) {
    std::vector<LostPart>& parts = lost[loss.task];
    if (loss.messages.empty()) parts.push_back({PathTerm::Kind::outlasted, loss.task, 1});
    for (const TaskId message : loss.messages) parts.push_back({PathTerm::Kind::beside, message, 1});
    for (const TaskId product : loss.products) parts.push_back({PathTerm::Kind::outlasted, product, -1});
  });
  return lost;
}

class Walk {
 public:
  Walk(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations, const Timeline& timeline,
       const PeriodicTimeline* periodic)
      : graph_(graph),
        cluster_(cluster),
        durations_(durations),
        timeline_(timeline),
        periodic_(periodic),
        waits_(graph),
        lost_(lost_by_task(graph, cluster, durations)),
        count_(graph.tasks.size()),
        hosts_(durations.host, timeline.steps) {
    for (std::size_t step = 0; step < static_cast<std::size_t>(timeline.steps); ++step)
      for (const TaskId id : graph.order) hosts_.begin(step, id, start(step, id));
  }

  std::vector<PathTerm> run() {
    const std::size_t step = measured_step(timeline_);
    const std::int32_t rank = slowest_rank(step);
    const TaskId first = graph_.compute_order[rank].front();
    from_ = start(step, first);
    TaskId at = first;
    std::size_t in = step + 1;
    double date = start(in, first);
    set_periods(step, date);
    while (date > from_) std::tie(in, at, date) = back(in, at, date);
    std::vector<PathTerm> terms;
    for (const auto& [key, count] : counts_)
      terms.push_back(
          {std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), count, 0, std::get<4>(key)});
    for (const auto& [place, sum] : bubble_work_)
      terms.push_back({PathTerm::Kind::task, place.first, place.second, 0, sum.count, sum.seconds / sum.count});
    return terms;
  }

 private:
  using Place = std::tuple<std::size_t, TaskId, double>;  // step, task, and its start
  double start(std::size_t step, TaskId task) const { return timeline_.start[step * count_ + task]; }
  double end(std::size_t step, TaskId task) const { return timeline_.end[step * count_ + task]; }

  std::int32_t slowest_rank(std::size_t step) const {
    std::int32_t slowest = none;
    double longest = -1;
    for (std::size_t rank = 0; rank < graph_.compute_order.size(); ++rank) {
      const auto list = graph_.compute_order[rank];
      if (list.empty()) continue;
      const double period = start(step + 1, list.front()) - start(step, list.front());
      if (period > longest) longest = period, slowest = static_cast<std::int32_t>(rank);
    }
    if (slowest == none) throw std::logic_error("a step without tasks has no critical path");
    return slowest;
  }

  // Periods [first, last) of the measured step count more than once.
  void set_periods(std::size_t step, double until) {
    if (periodic_ == nullptr || periodic_->left_out == 0) return;
    const double last = periodic_->steps[step].until_s;
    constexpr int most = 8;
    int periods = 0;
    while (periods < most && last - (periods + 1) * periodic_->period_s > from_) ++periods;
    if (periods == 0 || last > until) return;
    repeated_ = {last - periods * periodic_->period_s, last};
    weight_ = static_cast<double>(periodic_->left_out) / periods;
  }

  // The task that starts at `date` is on the path: adds the task that ended then, and goes to its start.
  Place back(std::size_t step, TaskId task, double date) {
    std::size_t its_step = step;
    TaskId cause = nothing;
    waits_.each(step, task, [&](std::size_t in, TaskId before, Waits::Reason) {
      if (cause == nothing && end(in, before) == date) its_step = in, cause = before;
    });
    const bool is_message = graph_.tasks[task].communicator != none;
    if (cause == nothing) return back_by_host(step, task, is_message, date);
    const double begun = start(its_step, cause);
    const Task& of = graph_.tasks[cause];
    if (of.communicator == none && date > begun + durations_[cause]) return back_by_host(its_step, cause, true, date);
    add_task(cause, begun, date);
    return {its_step, cause, begun};
  }

  // The host of a member was late: its launches since its last synchronisation, with those of the task or up to it.
  Place back_by_host(std::size_t step, TaskId task, bool with_task, double date) {
    if (durations_.host.empty()) return {step, task, from_};  // the step's own beginning
    std::int32_t rank = durations_.host.of(task).front().rank;
    double latest = -1;
    for (const HostIssue::Share& share : durations_.host.of(task)) {
      const double issued = with_task ? hosts_.last_issue(step, share) : hosts_.first_issue(step, share);
      if (issued > latest) latest = issued, rank = share.rank;
    }
    const auto [sync, since] = date_of_sync(step, task, with_task, rank);
    add_host(rank, sync, {step, task}, with_task, since, date);
    if (sync.second == nothing) return {step, task, from_};
    return {sync.first, sync.second, since};
  }

  // The rank's tasks in program order.
  const std::vector<TaskId>& program(std::int32_t rank) {
    std::vector<TaskId>& tasks = programs_[rank];
    if (tasks.empty())
      for (const TaskId id : graph_.order)
        for (const std::int32_t member : members_of(graph_, id))
          if (member == rank) tasks.push_back(id);
    return tasks;
  }

  bool waits(TaskId task, std::int32_t rank) const {
    const auto shares = durations_.host.of(task);
    return std::any_of(shares.begin(), shares.end(),
                       [&](const HostIssue::Share& share) { return share.waits && share.rank == rank; });
  }

  using Instance = std::pair<std::size_t, TaskId>;
  // The last synchronisation before the task, or at it, in the program of `rank`, and its date.
  std::pair<Instance, double> date_of_sync(std::size_t step, TaskId task, bool with_task, std::int32_t rank) {
    const auto& tasks = program(rank);
    auto at =
        static_cast<std::size_t>(std::find(tasks.begin(), tasks.end(), task) - tasks.begin()) + (with_task ? 1 : 0);
    for (std::size_t in = step + 1; in-- > 0; at = tasks.size()) {
      while (at-- > 0)
        if (waits(tasks[at], rank)) return {{in, tasks[at]}, start(in, tasks[at])};
    }
    return {{0, nothing}, 0};
  }

  void add_host(std::int32_t rank, const Instance& from, const Instance& to, bool with_last, double since,
                double until) {
    const auto& tasks = program(rank);
    const std::int32_t group = place_of(cluster_, rank).group;
    const double share = until > since ? (until - std::max(since, from_)) / (until - since) : 0;
    const double weight = share * repeats(std::max(since, from_), until);
    std::size_t in = from.second == nothing ? 0 : from.first;
    auto at = from.second == nothing ? tasks.begin() : std::find(tasks.begin(), tasks.end(), from.second);
    while (in < to.first || (at != tasks.end() && in == to.first)) {
      if (at == tasks.end()) {
        ++in, at = tasks.begin();
        continue;
      }
      const bool is_last = in == to.first && *at == to.second;
      const Task& task = graph_.tasks[*at];
      if (!is_last || with_last) counts_[{PathTerm::Kind::host, task.work, task.communicator, group, none}] += weight;
      if (is_last) break;
      ++at;
    }
  }

  void add_task(TaskId id, double begun, double ended) {
    const double seconds = ended - begun;
    if (!(seconds > 0)) return;
    const double share = (ended - std::max(begun, from_)) / seconds;
    const double weight = share * repeats(std::max(begun, from_), ended);
    const Task& task = graph_.tasks[id];
    const std::int32_t group = task.communicator == none ? place_of(cluster_, task.rank).group : 0;
    if (graph_.work(task).kind == WorkKind::bubble_work) {
      SumOfBubbleWork& sum = bubble_work_[{task.work, task.communicator}];
      sum.count += weight, sum.seconds += weight * seconds;
      return;
    }
    counts_[{PathTerm::Kind::task, task.work, task.communicator, group, slow_rank(task)}] += weight;
    for (const LostPart& part : lost_[id]) {
      const Task& other = graph_.tasks[part.task];
      counts_[{part.kind, other.work, other.communicator, group, slow_rank(other)}] += part.count * weight;
    }
  }

  std::int32_t slow_rank(const Task& task) const {
    return task.communicator == none && slowdown_of(cluster_, task.rank) != 1 ? task.rank : none;
  }

  // 1, and more as far as [begin, end) lies in repeated periods.
  double repeats(double begin, double end) const {
    const double inside = std::min(end, repeated_.second) - std::max(begin, repeated_.first);
    return inside > 0 && end > begin ? 1 + weight_ * inside / (end - begin) : 1;
  }

  const TaskGraph& graph_;
  const PricedCluster& cluster_;
  const Durations& durations_;
  const Timeline& timeline_;
  const PeriodicTimeline* periodic_;
  Waits waits_;
  std::vector<std::vector<LostPart>> lost_;  // by task
  std::size_t count_;
  Hosts hosts_;
  double from_ = 0;
  std::pair<double, double> repeated_{0, 0};
  double weight_ = 0;
  std::map<std::int32_t, std::vector<TaskId>> programs_;
  struct SumOfBubbleWork {
    double count = 0, seconds = 0;
  };
  std::map<std::pair<std::int32_t, std::int32_t>, SumOfBubbleWork> bubble_work_;  // by work and communicator
  std::map<std::tuple<PathTerm::Kind, std::int32_t, std::int32_t, std::int32_t, std::int32_t>, double> counts_;
};

}  // namespace

std::vector<PathTerm> critical_path(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations,
                                    const Timeline& timeline, const PeriodicTimeline* periodic) {
  return Walk(graph, cluster, durations, timeline, periodic).run();
}

std::vector<double> term_seconds(const TaskGraph& graph, const PricedCluster& cluster,
                                 const std::vector<PathTerm>& terms) {
  std::map<std::int32_t, LinkPath> paths;
  const auto message = [&](const PathTerm& term) {
    const Communicator& communicator = graph.communicators[term.communicator];
    auto found = paths.find(term.communicator);
    if (found == paths.end()) found = paths.emplace(term.communicator, path_of(cluster, communicator)).first;
    return seconds_of_message(graph, graph.works[term.work], communicator, found->second, cluster);
  };
  std::vector<double> seconds;
  for (const PathTerm& term : terms) {
    const Work& work = graph.works[term.work];
    const Machine& machine = cluster.groups[term.group].machine;
    const double longer = machine.constants.beside;
    if (work.kind == WorkKind::bubble_work) {
      seconds.push_back(term.seconds);
    } else if (term.kind == PathTerm::Kind::host) {
      const bool has_members = term.communicator != none;
      const int members = has_members ? static_cast<int>(graph.communicators[term.communicator].ranks.size()) : 1;
      seconds.push_back(host_seconds(
          graph, work, members, has_members ? graph.communicators[term.communicator].axis : Axis::tensor, machine));
    } else if (term.kind == PathTerm::Kind::beside) {
      seconds.push_back(longer / (1 + longer) * message(term));
    } else if (term.communicator != none) {
      seconds.push_back(message(term));
    } else {
      seconds.push_back(compute_seconds(graph, work, machine) *
                        (term.rank == none ? 1 : slowdown_of(cluster, term.rank)) *
                        (term.kind == PathTerm::Kind::outlasted ? longer : 1));
    }
  }
  return seconds;
}

}  // namespace slipway::schedules
