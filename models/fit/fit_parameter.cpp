#include "models/fit/fit_parameter.h"

#include <utility>

namespace slipway::models {

namespace {

constexpr double fastest = 1e-13;  // s/byte: 10 TB/s

double inverse(double value) { return value > 0 ? 1 / value : 0; }

using Cost = std::function<double(const Machine&)>;

// The memory's rate itself, or its share of a data sheet's number.
FitParameter memory(const Machine& start) {
  const double sheet = start.memory_bandwidth;
  const Cost cost = [](const Machine& m) { return inverse(m.memory_bandwidth * m.memory_efficiency); };
  FitParameter parameter;
  if (start.cores > 0 || !(sheet > 0)) {
    parameter = {.name = "memory_bandwidth",
                 .unit = "B/s",
                 .guess = 1e-10,
                 .lowest = fastest,
                 .scale = 1e-10,
                 .cost = cost,
                 .set_cost = {},
                 .value = [](const Machine& m) { return m.memory_bandwidth; }};
    parameter.set_cost = [](Machine& m, double to) { m.memory_bandwidth = 1 / to, m.memory_efficiency = 1; };
  } else {
    parameter = {.name = "memory_efficiency",
                 .unit = "",
                 .guess = 1 / (0.8 * sheet),
                 .lowest = 1 / sheet,
                 .scale = 1 / sheet,
                 .cost = cost,
                 .set_cost = {},
                 .value = [](const Machine& m) { return m.memory_efficiency; }};
    parameter.set_cost = [](Machine& m, double to) { m.memory_efficiency = 1 / (to * m.memory_bandwidth); };
  }
  return parameter;
}

FitParameter bandwidth(const std::string& name, Link Machine::*link, const Machine& start) {
  const double sheet = (start.*link).bandwidth;
  const bool is_free = start.cores > 0 || !(sheet > 0);
  FitParameter parameter;
  parameter.name = name + (is_free ? ".bandwidth" : ".efficiency");
  parameter.unit = is_free ? "B/s" : "";
  parameter.guess = parameter.scale = 1e-9;
  parameter.lowest = is_free ? fastest : 1 / sheet;
  parameter.cost = [=](const Machine& m) { return inverse((m.*link).bandwidth * (m.*link).efficiency); };
  parameter.set_cost = [=](Machine& m, double cost) {
    if (is_free) (m.*link).bandwidth = 1 / cost;
    (m.*link).efficiency = is_free ? 1 : 1 / (cost * (m.*link).bandwidth);
  };
  parameter.value = [=](const Machine& m) { return is_free ? (m.*link).bandwidth : (m.*link).efficiency; };
  return parameter;
}

FitParameter latency(const std::string& name, Link Machine::*link) {
  const Cost seconds = [=](const Machine& m) { return (m.*link).latency; };
  return {.name = name + ".latency",
          .unit = "s",
          .guess = 0,
          .lowest = 0,
          .scale = 1e-6,
          .cost = seconds,
          .set_cost = [=](Machine& m, double cost) { (m.*link).latency = cost; },
          .value = seconds};
}

FitParameter efficiency(const std::string& name, double Machine::*field, double lowest) {
  return {.name = name,
          .unit = "",
          .guess = 1.25,
          .lowest = lowest,
          .scale = 1,
          .cost = [=](const Machine& m) { return inverse(m.*field); },
          .set_cost = [=](Machine& m, double cost) { m.*field = 1 / cost; },
          .value = [=](const Machine& m) { return m.*field; }};
}

FitParameter overhead(const std::string& name, double Machine::*field) {
  const Cost seconds = [=](const Machine& m) { return m.*field; };
  return {.name = name,
          .unit = "s",
          .guess = 0,
          .lowest = 0,
          .scale = 1e-6,
          .cost = seconds,
          .set_cost = [=](Machine& m, double cost) { m.*field = cost; },
          .value = seconds};
}

// 0 bytes/s means that adding is free, so the cost 0 is a value like any other.
FitParameter reduction() {
  return {.name = "reduce_bandwidth",
          .unit = "B/s",
          .guess = 0,
          .lowest = 0,
          .scale = 1e-9,
          .cost = [](const Machine& m) { return inverse(m.reduce_bandwidth); },
          .set_cost = [](Machine& m, double cost) { m.reduce_bandwidth = inverse(cost); },
          .value = [](const Machine& m) { return m.reduce_bandwidth; }};
}

// The link and its name in the profile.
std::pair<std::string, Link Machine::*> fitted_link(ObservationGroup group) {
  if (group == ObservationGroup::node_link) return {"node_link", &Machine::node_link};
  if (group == ObservationGroup::network_link) return {"network_link", &Machine::network_link};
  if (group == ObservationGroup::host_to_device) return {"host_to_device", &Machine::host_to_device};
  return {"device_to_host", &Machine::device_to_host};
}

}  // namespace

bool peak_is_free(const Machine& machine) { return machine.cores > 0; }

std::vector<FitParameter> parameters_of(ObservationGroup group, const Machine& start, bool with_reduction) {
  if (group == ObservationGroup::compute) {
    // With a free peak an efficiency may come out above 1; the peak is raised afterwards.
    const double lowest = peak_is_free(start) ? 0.01 : 1;
    return {efficiency("gemm_efficiency", &Machine::gemm_efficiency, lowest), memory(start),
            efficiency("attention_efficiency", &Machine::attention_efficiency, lowest),
            overhead("launch_overhead", &Machine::launch_overhead), overhead("task_overhead", &Machine::task_overhead)};
  }
  const auto [name, link] = fitted_link(group);
  std::vector<FitParameter> parameters{bandwidth(name, link, start), latency(name, link)};
  if (with_reduction && is_between_ranks(group)) parameters.push_back(reduction());
  return parameters;
}

}  // namespace slipway::models
