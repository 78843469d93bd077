#include "sim/flows.h"

#include <algorithm>
#include <simgrid/s4u.hpp>
#include <stdexcept>

namespace slipway::sim {

Flows::Flows(std::vector<HostPair> routes, std::uint32_t tasks) : routes_(std::move(routes)), open_per_task_(tasks, 0) {
  for (auto* model : simgrid::s4u::Engine::get_instance()->get_all_models())
    if (model->get_name() == "Network_CM02") network_ = model;
  if (network_ == nullptr) throw std::runtime_error("SimGrid has no CM02 network model; version 3.32 is expected");
}

void Flows::open(Instance instance, std::uint32_t first_edge, std::uint32_t last_edge, double bytes, double least_s) {
  for (std::uint32_t edge = first_edge; edge < last_edge; ++edge) {
    const HostPair& route = routes_[edge];
    const double share = bytes * route.share;
    const auto parts =
        std::max<std::uint64_t>(1, static_cast<std::uint64_t>(share * parts_per_byte + 0.5)) * route.flows;
    auto flow = simgrid::s4u::Comm::sendto_init();
    flow->set_payload_size(parts);
    flow->set_source(route.from);
    flow->detach();
    flow->set_destination(route.to);  // the flow is complete now: SimGrid starts it
    auto& action = network_->get_started_action_set()->back();
    if (route.flows > 1) action.set_sharing_penalty(1.0 / route.flows);
    if (least_s > 0) action.set_bound(static_cast<double>(parts) / least_s);
    flying_.insert(flow->get_impl(), instance);
  }
  open_per_task_[instance % open_per_task_.size()] += last_edge - first_edge;
  opened_ += last_edge - first_edge;
}

void Flows::collect(std::vector<Instance>& ended) {
  for (const auto& action : *network_->get_finished_action_set()) {
    const Instance instance = flying_.take(action.get_activity());
    if (--open_per_task_[instance % open_per_task_.size()] == 0) ended.push_back(instance);
  }
}

}  // namespace slipway::sim
