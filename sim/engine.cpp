#include "sim/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <utility>

#include "schedules/time/host_issue.h"
#include "sim/compute.h"
#include "sim/deadlock.h"
#include "sim/flows.h"

namespace slipway::sim {
namespace {

using simgrid::kernel::timer::Timer;

class Loop {
 public:
  Loop(const TaskGraph& graph, const Cluster& cluster, const TaskForms& forms, const UnitGraph& units, int steps,
       const SimulationOutput& output)
      : graph_(graph),
        forms_(forms),
        output_(output),
        hosts_(*forms.host, steps),
        awaiting_(hosts_.empty() ? 0 : rank_count(graph.step.layout)),
        compute_(cluster, rank_count(graph.step.layout)),
        frontier_(make_frontier(units, steps, ready_)),
        network_(build_platform(cluster, forms.edges)),
        flapping_(network_.flapping),
        flows_(network_.pairs, frontier_.units->count),
        rank_free_(rank_count(graph.step.layout)) {}

  void run() {
    const auto begin = std::chrono::steady_clock::now();
    simgrid::s4u::Engine::on_time_advance_cb([this](double) { at_date(simgrid::s4u::Engine::get_clock()); });
    Timer::set(0, [] {});  // a first event
    simgrid::s4u::Engine::get_instance()->run();
    *output_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    *output_.flows = flows_.opened();
    *output_.units = frontier_.units->count;
    const std::size_t count = output_.start.size();
    if (done_ == count) return;
    throw std::runtime_error(fmt::format("deadlock: the simulation stopped at {:.9g} s with {} of {} tasks left{}",
                                         simgrid::s4u::Engine::get_clock(), count - done_, count,
                                         describe_deadlock(graph_, frontier_)));
  }

 private:
  void at_date(double now) {
    flows_.collect(ended_);
    flapping_.settle(now);
    do {
      collect_calendar(now);
      while (!issues_.empty() && issues_.next_date() <= now) ready_.push_back(issues_.take().second);
      std::sort(opening_.begin(), opening_.end());
      for (const Instance instance : opening_) open_flows(instance);
      opening_.clear();
      do {
        end_all(now);
        start_all(now);
      } while (!ended_.empty() || !ready_.empty());
      compute_.settle(now, calendar_);
    } while (next_date() <= now);
    output_.done->store(done_, std::memory_order_relaxed);
    output_.now->store(now, std::memory_order_relaxed);
    wake_at_next_date(now);
  }

  void collect_calendar(double now) {
    while (!calendar_.empty() && calendar_.next_date() <= now) {
      const auto [date, instance] = calendar_.take();
      const TaskId id = frontier_.first_task(instance);
      const Task& task = graph_.tasks[id];
      if (forms_.tasks[id].bytes > 0)
        opening_.push_back(instance);
      else if (task.communicator != none || !compute_.changes(task.rank) || forms_.tasks[id].seconds == 0 ||
               compute_.comes_due(task.rank, instance, date))
        ended_.push_back(instance);
    }
  }

  void end_all(double now) {
    std::sort(ended_.begin(), ended_.end());
    for (const Instance instance : ended_) {
      done_ += frontier_.tasks_of(instance).size();
      const TaskId id = frontier_.first_task(instance);
      const Task& task = graph_.tasks[id];
      if (!is_chain(instance)) output_.end[place_of(instance, id)] = now;  // a chain's were written when it began
      if (task.communicator == none) {
        if (compute_.changes(task.rank) && forms_.tasks[id].seconds > 0) compute_.end(task.rank);
      } else if (compute_.slowed_by_communication()) {
        for (const std::int32_t rank : members_of(graph_, id)) compute_.communication_ends(rank);
      }
      advance(frontier_, instance, ready_);
    }
    ended_.clear();
  }

  void start_all(double now) {
    std::sort(ready_.begin(), ready_.end());
    starting_.swap(ready_);
    for (const Instance instance : starting_)
      if (is_issued(instance, now)) start(instance, now);
    starting_.clear();
  }

  // False, and kept for later, for a task or a chain that a host has not issued yet.
  bool is_issued(Instance instance, double now) {
    if (hosts_.empty()) return true;
    const TaskId id = frontier_.first_task(instance);
    if (const std::int32_t rank = hosts_.awaited(step_of(instance), id); rank != none) {
      awaiting_[rank].push_back(instance);
      return false;
    }
    const double date = hosts_.start(step_of(instance), id, is_message(id));
    if (date > now) issues_.add(date, instance);
    return date <= now;
  }

  // A host that waited for this task goes on; others' tasks may have waited for that.
  void let_host_go_on(Instance instance, TaskId id, double now) {
    const std::int32_t rank = hosts_.begin(step_of(instance), id, now);
    if (rank == none) return;
    ready_.insert(ready_.end(), awaiting_[rank].begin(), awaiting_[rank].end());
    awaiting_[rank].clear();
  }

  void start(Instance instance, double now) {
    if (is_chain(instance)) return start_chain(instance, now);
    const TaskId id = frontier_.first_task(instance);
    output_.start[place_of(instance, id)] = now;
    const Task& task = graph_.tasks[id];
    const TaskForm& forms = forms_.tasks[id];
    double issued = 0;
    if (!hosts_.empty()) {
      let_host_go_on(instance, id, now);
      if (task.communicator == none) issued = hosts_.end(step_of(instance), id);
    }
    if (task.communicator != none && compute_.slowed_by_communication())
      for (const std::int32_t rank : members_of(graph_, id)) compute_.communication_begins(rank);
    if (forms.seconds == 0) {
      if (forms.bytes > 0) return open_flows(instance);
      if (issued > now) return calendar_.add(issued, instance);
      ended_.push_back(instance);
    } else if (task.communicator == none && compute_.changes(task.rank)) {
      compute_.begin(task.rank, instance, forms.seconds, now, issued);
    } else {
      calendar_.add(std::max(now + forms.seconds, issued), instance);
    }
  }

  // All dates of a chain follow from its beginning; only its end is an event. A task starts when the last of its
  // predecessors within the chain is over and the hosts have issued it. These are the tasks that it waits for, and those
  // before it on its lane: of a rank, or of the chain's communicator.
  void start_chain(Instance instance, double now) {
    const auto& unit_of = frontier_.units->chains->unit_of;
    const std::uint32_t unit = frontier_.unit_of(instance);
    const std::size_t step = step_of(instance);
    ++chains_begun_;
    double communicator_free = now, latest = now;
    for (const TaskId id : frontier_.tasks_of(instance)) {
      const Task& task = graph_.tasks[id];
      double& lane_free = task.communicator != none ? communicator_free : rank_free(task.rank, now);
      double start = std::max(lane_free, hosts_.start(step, id, is_message(id)));
      for (const TaskId before : graph_.predecessors[id])
        if (unit_of[before] == unit) start = std::max(start, output_.end[place_of(instance, before)]);
      output_.start[place_of(instance, id)] = start;
      lane_free = start + forms_.tasks[id].seconds;
      if (!is_message(id)) lane_free = std::max(lane_free, hosts_.end(step, id));
      output_.end[place_of(instance, id)] = lane_free;
      latest = std::max(latest, lane_free);
    }
    if (latest > now)
      calendar_.add(latest, instance);
    else
      ended_.push_back(instance);
  }

  // The date from which the compute lane of `rank` is free for the present chain, which began at `now`.
  double& rank_free(std::int32_t rank, double now) {
    auto& [chain, free] = rank_free_[rank];
    if (std::exchange(chain, chains_begun_) != chains_begun_) free = now;
    return free;
  }

  bool is_chain(Instance instance) const { return frontier_.units->chains->is_chain(frontier_.unit_of(instance)); }
  bool is_message(TaskId id) const { return graph_.tasks[id].communicator != none; }
  std::size_t step_of(Instance instance) const { return instance / frontier_.units->count; }
  // Index of a task's dates.
  std::size_t place_of(Instance instance, TaskId id) const { return step_of(instance) * graph_.tasks.size() + id; }

  // The date of the next event that is known now.
  double next_date() const {
    constexpr double never = std::numeric_limits<double>::infinity();
    return std::min(calendar_.empty() ? never : calendar_.next_date(), issues_.empty() ? never : issues_.next_date());
  }

  void open_flows(Instance instance) {
    const TaskForm& forms = forms_.tasks[frontier_.first_task(instance)];
    flapping_.lift();
    flows_.open(instance, forms.first_edge, forms.last_edge, forms.bytes, forms.least_s);
    flapping_.settle(simgrid::s4u::Engine::get_clock());
  }

  // SimGrid runs timers that are due right after this call; one of a past date is gone then.
  void wake_at_next_date(double now) {
    if (wake_date_ <= now) wake_ = nullptr;
    double next = next_date();
    if (!flapping_.empty() && flows_.any()) next = std::min(next, flapping_.next_date(now));
    if (std::isinf(next) || (wake_ != nullptr && wake_date_ <= next)) return;
    if (wake_ != nullptr) wake_->remove();
    wake_date_ = next;
    wake_ = Timer::set(wake_date_, [] {});
  }

  const TaskGraph& graph_;
  const TaskForms& forms_;
  const SimulationOutput& output_;
  std::vector<Instance> ready_, starting_, ended_, opening_;
  Calendar calendar_;
  Hosts hosts_;
  Calendar issues_;                              // of tasks that only wait for their hosts
  std::vector<std::vector<Instance>> awaiting_;  // per rank: the same, until its host has synchronised
  SharedCompute compute_;
  Frontier frontier_;
  Network network_;
  Flapping flapping_;
  Flows flows_;
  Timer* wake_ = nullptr;
  double wake_date_ = -1;
  std::uint64_t done_ = 0;
  std::uint64_t chains_begun_ = 0;
  std::vector<std::pair<std::uint64_t, double>> rank_free_;  // with the chain that wrote it
};

}  // namespace

void slipway_run_engine(const TaskGraph& graph, const Cluster& cluster, const TaskForms& forms, const UnitGraph& units,
                        int steps, const SimulationOutput& output) {
  Loop(graph, cluster, forms, units, steps, output).run();
}

}  // namespace slipway::sim
