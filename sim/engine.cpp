#include "sim/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>

#include "sim/compute.h"
#include "sim/flows.h"
#include "sim/frontier.h"

namespace slipway {
namespace {

using simgrid::kernel::timer::Timer;

class Loop {
 public:
  Loop(const TaskGraph& graph, const Cluster& cluster, const SimulationPlan& plan, int steps,
       const SimulationOutput& output)
      : graph_(graph),
        plan_(plan),
        output_(output),
        frontier_(make_frontier(graph, steps, ready_)),
        compute_(cluster, rank_count(graph.layout)),
        flows_(build_platform(cluster, plan.edges), frontier_.tasks) {}

  void run() {
    const auto begin = std::chrono::steady_clock::now();
    simgrid::s4u::Engine::on_time_advance_cb(
        [this](double) { at_date(simgrid::s4u::Engine::get_clock()); });
    Timer::set(0, [] {});  // something to begin with
    simgrid::s4u::Engine::get_instance()->run();
    *output_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    *output_.flows = flows_.opened();
    if (done_ == frontier_.blockers.size()) return;
    throw std::runtime_error(
        fmt::format("deadlock: the simulation stopped at {:.9g} s with {} of {} tasks left{}",
                    simgrid::s4u::Engine::get_clock(), frontier_.blockers.size() - done_,
                    frontier_.blockers.size(), describe_deadlock(graph_, frontier_)));
  }

 private:
  void at_date(double now) {
    flows_.collect(ended_);
    do {
      collect_calendar(now);
      std::sort(opening_.begin(), opening_.end());
      for (const Instance instance : opening_) open_flows(instance);
      opening_.clear();
      do {
        end_all(now);
        start_all(now);
      } while (!ended_.empty());
      compute_.settle(now, calendar_);
    } while (!calendar_.empty() && calendar_.next_date() <= now);
    output_.done->store(done_, std::memory_order_relaxed);
    wake_at_next_date(now);
  }

  void collect_calendar(double now) {
    while (!calendar_.empty() && calendar_.next_date() <= now) {
      const auto [date, instance] = calendar_.take();
      const TaskId id = frontier_.task_of(instance);
      const Task& task = graph_.tasks[id];
      if (plan_.tasks[id].bytes > 0)
        opening_.push_back(instance);
      else if (task.communicator != none || !compute_.changes(task.rank) ||
               compute_.comes_due(task.rank, instance, date))
        ended_.push_back(instance);
    }
  }

  void end_all(double now) {
    std::sort(ended_.begin(), ended_.end());
    for (const Instance instance : ended_) {
      output_.end[instance] = now;
      const TaskId id = frontier_.task_of(instance);
      const Task& task = graph_.tasks[id];
      if (task.communicator == none) {
        if (compute_.changes(task.rank) && plan_.tasks[id].seconds > 0) compute_.end(task.rank);
      } else if (compute_.slowed_by_communication()) {
        for (const std::int32_t rank : members_of(graph_, id)) compute_.communication_ends(rank);
      }
      advance(frontier_, instance, ready_);
    }
    done_ += ended_.size();
    ended_.clear();
  }

  void start_all(double now) {
    std::sort(ready_.begin(), ready_.end());
    for (const Instance instance : ready_) start(instance, now);
    ready_.clear();
  }

  void start(Instance instance, double now) {
    output_.start[instance] = now;
    const TaskId id = frontier_.task_of(instance);
    const Task& task = graph_.tasks[id];
    const TaskPlan& plan = plan_.tasks[id];
    if (task.communicator != none && compute_.slowed_by_communication())
      for (const std::int32_t rank : members_of(graph_, id)) compute_.communication_begins(rank);
    if (plan.seconds == 0) {
      if (plan.bytes > 0) return open_flows(instance);
      ended_.push_back(instance);
    } else if (task.communicator == none && compute_.changes(task.rank)) {
      compute_.begin(task.rank, instance, plan.seconds, now);
    } else {
      calendar_.add(now + plan.seconds, instance);
    }
  }

  void open_flows(Instance instance) {
    const TaskId id = frontier_.task_of(instance);
    const auto communicator = static_cast<std::size_t>(graph_.tasks[id].communicator);
    flows_.open(instance, plan_.first_edge[communicator], plan_.first_edge[communicator + 1],
                plan_.tasks[id].bytes);
  }

  // SimGrid runs timers that are due right after this call; one of a past date is gone then.
  void wake_at_next_date(double now) {
    if (wake_date_ <= now) wake_ = nullptr;
    if (calendar_.empty() || (wake_ != nullptr && wake_date_ <= calendar_.next_date())) return;
    if (wake_ != nullptr) wake_->remove();
    wake_date_ = calendar_.next_date();
    wake_ = Timer::set(wake_date_, [] {});
  }

  const TaskGraph& graph_;
  const SimulationPlan& plan_;
  const SimulationOutput& output_;
  std::vector<Instance> ready_, ended_, opening_;
  Frontier frontier_;
  Calendar calendar_;
  SharedCompute compute_;
  Flows flows_;
  Timer* wake_ = nullptr;
  double wake_date_ = -1;
  std::uint64_t done_ = 0;
};

}  // namespace

void run_engine(const TaskGraph& graph, const Cluster& cluster, const SimulationPlan& plan, int steps,
                const SimulationOutput& output) {
  Loop(graph, cluster, plan, steps, output).run();
}

}  // namespace slipway
