#include "scenarios/search/rates.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "models/machine/topology.h"
#include "scenarios/predict/filling.h"

namespace slipway::scenarios {
namespace {

const StepConstant& constant_named(std::string_view name) {
  for (const StepConstant& constant : step_constants())
    if (constant.name == name) return constant;
  throw std::logic_error("no constant of a step is called " + std::string(name));
}

// Prior standard deviation of ln(constant): common, machine, trainer and pair of both together.
double prior_of(std::string_view name) {
  const StepConstant& constant = constant_named(name);
  return std::hypot(std::hypot(constant.spread, constant.machine), std::hypot(constant.trainer, constant.site));
}

template <typename Change>
void each_machine(Moved& moved, Change change) {
  for (NodeGroup& group : moved.cluster.groups) change(group.machine);
}

template <typename Change>
void each_fabric(Moved& moved, Fabric::Scope scope, Change change) {
  for (Fabric& fabric : moved.cluster.fabrics)
    if (fabric.scope == scope) change(fabric);
}

void stretch(Moved& moved, std::initializer_list<TimePart> parts, double speed) {
  for (const TimePart part : parts) moved.stretch[static_cast<std::size_t>(part)] /= speed;
}

void speed_up_links(Moved& moved, Fabric::Scope scope, double speed) {
  each_fabric(moved, scope, [&](Fabric& fabric) {
    fabric.bandwidth *= speed;
    speed_up_parameters(fabric, ParameterUnit::bytes_per_second, speed);
  });
}

void speed_up_launches(Machine& machine, double speed) {
  machine.constants.host_kernel /= speed, machine.constants.host_member /= speed;
  if (!machine.trained) machine.launch_overhead /= speed, machine.task_overhead /= speed;
}

void start_node_messages_sooner(Moved& moved, double speed) {
  each_machine(moved, [&](Machine& machine) {
    machine.constants.node_start /= speed;
    for (auto& nccl : machine.kernels.collective)
      if (nccl) nccl->launch /= speed, nccl->hop /= speed;
  });
  each_fabric(moved, Fabric::Scope::node, [&](Fabric& fabric) { fabric.latency /= speed; });
}

void start_network_messages_sooner(Moved& moved, double speed) {
  each_machine(moved, [&](Machine& machine) { machine.constants.network_start /= speed; });
  each_fabric(moved, Fabric::Scope::cluster, [&](Fabric& fabric) {
    fabric.latency /= speed;
    speed_up_parameters(fabric, ParameterUnit::seconds, speed);
  });
}

void speed_up_all(Moved& moved, double speed) {
  each_machine(moved, [&](Machine& machine) { machine.constants.whole /= speed; });
}

bool has_fabric(const Cluster& cluster, Fabric::Scope scope) {
  return std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                     [&](const Fabric& fabric) { return fabric.scope == scope; });
}

}  // namespace

std::string words_of_link(const Link& link, bool inside) {
  if (link.name.starts_with("nvlink")) return "NVLink";
  if (link.name.starts_with("infiniband")) return "InfiniBand";
  if (link.name.starts_with("ethernet") || link.name.starts_with("roce")) return "Ethernet";
  if (link.name.starts_with("pcie")) return "PCIe";
  return inside ? "links inside a node" : "network";
}

std::vector<Rate> rates_of(const Scenario& scenario, const PricedCluster& cluster) {
  const Machine& machine = cluster.groups.front().machine;
  using enum TimePart;
  std::vector<Rate> rates;
  const auto add = [&](std::string name, std::string id, const char* constant,
                       std::function<void(Moved&, double)> move) {
    rates.push_back({std::move(name), std::move(id), prior_of(constant), false, std::move(move)});
  };
  if (machine.blocks.empty()) {
    add("matrix products", "products", "gemm", [](Moved& m, double s) {
      stretch(m, {products, expert_products, head}, s);
    });
    add("attention kernels", "attention", "attention", [](Moved& m, double s) { stretch(m, {attention}, s); });
    add("GPU memory", "memory_bandwidth", "traffic",
        [](Moved& m, double s) { each_machine(m, [&](Machine& of) { of.memory_bandwidth *= s; }); });
    add("optimizer", "optimizer", "update_bytes", [](Moved& m, double s) { stretch(m, {optimizer}, s); });
  } else {
    add("measured blocks", "blocks", "gemm", [](Moved& m, double s) { stretch(m, {blocks}, s); });
  }
  if (has_bubble_work(scenario))
    add("bubble work", "bubble_work", "gemm", [](Moved& m, double s) { stretch(m, {bubble_work}, s); });
  add("launches by the host", "launches", "host_kernel",
      [](Moved& m, double s) { each_machine(m, [&](Machine& of) { speed_up_launches(of, s); }); });
  if (has_fabric(cluster, Fabric::Scope::node)) {
    const std::string link = words_of_link(machine.node_link, true);
    add(link + " bandwidth", "node_bandwidth", "node_share",
        [](Moved& m, double s) { speed_up_links(m, Fabric::Scope::node, s); });
    add("starts of messages in a node", "node_starts", "node_start", start_node_messages_sooner);
  }
  if (has_fabric(cluster, Fabric::Scope::cluster)) {
    const std::string link = words_of_link(machine.network_link, false);
    add(link + " bandwidth", "network_bandwidth", "network_share",
        [](Moved& m, double s) { speed_up_links(m, Fabric::Scope::cluster, s); });
    add("starts of messages between nodes", "network_starts", "network_start", start_network_messages_sooner);
  }
  if (machine.trained) {
    add("products beside messages", "beside", "beside",
        [](Moved& m, double s) { each_machine(m, [&](Machine& of) { of.constants.beside /= s; }); });
    add("work once per step", "fixed", "fixed", [](Moved& m, double s) { stretch(m, {fixed}, s); });
    add("all of the machine", "whole", "whole", speed_up_all);
    rates.back().of_all = true;
  } else {
    add("all compute", "compute", "whole", [](Moved& m, double s) {
      stretch(m, {products, expert_products, attention, element_wise, head, blocks, optimizer, host}, s);
    });
    rates.back().of_all = true;
  }
  return rates;
}

double spread_of_gpus() { return prior_of("whole"); }
double spread_of_ports() { return constant_named("network_share").site; }

}  // namespace slipway::scenarios
