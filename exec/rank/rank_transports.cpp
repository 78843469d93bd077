#include "exec/rank/rank_transports.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "exec/process/addresses.h"
#include "exec/process/environment.h"
#include "exec/transport/device.h"

namespace slipway::exec {

RankTransports::RankTransports(Seat& seat, const TaskGraph& graph, at::Device device, DeviceQueue* queue)
    : seat_(seat),
      graph_(graph),
      rank_(seat.environment().rank),
      device_(device),
      queue_(queue),
      meetings_(graph.communicators.size()) {}

std::unique_ptr<Transport> RankTransports::connected(const Group& group) {
  const RankEnvironment& at = seat_.environment();
  const Reach reach = reach_of(group.ranks, at.hosted);
  if (at.hosted > 1 && reach == Reach::inside) return seat_.local_groups().join(group, rank_, queue_);
  if (reach == Reach::mixed && !device_.is_cpu())
    throw std::runtime_error("communicator " + group.name +
                             " joins ranks that share a GPU with ranks of another, which "
                             "NCCL refuses; start one process with all ranks, or one for each rank");
  if (device_.is_cpu()) refuse_loopback_between_hosts(group);
  return connect_transport(seat_.host(), group, rank_, at.store_host, device_);
}

// Members on other hosts would wait for this one at another address.
void RankTransports::refuse_loopback_between_hosts(const Group& group) const {
  const std::vector<ProcessIdentity>& processes = seat_.processes();
  const auto is_elsewhere = [&](int other) {
    return !same_host(processes[static_cast<std::size_t>(other)], processes[static_cast<std::size_t>(rank_)]);
  };
  const char* chosen = std::getenv("GLOO_SOCKET_IFNAME");
  if ((chosen != nullptr && *chosen != '\0') || std::ranges::none_of(group.ranks, is_elsewhere)) return;
  const std::string& host = seat_.environment().store_host;
  const std::string own = address_towards(host);
  if (is_loopback(own))
    throw std::runtime_error("this host reaches MASTER_ADDR " + host + " by its own loopback (" + own +
                             "), where the members of " + group.name +
                             " on other hosts cannot reach it; set GLOO_SOCKET_IFNAME to the interface between the "
                             "hosts (`ip -br address` lists them)");
}

// Connects in the order of communicator ids, equal on all ranks, so that no two ranks wait for each other's connect.
void RankTransports::connect() {
  for (std::size_t id = 0; id < graph_.communicators.size(); ++id) {
    const Communicator& communicator = graph_.communicators[id];
    const bool member =
        std::find(communicator.ranks.begin(), communicator.ranks.end(), rank_) != communicator.ranks.end();
    if (!member) {
      transports_.emplace_back();
      continue;
    }
    const Group group{static_cast<int>(id),
                      communicator.name,
                      {communicator.ranks.begin(), communicator.ranks.end()},
                      communicator.axis == Axis::expert || communicator.axis == Axis::expert_tensor};
    transports_.push_back(connected(group));
  }
  for (const auto& transport : transports_) {
    if (transport) transport->barrier();
  }
}

void RankTransports::move(const TaskGraph& graph, TaskId id, Message& message) {
  const Task& task = graph.tasks[id];
  const auto communicator = static_cast<std::size_t>(task.communicator);
  Transport& transport = *transports_[communicator];
  if (!goes_one_way(graph, task)) return collect(transport, graph.work(task).collective, message);
  if (graph.communicators[communicator].ranks.front() == rank_)
    transport.send(message.input, 1);
  else
    transport.receive(message.output, 0);
}

bool RankTransports::leaves_process(const TaskGraph& graph, TaskId task) const {
  const auto communicator = static_cast<std::size_t>(graph.tasks[task].communicator);
  const auto& members = graph.communicators[communicator].ranks;
  return reach_of({members.begin(), members.end()}, seat_.environment().hosted) != Reach::inside;
}

void RankTransports::begin_meetings() {
  for (std::size_t id = 0; id < transports_.size(); ++id)
    if (transports_[id]) meetings_[id].store = seat_.host().connect();
}

void RankTransports::end_meetings() {
  for (Meetings& meetings : meetings_) meetings.store.reset();
}

// Once all members have come to a meeting, all have left the one before.
void RankTransports::meet(const TaskGraph& graph, TaskId task) {
  const auto communicator = static_cast<std::size_t>(graph.tasks[task].communicator);
  const auto& members = graph.communicators[communicator].ranks;
  Meetings& meetings = meetings_[communicator];
  const auto name = [&](std::int64_t number) {
    return "meet/" + std::to_string(communicator) + "/" + std::to_string(number);
  };
  const std::int64_t now = meetings.held++;
  store_barrier(*meetings.store, name(now), static_cast<int>(members.size()), while_alive_s);
  if (now > 0 && members.front() == rank_) forget_barrier(*meetings.store, name(now - 1));
}

void RankTransports::collect(Transport& transport, Collective collective, Message& message) {
  if (message.exchange) return message.exchange(transport, message);
  switch (collective) {
    case Collective::all_reduce:
      return transport.all_reduce(message.output);
    case Collective::all_gather:
      return transport.all_gather(message.output, message.input);
    case Collective::reduce_scatter:
      return transport.reduce_scatter(message.output, message.input);
    case Collective::shift:
      return transport.shift(message.output, message.input);
    case Collective::none:
    case Collective::broadcast:
    case Collective::send:
    case Collective::all_to_all:
      break;
  }
  throw std::runtime_error(std::string("the executor has no collective '") + name_of(collective) + "'");
}

void RankTransports::shutdown() {
  for (const auto& transport : transports_) {
    if (transport) transport->shutdown();
  }
}

std::vector<std::string> RankTransports::names() const {
  std::vector<std::string> names;
  for (const Communicator& communicator : graph_.communicators) names.push_back(communicator.name);
  return names;
}

}  // namespace slipway::exec
